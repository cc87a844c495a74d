"""Where the embedded authority's inputs come from and where outputs go: one folder.

Below `<organization>/<environment>/`, `inputs/<reference>` holds what a run reads (`.json` may be left out of the reference)
and `outputs/<target>/` takes what it writes. References are names of ours, never paths of a caller's: nothing outside of these
two can be reached, and no environment reaches another's.
"""

import os
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from horarium.authority.outputs import check_output
from horarium.errors import NotFound, Refused
from horarium.schedule.identity import Scope

MAX_INPUT_BYTES = 4 * 1024 * 1024
_UNREACHABLE = (OSError, RuntimeError)
"""What a disk answers where it should not be asked: no rights, no space, and (a RuntimeError) links that go in circles."""
_PART = re.compile(r"[A-Za-z0-9_@:-][A-Za-z0-9_.@:-]{0,199}")


@dataclass(frozen=True, slots=True)
class ContentFolder:
    """Inputs and outputs of one environment, below the folder of an installation. All methods may block on the disk."""

    root: Path
    scope: Scope

    def of(self, scope: Scope) -> Self:
        """The contents of another environment of the installation."""
        return replace(self, scope=scope)

    @property
    def inputs(self) -> Path:
        """The folder of the environment's inputs."""
        return self._area("inputs")

    @property
    def outputs(self) -> Path:
        """The folder of the environment's output targets."""
        return self._area("outputs")

    def has_input(self, reference: str) -> bool:
        """Whether the input exists and is a file that can be read."""
        with suppress(*_UNREACHABLE):
            path = self._input(reference)
            return path is not None and os.access(path, os.R_OK)
        return False

    def read_input(self, reference: str) -> bytes:
        """The input's bytes; `NotFound` where there is none, `Refused` where it is larger than 4 MiB."""
        try:
            path = self._input(reference)
            if path is None:
                raise NotFound("input_unreadable", f"There is no input {reference!r}.")
            if path.stat().st_size > MAX_INPUT_BYTES:
                raise Refused("input_too_large", f"The input {reference!r} is larger than {MAX_INPUT_BYTES} bytes.")
            return path.read_bytes()
        except _UNREACHABLE as error:
            raise NotFound("input_unreadable", f"The input {reference!r} cannot be read: {_why(error)}.") from error

    def has_output_target(self, target: str) -> bool:
        """Whether the output target exists."""
        with suppress(*_UNREACHABLE):
            path = self._below("outputs", target)
            return path is not None and path.is_dir()
        return False

    def write_output(self, target: str, folder: str, name: str, data: bytes) -> str:
        """Store an output whole or not at all, and return its reference, `target/folder/name`. The same name is replaced."""
        check_output(name, len(data))
        assert _PART.fullmatch(folder), folder
        try:
            base = self._below("outputs", target)
            if base is None or not base.is_dir():
                raise NotFound("output_missing", f"There is no output target {target!r}.")
            (base / folder).mkdir(exist_ok=True)
            unfinished = base / folder / f".{name}.{os.getpid()}"
            unfinished.write_bytes(data)
            unfinished.replace(base / folder / name)
        except _UNREACHABLE as error:
            raise Refused("output_unwritable", f"The output {name!r} cannot be written: {_why(error)}.") from error
        return f"{target}/{folder}/{name}"

    def _input(self, reference: str) -> Path | None:
        path = self._below("inputs", reference)
        if path is None:
            return None
        for candidate in (path, path.with_name(path.name + ".json")):
            if candidate.is_file():
                return candidate
        return None

    def _below(self, area: str, reference: str) -> Path | None:
        parts = reference.split("/")
        if not all(_PART.fullmatch(part) for part in parts):
            return None
        path = self._area(area).joinpath(*parts)
        return path if path.resolve().is_relative_to(self._area(area).resolve()) else None

    def _area(self, area: str) -> Path:
        return self.root / self.scope.org_id / self.scope.environment_id / area


def _why(error: BaseException) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
