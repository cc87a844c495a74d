"""From the library's errors to Temporal's: which are worth another attempt, and which are nobody's alarm."""

from collections.abc import Iterator
from contextlib import contextmanager

from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from horarium.errors import HorariumError, Refused, Unavailable


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
