"""The folder that a development installation keeps everything in, and that one of them at a time may use."""

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from horarium.errors import Misconfigured


class DataFolder:
    """A folder for the catalog, the Temporal server's database and the logs; locked while it is entered.

    The lock is the kernel's, on the file `horarium.lock`, so it ends with the process that holds it, however that
    one ends; a file that is left over locks nothing. The process id inside is for the person who reads the refusal.
    Children do not inherit the lock.

    Entering raises Misconfigured if the folder cannot be made or written, or if another process is using it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._lock: int | None = None

    @property
    def logs(self) -> Path:
        """Where each process of the installation writes its log."""
        return self.path / "logs"

    def __enter__(self) -> Self:
        assert self._lock is None, "a data folder is entered once at a time"
        make_writable(self.path)
        make_writable(self.logs)
        self._lock = _lock(self.path)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._lock is not None
        # The file stays: to remove it could take it from under a process that just opened it and waits for its lock.
        os.close(self._lock)
        self._lock = None


def make_writable(path: Path) -> None:
    """Make the folder `path` and its parents if need be, and write to it to see that it works; else Misconfigured."""
    if path.exists() and not path.is_dir():
        raise Misconfigured(f"{str(path)!r} is a file, and a folder is needed. Name another one with --data DIR.")
    probe = path / f".writable-{os.getpid()}"
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise Misconfigured(
            f"Cannot write to the folder {str(path)!r}: {error.strerror}. "
            "Make it writable, or name another one with --data DIR."
        ) from error


def _lock(folder: Path) -> int:
    descriptor = os.open(folder / "horarium.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(descriptor, 32).decode(errors="replace").strip()
        os.close(descriptor)
        by = f"process {holder}" if holder else "another process"
        raise Misconfigured(
            f"The data folder {str(folder)!r} is in use by {by}. "
            "Stop that one first, or name another folder with --data DIR."
        ) from error
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"{os.getpid()}\n".encode())
    return descriptor
