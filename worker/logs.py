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


def tell(sentence: str) -> None:
    """Say a sentence on stderr to whoever waits: as it is at a terminal, as a line of the log where that is JSON."""
    if sys.stderr.isatty() or not structlog.is_configured():
        print(sentence, file=sys.stderr, flush=True)  # noqa: T201 - this is the process speaking to its person
    else:
        structlog.get_logger(__name__).info(sentence)
