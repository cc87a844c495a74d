"""The one way out of every process that used the Temporal SDK.

The SDK's native part can abort while the interpreter shuts down (https://github.com/temporalio/sdk-python/issues/300).
The process then dies by a signal after its work was done, in about one exit of five, and its exit status lies.
What is left of the SDK must be collected after its event loop was closed and before the interpreter goes down.
"""

import asyncio
import contextlib
import gc
import os
import select
import signal
import sys
import traceback
from collections.abc import Coroutine
from typing import Any, NoReturn

from horarium.errors import HorariumError

INTERRUPTED = 128 + signal.SIGINT
"""The exit status after Ctrl-C, as a shell would report it."""

BROKEN_PIPE = 128 + signal.SIGPIPE
"""The exit status when nobody reads our output any more, as in `horarium list | head`."""


def run(main: Coroutine[Any, Any, int | None]) -> NoReturn:
    """Run `main` on an event loop of its own and leave the process with its result (None is 0).

    An error that the library foresaw becomes its text on stderr and status 1, also when it comes out of a task group.
    Ctrl-C is status 130 with nothing said. `SystemExit` keeps its code. Anything else is a fault of ours: its traceback
    is printed and the status is 1. If the reader of stdout has gone away the status is 141, without a traceback.

    Raises SystemExit, always. Call it last, from the main thread, outside of any event loop.
    """
    status = _status(main)
    # Here no frame and no traceback of the run is left, so that the collection reaches all that the SDK holds.
    gc.collect()
    sys.exit(status if _flush() else BROKEN_PIPE)


def _status(main: Coroutine[Any, Any, int | None]) -> int:
    try:
        with asyncio.Runner() as runner:
            return runner.run(main) or 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as leaving:
        return _code(leaving)
    except BrokenPipeError:
        if _reader_is_gone():
            return BROKEN_PIPE
        traceback.print_exc()  # some other pipe, so this is like any other error
        return 1
    except Exception as error:  # noqa: BLE001 - the last station: an error that went on would keep the SDK alive
        foreseen = _foreseen(error)
        if foreseen:
            print(*foreseen, sep="\n", file=sys.stderr)  # noqa: T201 - this is the process speaking to its person
        else:
            traceback.print_exception(error)
        return 1


def _code(leaving: SystemExit) -> int:
    """What the interpreter itself would make of it: None is 0, a text is said on stderr and is 1."""
    if leaving.code is None or isinstance(leaving.code, int):
        return leaving.code or 0
    print(leaving.code, file=sys.stderr)  # noqa: T201 - as above
    return 1


def _foreseen(error: BaseException) -> list[str]:
    """The texts of `error`, looking into groups; empty if any part of it is not one of the library's own errors."""
    if isinstance(error, HorariumError):
        return [str(error)]
    if not isinstance(error, BaseExceptionGroup):
        return []
    parts = [_foreseen(part) for part in error.exceptions]
    return [text for part in parts for text in part] if all(parts) else []


def _flush() -> bool:
    """Write out what is buffered. False if the reader of stdout has gone, after which stdout leads nowhere."""
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
        sys.stderr.flush()
    if not _reader_is_gone():
        return True
    # The interpreter flushes once more on its way out, and would complain there.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return False


def _reader_is_gone() -> bool:
    """Whether stdout is a pipe that nobody reads. A write that failed cannot tell: it drops what it could not write."""
    try:
        descriptor = sys.stdout.fileno()
    except OSError:  # not a file at all
        return False
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
