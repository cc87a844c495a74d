"""Tests here may be coroutines, each on an event loop of its own and with a time limit."""

from tests.workflows.conftest import pytest_pyfunc_call

__all__ = ["pytest_pyfunc_call"]
