"""What people call our commands who come from other schedulers, or from last night's shell."""

from typing import Any, Final

from typer.core import TyperGroup

MEANT: Final = {
    "cancel": ["pause", "authority stop"],
    "cron": ["profile save", "v0 create"],
    "create": ["publish", "v0 create"],
    "delete": ["retire"],
    "describe": ["get"],
    "disable": ["pause"],
    "health": ["list", "audit"],
    "history": ["occurrences"],
    "init": ["setup", "dev"],
    "ledger": ["occurrences"],
    "log": ["occurrences"],
    "logs": ["occurrences"],
    "migrate": ["db upgrade"],
    "remove": ["retire"],
    "resume": ["enable"],
    "rm": ["retire"],
    "run": ["trigger"],
    "runs": ["occurrences"],
    "schedules": ["list"],
    "show": ["get"],
    "start": ["enable", "dev"],
    "status": ["get", "list"],
    "stop": ["pause", "authority stop"],
    "unpause": ["enable"],
    "update": ["apply"],
}
"""A word that is none of ours, and the commands that do what it probably stands for."""


class Words(TyperGroup):
    """The commands, which lead from such a word to those that are meant. Any other word is compared letter by letter."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As of every group, but for words that people bring along."""
        word = args[0] if args else ""
        if word in MEANT and word not in self.commands:
            meant = " or ".join(f"{each!r}" for each in MEANT[word])
            ctx.fail(f"No such command {word!r}. Did you mean {meant}?")
        return super().resolve_command(ctx, args)
