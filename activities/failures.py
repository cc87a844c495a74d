"""From the library's errors to Temporal's, and back to a person: which are worth another attempt, and what they mean."""

from collections.abc import Iterator
from contextlib import contextmanager

from temporalio.exceptions import ApplicationError, ApplicationErrorCategory, FailureError
from temporalio.exceptions import TimeoutError as ActivityTimeoutError

from horarium.errors import HorariumError, InvalidSchedule, Misconfigured, Refused, Unavailable

LONGEST_CAUSE = 300
"""Characters of a cause that are shown."""
DEEPEST = 5
"""Causes of causes whose tracebacks are kept."""
_FORESEEN = {Misconfigured.__name__, InvalidSchedule.__name__}


@contextmanager
def translated() -> Iterator[None]:
    """Raise foreseen errors as `ApplicationError`, with their code as its type.

    What is unavailable is worth another attempt. A refusal is final and expected, so it pages nobody. Anything else that was
    foreseen (a catalog without tables) is retried too: a person puts it right while the work waits.
    """
    try:
        yield
    except Unavailable as error:
        raise ApplicationError(str(error), type=error.code) from error
    except Refused as error:
        raise ApplicationError(
            str(error), type=error.code, non_retryable=True, category=ApplicationErrorCategory.BENIGN
        ) from error
    except HorariumError as error:
        raise ApplicationError(str(error), type=type(error).__name__) from error


def is_silence(error: FailureError) -> bool:
    """Whether the catalog gave no answer, rather than a bad one."""
    return isinstance(error, ActivityTimeoutError) or (
        isinstance(error, ApplicationError) and error.type == "catalog_unavailable"
    )


def cause_of(error: FailureError) -> str:
    """Why a local activity failed, in a sentence that anybody may read.

    Foreseen errors were written for people. The text of any other may hold what was being written, so only its name is
    told, and the worker's log says more.
    """
    if isinstance(error, ActivityTimeoutError):
        return "It gave no answer in time."
    if not isinstance(error, ApplicationError):
        return f"{type(error).__name__}; the worker's log says more."
    name = error.type or "An error"
    if name.islower() or name in _FORESEEN:
        text = " ".join(error.message.split())
        return text if len(text) <= LONGEST_CAUSE else text[: LONGEST_CAUSE - 1] + "…"
    return f"{name[:LONGEST_CAUSE]}; the worker's log says more."


def trace_of(error: BaseException | None) -> str:
    """The traceback that another process has sent along with what failed there, and those of its causes; empty without any."""
    found: list[str] = []
    while isinstance(error, FailureError) and len(found) < DEEPEST:
        if error.failure is not None and error.failure.stack_trace:
            # Frames are all that it is: what was raised there is told beside them.
            found.append(f"{error.failure.stack_trace.rstrip()}\n{error}")
        error = error.cause
    return "\n\n".join(reversed(found))
