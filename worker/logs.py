"""Logs: JSON lines on stderr for machines, one readable line for a person at a terminal."""

import logging
import sys

import structlog


def configure(*, level: int = logging.INFO) -> None:
    """Send structlog's and the standard library's records to stderr in one form.

    A traceback is told plainly in either form: never with the values of variables, which may be secrets.
    """
    processors: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    # The first shows tracebacks by rich, with local variables, unless it is told otherwise.
    rendering: list[structlog.typing.Processor] = (
        [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
        if sys.stderr.isatty()
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(ensure_ascii=False)]
    )
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


def _beside_the_answer(*_: object) -> structlog.PrintLogger:
    return structlog.PrintLogger(sys.stderr)


def tell(sentence: str) -> None:
    """Say a sentence on stderr to whoever waits: as it is at a terminal, as a line of the log where that is JSON."""
    configured = structlog.is_configured() and structlog.get_config()["logger_factory"] is not _beside_the_answer
    if sys.stderr.isatty() or not configured:
        print(sentence, file=sys.stderr, flush=True)  # noqa: T201 - this is the process speaking to its person
    else:
        structlog.get_logger(__name__).info(sentence)
