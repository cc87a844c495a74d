"""The commands about agent classes and their profiles: their names, arguments and help."""
# A command imports what it needs and nothing else, so that `--help` and `validate` answer at once.
# ruff: noqa: PLC0415

from typing import Annotated

import typer

from starter.cli.options import LARGEST_ID, Data, Document, Form, Key, Server, place
from starter.cli.refusals import leave
from starter.cli.review import Review

app = typer.Typer(
    help="Agent classes, and their profiles: settings of an agent with a cron of its own.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
AgentClass = Annotated[
    str, typer.Argument(metavar="CLASS", help="The agent class, as `profile classes` has it.", show_default=False)
]
AgentId = Annotated[str, typer.Argument(metavar="ID", help="The profile of the class.", show_default=False)]


@app.command()
def classes(server: Server = None, data: Data = None, output: Form = None) -> None:
    """Show the agent classes that reported themselves, what each can do, and whether it is there."""
    from starter.cli import profiles

    leave(profiles.show_classes(where=place(data, server), output=output), output)


@app.command("list")
def list_profiles(
    agent_class: AgentClass,
    *,
    limit: Annotated[int, typer.Option("--limit", min=1, max=50, help="Profiles on the page.")] = 25,
    after: Annotated[
        str | None, typer.Option("--after", metavar="ID", help="The page behind this profile.", show_default=False)
    ] = None,
    server: Server = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Show the profiles of a class, a page at a time, by their ids."""
    from starter.cli import profiles

    where = place(data, server)
    leave(profiles.show_profiles(agent_class, limit=limit, after=after, where=where, output=output), output)


@app.command()
def get(
    agent_class: AgentClass, agent_id: AgentId, server: Server = None, data: Data = None, output: Form = None
) -> None:
    """Show a profile, how its schedule stands, and when it is due next."""
    from starter.cli import profiles

    leave(profiles.show_profile(agent_class, agent_id, where=place(data, server), output=output), output)


@app.command()
def save(
    agent_class: AgentClass,
    agent_id: AgentId,
    file: Document,
    *,
    key: Key = None,
    server: Server = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Save a profile. With a cron in its config it fires from now on, as the system; nothing of the past fires."""
    from starter.cli import profiles

    where = place(data, server)
    work = profiles.save(agent_class, agent_id, file, review=Review(key=key), where=where, output=output)
    leave(work, output, file=file, where=where)


@app.command()
def clear(
    agent_class: AgentClass,
    agent_id: AgentId,
    *,
    key: Key = None,
    server: Server = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Take the cron out of a profile, so that it fires no more, and leave the rest as it is."""
    from starter.cli import profiles

    where = place(data, server)
    leave(profiles.clear(agent_class, agent_id, review=Review(key=key), where=where, output=output), output)


@app.command()
def delete(
    agent_class: AgentClass,
    agent_id: AgentId,
    *,
    key: Key = None,
    server: Server = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Delete a profile, and pause its schedule. Its thread and its ledger stay, and are taken up if it is saved again."""
    from starter.cli import profiles

    where = place(data, server)
    leave(profiles.delete(agent_class, agent_id, review=Review(key=key), where=where, output=output), output)


@app.command()
def trigger(
    agent_class: AgentClass,
    agent_id: AgentId,
    *,
    event: Annotated[
        str, typer.Option("--event", metavar="NAME", help="A start event that the class declares.")
    ] = "CronStartEvent",
    fields: Annotated[
        str | None,
        typer.Option("--fields", metavar="JSON", help="The event's own fields, as an object.", show_default=False),
    ] = None,
    key: Key = None,
    server: Server = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Run a profile once, now, with you as its user. It is admitted as every run is, and may be refused."""
    from starter.cli import profiles

    where = place(data, server)
    work = profiles.trigger(
        agent_class,
        agent_id,
        start_event=event,
        fields=fields,
        review=Review(key=key),
        where=where,
        output=output,
    )
    leave(work, output, file="--fields")


@app.command()
def thread(
    agent_class: AgentClass,
    agent_id: AgentId,
    *,
    after: Annotated[
        int, typer.Option("--after", min=0, max=LARGEST_ID, help="Only events behind the one with this id.")
    ] = 0,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="Events, at most.")] = 1_000,
    server: Server = None,
    data: Data = None,
    output: Form = None,
) -> None:
    """Show what the runs of a profile did, oldest first. At a server this needs a token of operators."""
    from starter.cli import profiles

    where = place(data, server)
    leave(
        profiles.show_thread(agent_class, agent_id, after=after, limit=limit, where=where, output=output),
        output,
    )
