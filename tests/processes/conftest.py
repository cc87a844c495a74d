"""Programs to run as children, and ways to see what became of them."""

import asyncio
import subprocess
import sys
import textwrap
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from starter.child import Program


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., Program]:
    """Makes a program of Python text, with its log beside it in `tmp_path`.

    The text may use `say(TEXT)`, which prints at once, and the modules os, pathlib, signal, sys and time.
    """

    def make(text: str, *, name: str = "child", **options) -> Program:
        source = tmp_path / f"{name}.py"
        source.write_text(
            "import os, pathlib, signal, sys, time\ndef say(text): print(text, flush=True)\n" + textwrap.dedent(text)
        )
        return Program(name=name, argv=(sys.executable, str(source)), log=tmp_path / f"{name}.log", **options)

    return make


@pytest.fixture
def gone() -> Callable[..., bool]:
    """Tells whether a process ends within some seconds; one that only waits to be reaped has ended."""

    def look(pid: int, *, within: float = 60.0) -> bool:
        until = time.monotonic() + within
        while time.monotonic() < until:
            found = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
            if not found.stdout.strip() or found.stdout.startswith("Z"):
                return True
            time.sleep(0.02)
        return False

    return look


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], Awaitable[None]]:
    """Waits until a condition holds."""

    async def wait(condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not condition():  # noqa: ASYNC110 - no event tells of another process
                await asyncio.sleep(0.01)

    return wait
