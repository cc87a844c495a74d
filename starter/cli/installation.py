"""The installation that a command is about, and its catalog."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from sqlalchemy import make_url

from horarium.catalog import Catalog
from horarium.catalog.migrate import require_current
from horarium.errors import Misconfigured
from worker.logs import to_stderr
from worker.settings import Settings


@asynccontextmanager
async def catalog_of(settings: Settings) -> AsyncIterator[Catalog]:
    """The catalog of an installation, in this release's form; `Misconfigured`, with what to do, where there is none."""
    refuse_absent(settings)
    to_stderr()
    catalog = Catalog.open(settings.catalog_url)
    try:
        require_current(catalog)
        yield catalog
    finally:
        catalog.close()


def refuse_absent(settings: Settings) -> None:
    """Raise `Misconfigured` where there is no catalog yet. SQLite would make an empty one and say nothing."""
    url = settings.catalog_url
    if settings.data.exists() and not settings.data.is_dir():
        raise Misconfigured(
            f"{str(settings.data)!r} is a file, and --data (or HORARIUM_DATA) names a folder. Name another one."
        )
    if url.startswith("sqlite") and not Path(make_url(url).database or "").is_file():
        raise Misconfigured(
            f"There is no installation in {str(settings.data)!r}. Run `horarium dev` to start one there or "
            "`horarium setup` to prepare one, or name another folder with --data DIR."
        )
