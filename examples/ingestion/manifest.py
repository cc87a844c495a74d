"""The input of the check: which folders, how fresh, and what must stand in the files."""

from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from horarium.errors import InvalidSchedule
from horarium.schedule.document import load_json

MAX_FOLDERS = 50
MAX_COLUMNS = 100


class UnusableManifest(Exception):
    """The check cannot be done as asked. The text says all that is wrong."""


def _inside(path: str) -> str:
    pure = PurePosixPath(path)
    if not path.strip() or "\x00" in path or "\\" in path or pure.is_absolute() or ".." in pure.parts:
        raise ValueError("a folder below the root is expected, such as 'incoming/orders', without '..'")
    return path


def _of_names(pattern: str) -> str:
    if not pattern.strip() or "/" in pattern or "\x00" in pattern:
        raise ValueError("a pattern of file names is expected, such as '*.csv', without '/'")
    return pattern


_Columns = Annotated[tuple[Annotated[str, Field(min_length=1, max_length=200)], ...], Field(max_length=MAX_COLUMNS)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Folder(_Strict):
    """One folder to look at, not below it.

    `path` is relative to the root. A file that matches `pattern` is stale when it was last written more than
    `max_age_minutes` ago. `required_columns` must stand in each header; no two rows of a file may be equal in
    `key_columns`, or in all columns where none are named.
    """

    path: Annotated[str, Field(max_length=500), AfterValidator(_inside)]
    max_age_minutes: int = Field(strict=True, ge=1, le=5_256_000)
    pattern: Annotated[str, Field(max_length=200), AfterValidator(_of_names)] = "*.csv"
    required_columns: _Columns = ()
    key_columns: _Columns = ()


class Manifest(_Strict):
    """What to check."""

    folders: Annotated[tuple[Folder, ...], Field(min_length=1, max_length=MAX_FOLDERS)]


def parse_manifest(content: bytes) -> Manifest:
    """Read the manifest, strictly. Raises `UnusableManifest` with every fault and its place."""
    try:
        return Manifest.model_validate(load_json(content))
    except InvalidSchedule as error:
        raise UnusableManifest(str(error)) from error
    except ValidationError as error:
        faults = (f"{'/'.join(map(str, each['loc'])) or 'manifest'}: {each['msg']}" for each in error.errors())
        raise UnusableManifest("; ".join(faults)) from error
