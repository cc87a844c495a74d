"""Logs: JSON lines on stderr for machines, one readable line for a person at a terminal."""

import logging
import sys

import structlog

from worker.log_context import name_what_it_is_about
from worker.redaction import Redaction, secrets_in


def configure(*, level: int = logging.INFO) -> None:
    """Send structlog's and the standard library's records to stderr in one form.

    A traceback is told plainly in either form: never with the values of variables, which may be secrets. What is secret is
    hidden wherever it stands (see `worker.redaction`), and each line says what it is about (see `worker.log_context`).
    """
    processors: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        # Of the fields of the standard library's records, what the SDK says of a workflow.
        structlog.stdlib.ExtraAdder(allow=["temporal_workflow", "temporal_activity"]),
        name_what_it_is_about,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    # Tracebacks become texts before anything is hidden. For a terminal they would else be shown by rich, with local variables.
    rendering: list[structlog.typing.Processor] = [
        structlog.processors.format_exc_info,
        Redaction(secrets_in()),
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
        if sys.stderr.isatty()
        else structlog.processors.JSONRenderer(ensure_ascii=False),
    ]
    structlog.configure(
        processors=[*processors, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=processors,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    # It tells the whole address of every request, and the path of a destination may be as good as a secret.
    logging.getLogger("httpx").setLevel(logging.WARNING)


def to_stderr() -> None:
    """Let what a command logs by the way go to stderr, since its stdout is for its answer.

    A process that has set its logs up elsewhere keeps them.
    """
    # Not `is_configured`: whoever has captured the log once, as tests do, leaves it configured and yet on stdout.
    if isinstance(structlog.get_config()["logger_factory"], structlog.PrintLoggerFactory):
        # Looked up for each line: whoever calls commands in one process may give each a stderr of its own.
        structlog.configure(logger_factory=_beside_the_answer, cache_logger_on_first_use=False)
        _hide_secrets_in(structlog.get_config()["processors"])


def _hide_secrets_in(processors: list[structlog.typing.Processor]) -> None:
    """In the list itself: whoever has captured the log puts back what was in it."""
    if any(isinstance(each, Redaction) for each in processors):
        return
    if processors and isinstance(processors[-1], structlog.dev.ConsoleRenderer):
        processors[-1] = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    processors[-1:-1] = [structlog.processors.format_exc_info, Redaction(secrets_in())]


def _beside_the_answer(*_: object) -> structlog.PrintLogger:
    return structlog.PrintLogger(sys.stderr)


def tell(sentence: str) -> None:
    """Say a sentence on stderr to whoever waits: as it is at a terminal, as a line of the log where that is JSON."""
    configured = structlog.is_configured() and structlog.get_config()["logger_factory"] is not _beside_the_answer
    if sys.stderr.isatty() or not configured:
        print(sentence, file=sys.stderr, flush=True)  # noqa: T201 - this is the process speaking to its person
    else:
        structlog.get_logger(__name__).info(sentence)
