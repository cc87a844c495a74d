"""The client is there under `horarium.Client`, and costs nothing until it is named."""

import subprocess
import sys

import pytest

import horarium
from horarium.client import Client

NAMED = "import sys, horarium; {}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"


@pytest.mark.parametrize(("done", "there"), [("horarium.parse_calendar", False), ("horarium.Client", True)])
def test_http_is_imported_when_the_client_is_first_named(done, there):
    found = subprocess.run([sys.executable, "-c", NAMED.format(done)], capture_output=True, text=True, check=True)
    assert ("httpx" in found.stdout.split()) is there


def test_the_client_is_one_of_the_librarys_names():
    assert horarium.Client is Client
    assert "Client" in horarium.__all__
    with pytest.raises(AttributeError, match="no attribute 'Customer'"):
        _ = horarium.Customer
