"""What one test does to the logs of this process is not there in the next, whatever it was."""

import logging

import pytest
import structlog
from structlog.testing import capture_logs

from tests.log_keeping import logs_put_back
from worker.logs import configure, to_stderr

_logger = structlog.get_logger("ours")


def _captured() -> None:
    with capture_logs():
        _logger.info("captured")


def _configured() -> None:
    configure(level=logging.DEBUG)
    _logger.info("said_before")


def _captured_and_configured() -> None:
    _captured()
    _configured()


CHANGES = [_captured, to_stderr, _configured, _captured_and_configured]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("before", [None, _captured])
def test_what_was_done_to_the_logs_is_put_back(before, change, capsys):
    if before is not None:
        before()
    root = logging.getLogger()
    state = (structlog.is_configured(), structlog.get_config(), root.handlers.copy(), root.level)
    processors = [type(each) for each in structlog.get_config()["processors"]]
    httpx = logging.getLogger("httpx").level
    with logs_put_back():
        change()
    assert (structlog.is_configured(), root.handlers, root.level) == (state[0], *state[2:])
    assert [type(each) for each in structlog.get_config()["processors"]] == processors
    assert {**structlog.get_config(), "processors": None} == {**state[1], "processors": None}
    assert logging.getLogger("httpx").level == httpx
    capsys.readouterr()
    _logger.info("said_after")
    assert "said_after" in capsys.readouterr().out


def test_a_log_that_is_captured_for_longer_is_captured_still():
    with capture_logs() as captured:
        with logs_put_back():
            _captured_and_configured()
        _logger.info("said_after")
    assert "said_after" in [each["event"] for each in captured]


def test_each_test_is_kept_apart_from_the_others(request):
    assert {"logs_as_they_were", "logs_of_a_file_as_they_were"} <= set(request.fixturenames)
