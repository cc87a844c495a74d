"""One child process: started, watched, and ended by its process id."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from horarium.errors import Misconfigured

LOOK_EVERY = timedelta(milliseconds=50)
"""How often a waiting process looks whether a child has ended or is ready: far below what a person notices."""

LOG_LIMIT = 16 * 1024 * 1024
"""Bytes. A log that is larger when its program starts is set aside as `NAME.1`, in place of the one before."""

TETHER = Path(__file__).with_name("tether.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What to run, and how it comes and goes."""

    name: str
    """For people, in every sentence about it."""
    argv: tuple[str, ...]
    log: Path
    """Its output and its errors are appended here."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Added to our own."""
    forget: str | None = None
    """Variables of our own whose names begin so are not passed on."""
    folder: Path | None = None
    """Where it starts; None is our own working folder."""
    ready: str | Callable[[], Awaitable[bool]] | None = "READY"
    """How it is known to work: what it writes (as a line, or as the event of a line of JSON), a question to ask again and
    again, or None for at once."""
    ready_within: timedelta = timedelta(seconds=30)
    """How long it may take to get ready."""
    grace: timedelta = timedelta(seconds=10)
    """How long it may take to end after SIGTERM, before it is killed."""


class Child:
    """A program that runs, or ran, as our child; `start` may be called again after it has ended.

    A child has a session and a process group of its own. So Ctrl-C in a terminal reaches us alone, and we stop the
    children in order. What a child leaves behind in its group is killed when it ends.

    A child does not outlive us, even if we are killed outright (see tether.py). This holds on Linux; elsewhere the
    kernel offers no such thing, and only an orderly end of ours ends the children.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    @property
    def pid(self) -> int:
        """The process id, which is also that of the group. Only of a child that was started."""
        assert self._process is not None, f"{self.program.name} was never started"
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._look() is None

    @property
    def status(self) -> int | None:
        """The exit status, negative for a signal; None while it runs or if it was never started."""
        return None if self._process is None else self._look()

    async def start(self) -> None:
        """Start it and wait until it is ready; a running child is left alone. Call this from the main thread.

        Afterwards the child is either ready or not running: also if the wait is cancelled it is killed. Raises
        Misconfigured with its last words if there is no such program, it ends early, or it is not ready in time.
        """
        if self.running:
            return
        self._launch()
        await self._come_up()

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the child alone; nothing happens if it has ended."""
        if self.running:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End the child and its group at once, as a crash would."""
        if self._process is not None and self._look() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    async def stop(self) -> int | None:
        """Ask the child to end (SIGTERM), kill it if it still runs after its grace, and return its exit status.

        If the wait is cancelled the child is killed, so that it is gone in any case.
        """
        try:
            self.send(signal.SIGTERM)
            async with asyncio.timeout(self.program.grace.total_seconds()):
                await self.ended()
        except TimeoutError:
            pass  # it had its time; what follows is the same as for a wait that was cancelled
        finally:
            self.kill()
        return self.status

    async def ended(self) -> int | None:
        """Wait until the child is not running, and return its exit status."""
        while self.running:  # noqa: ASYNC110 - no event tells of another process
            await asyncio.sleep(LOOK_EVERY.total_seconds())
        return self.status

    def last_words(self, lines: int = 5) -> str:
        """The last lines that the child wrote since it was last started, and where there is more; one line."""
        words = " | ".join([_readable(line) for line in self._lines(tail=64 * 1024) if line][-lines:])
        said = f"Its last words: {words} " if words else ""
        return f"{said}(log: {self.program.log})"

    async def _come_up(self) -> None:
        try:
            async with asyncio.timeout(self.program.ready_within.total_seconds()):
                while self.running and not await self._is_ready():  # noqa: ASYNC110 - no event tells of another process
                    await asyncio.sleep(LOOK_EVERY.total_seconds())
        except TimeoutError as error:
            self.kill()
            raise Misconfigured(
                f"{self.program.name} did not get ready within {self.program.ready_within.total_seconds():g} s. "
                f"{self.last_words()}"
            ) from error
        except BaseException:
            self.kill()
            raise
        if not self.running:
            raise Misconfigured(
                f"{self.program.name} ended with {in_words(self.status)} before it was ready. {self.last_words()}"
            )

    async def _is_ready(self) -> bool:
        match self.program.ready:
            case None:
                return True
            case str(line):
                return any(_says(each, line) for each in self._lines())
            case ask:
                return await ask()

    def _launch(self) -> None:
        program = self.program
        if shutil.which(program.argv[0]) is None:
            raise Misconfigured(f"Cannot start {program.name}: there is no program {program.argv[0]!r}.")
        if program.log.exists() and program.log.stat().st_size > LOG_LIMIT:
            program.log.replace(program.log.with_name(program.log.name + ".1"))
        # Straight into a file: a pipe would need us to read it, and would break with us.
        with program.log.open("ab") as log:
            self._log_start = log.tell()
            self._process = subprocess.Popen(
                _tethered(program.argv),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=program.folder,
                env={**_inherited(program.forget), **program.environment},
                start_new_session=True,
            )

    def _lines(self, *, tail: int | None = None) -> list[str]:
        """What the child wrote since it was last started, or the last `tail` bytes of that."""
        if not self.program.log.exists():
            return []
        with self.program.log.open("rb") as log:
            start = self._log_start
            if tail is not None:
                start = max(start, log.seek(0, os.SEEK_END) - tail)
            log.seek(start)
            return [line.strip() for line in log.read().decode(errors="replace").splitlines()]

    def _look(self) -> int | None:
        assert self._process is not None
        before = self._process.returncode
        status = self._process.poll()
        if before is None and status is not None:
            # Both mean that nobody is left in the group; macOS says it with the second.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        return status


def in_words(status: int | None) -> str:
    """An exit status as a person says it: `exit status 1`, `signal SIGKILL`."""
    if status is None or status >= 0:
        return f"exit status {status}"
    try:
        return f"signal {signal.Signals(-status).name}"
    except ValueError:
        return f"signal {-status}"


def _inherited(forget: str | None) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if forget is None or not name.startswith(forget)}


def _event(line: str) -> dict[str, object] | None:
    """A line of a JSON log; None for any other line."""
    if not line.startswith("{"):
        return None
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) and "event" in found else None


def _says(line: str, words: str) -> bool:
    event = _event(line)
    return line == words if event is None else event["event"] == words


def _readable(line: str) -> str:
    """A line of a log for a sentence: of a JSON line what it says, and its error."""
    event = _event(line)
    if event is None:
        return line
    return ": ".join(str(event[name]) for name in ("event", "error") if name in event)


def _tethered(argv: tuple[str, ...]) -> list[str]:
    if sys.platform != "linux":
        return list(argv)
    # Isolated and without `site`, which saves most of the start and keeps the environment's Python settings for the
    # program that follows.
    return [sys.executable, "-I", "-S", str(TETHER), str(os.getpid()), *argv]
