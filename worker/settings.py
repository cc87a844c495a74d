"""Where things are, from the environment: every process of one installation is given the same."""

import getpass
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from activities.pace import Pace
from horarium.authority.content import ContentFolder
from horarium.errors import Misconfigured
from horarium.schedule.identity import Scope

DEFAULT_DATA = Path(".horarium")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One installation as a process sees it.

    `data` is the folder of the embedded installation; `catalog_url` an SQLAlchemy URL, by default a file in it. `scope` is
    the organization and environment that is served.
    """

    data: Path
    catalog_url: str
    scope: Scope
    pace: Pace = field(default_factory=Pace)

    @property
    def content(self) -> ContentFolder:
        """Where inputs are read and outputs go."""
        return ContentFolder(self.data / "content")

    @property
    def principal(self) -> str:
        """Who acts at this command line."""
        return f"local:{_user()}"

    def environment(self) -> dict[str, str]:
        """The same settings for a child process."""
        return {
            "HORARIUM_DATA": str(self.data),
            "HORARIUM_CATALOG": self.catalog_url,
            "HORARIUM_ORGANIZATION": self.scope.org_id,
            "HORARIUM_ENVIRONMENT": self.scope.environment_id,
        }


def load(environ: Mapping[str, str] = os.environ, *, data: Path | None = None) -> Settings:
    """The settings of this process.

    `HORARIUM_DATA`, `HORARIUM_CATALOG`, `HORARIUM_ORGANIZATION`, `HORARIUM_ENVIRONMENT`, `HORARIUM_STEPS_PER_RUN`; a
    `data` folder that is given counts more than the environment's. Raises `Misconfigured`.
    """
    named = Path(environ.get("HORARIUM_DATA") or DEFAULT_DATA).absolute()
    folder = named if data is None else data.absolute()
    url = environ.get("HORARIUM_CATALOG")
    if url and url.startswith("sqlite") and folder != named:
        # A file that belongs to the folder of the environment is not the catalog of the folder that was asked for.
        url = None
    scope = Scope(
        org_id=environ.get("HORARIUM_ORGANIZATION", "local"),
        environment_id=environ.get("HORARIUM_ENVIRONMENT", "dev"),
    )
    return Settings(
        data=folder,
        catalog_url=url or f"sqlite:///{folder / 'catalog.db'}",
        scope=scope,
        pace=Pace(steps_per_run=_whole_number(environ, "HORARIUM_STEPS_PER_RUN")),
    )


def _whole_number(environ: Mapping[str, str], name: str) -> int | None:
    text = environ.get(name)
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise Misconfigured(f"{name} is {text[:40]!r}; it is a whole number from 1.")
    return int(text)


def _user() -> str:
    try:
        return getpass.getuser()
    except OSError:
        # A container may run under a number that no user database knows.
        return str(os.getuid())
