"""`archive` and `erase-person`: what an operator does at the catalog itself, and nobody by the API."""

import asyncio
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path

from horarium.control.archive_files import MANIFEST, verify_archive
from horarium.control.archiving import Archived, prune_archive, unfinished_prunings, write_archive
from horarium.control.erasing import Erased, erase_person, new_name
from horarium.control.unfinished_archives import killed_archives
from horarium.errors import Refused
from starter.cli.installation import catalog_of
from starter.cli.printing import Output, print_table, printable, show
from worker.settings import load


async def archive(*, before: datetime, to: Path, prune: bool, data: Path | None, output: Output | None) -> int:
    """Write an archive; with `prune`, finish what was interrupted before, then remove what the new one holds.

    What is left in `to` of archives whose process was killed is cleared, and named on stderr.
    """
    settings = load(data=data)
    async with catalog_of(settings) as catalog:

        def work() -> list[Archived]:
            _clear_killed(to)
            done = []
            folders = unfinished_prunings(to, settings.scope) if prune else []
            done += [
                prune_archive(catalog, settings.scope, folder, by=settings.principal, clock=_now) for folder in folders
            ]
            made = write_archive(catalog, settings.scope, to, before=before, now=_now(), prune=prune)
            if prune:
                made = prune_archive(catalog, settings.scope, made.folder, by=settings.principal, clock=_now)
            return [*done, made]

        # In a thread: a signal shall find a loop that listens.
        done = await asyncio.to_thread(work)
    answer = {
        "archives": [
            {"folder": str(each.folder), "digest": each.digest, "rows": dict(each.rows), "removed": each.removed}
            for each in done
        ]
    }
    show(answer, output, lambda: _print_archives(done))
    return 0


async def verify(folder: Path, *, output: Output | None) -> int:
    """Look whether an archive is what its manifest says.

    Raises `Refused`: `not_an_archive` for a folder that was none before anything could be damaged in it, and
    `archive_damaged`.
    """
    _refuse_no_archive(folder)
    manifest, digest = await asyncio.to_thread(verify_archive, folder)
    rows = {each["name"]: each["rows"] for each in manifest["files"]}
    answer = {"folder": str(folder), "digest": digest, "rows": rows, "before": manifest["before"]}
    show(answer, output, lambda: print(f"The archive is whole, and every seal fits its events. {digest}"))
    return 0


async def erase(name: str, *, really: bool, instead: str | None, data: Path | None, output: Output | None) -> int:
    """Replace a person's name, or say where it stands."""
    settings = load(data=data)
    chosen = instead or new_name()
    if really and instead is None:
        # Before anything is changed: whoever interrupts it needs the name to finish it.
        print(f"If this is interrupted, finish it with --as {chosen}", file=sys.stderr)
    async with catalog_of(settings) as catalog:
        result = await asyncio.to_thread(
            erase_person,
            catalog,
            settings.scope,
            name,
            instead=chosen,
            by=settings.principal,
            clock=_now,
            dry=not really,
        )
    answer = {
        "instead": result.instead if really else None,
        "dry": result.dry,
        "rows": dict(result.rows),
        "seals": result.seals,
        "texts": dict(result.texts),
    }
    if result.rows or result.texts:
        show(answer, output, lambda: _print_erased(result))
    else:
        nobody = (
            f"Nobody is called {name!r} in the record of organization {settings.scope.org_id!r}. Nothing was changed."
        )
        show(answer, output, lambda: print(printable(nobody)))
    return 0


def _refuse_no_archive(folder: Path) -> None:
    """A folder without any file of an archive is a slip of the pen, as where archives are kept in place of one of them."""
    if any(folder.glob("*.json*")):
        return
    inside = sorted(each.parent for each in folder.glob(f"*/{MANIFEST}"))
    advice = f"It holds {len(inside)}; the newest is {inside[-1]}." if inside else "`--to` said where it was written."
    raise Refused("not_an_archive", f"There is no archive in {str(folder)!r}.", next_step=f"Name one archive. {advice}")


def _clear_killed(to: Path) -> None:
    for folder in killed_archives(to, now=_now()):
        told = f"{str(folder)!r}, what is left of an archive whose process was killed."
        try:
            shutil.rmtree(folder)
        except OSError as error:
            print(printable(f"Remove {told} It cannot be done here: {error.strerror}."), file=sys.stderr)
        else:
            print(printable(f"Cleared {told}"), file=sys.stderr)


def _now() -> datetime:
    return datetime.now(UTC)


def _print_archives(done: list[Archived]) -> None:
    print_table(
        ("Archive", "Rows", "Removed"),
        [(str(each.folder), sum(each.rows.values()), each.removed or "") for each in done],
        wraps={"Archive"},
    )
    for each in done:
        print(f"{each.folder.name}: {each.digest}")
    print("Note the digest elsewhere: it proves the archive.")


def _print_erased(result: Erased) -> None:
    rows = [
        *result.rows.items(),
        *((f"{where} (left: somebody's own words)", count) for where, count in result.texts.items()),
    ]
    print_table(("Where", "Rows"), rows)
    if result.seals:
        print(
            f"Under {result.seals} seals an event names the person; what they say has no proof of its own after that."
        )
    if result.dry:
        print("Nothing was changed. --really does it.")
    else:
        print(f"The person is {result.instead} from now on.")
    print("Archives, backups, logs, Temporal's histories and the content folder are not reached; see the runbook.")
