"""Logs as they were: what a part of the tests does to the state that all logs of the process share is put back after it.

Commands that are called in this process configure the logs as those of a process of their own: with a handler for the
stderr of that moment, which is closed soon after, and with loggers that keep to it for good.
"""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import structlog


@contextmanager
def logs_put_back() -> Iterator[None]:
    """Put back the standard library's handlers and levels, and structlog's configuration, however they were changed."""
    root = logging.getLogger()
    handlers, levels = root.handlers.copy(), {each: each.level for each in _loggers()}
    is_configured, configuration = structlog.is_configured(), structlog.get_config()
    processors = configuration["processors"].copy()
    try:
        yield
    finally:
        root.handlers[:] = handlers
        for logger, level in levels.items():
            if logger.level != level:
                logger.setLevel(level)
        if structlog.get_config()["cache_logger_on_first_use"]:
            _forget_what_was_cached()
        # In the list itself: whoever captures the log at this moment, for longer than this lasts, has changed what is in it.
        configuration["processors"][:] = processors
        if is_configured:
            structlog.configure(**configuration)
        else:
            # Not by `configure`, after which it counts as configured, and a command no longer sees to its own log.
            structlog.reset_defaults()


def _loggers() -> list[logging.Logger]:
    named = list(logging.Logger.manager.loggerDict.values())
    return [logging.getLogger(), *(each for each in named if isinstance(each, logging.Logger))]


def _forget_what_was_cached() -> None:
    """Let the loggers of modules heed the configuration again: one that was used keeps to that of its first use."""
    for module in list(sys.modules.values()):
        for each in list(vars(module).values()):
            # By its type alone: to ask one of these whether it is an instance of anything is to use it.
            if type(each) is type(_LAZY):
                vars(each).pop("bind", None)


_LAZY = structlog.get_logger()
