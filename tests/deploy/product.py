"""What the product knows: the names of its settings, its commands with their options. What is deployed may name no others."""

import itertools
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import typer.main

from starter.cli.commands import app

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
SOURCES = ("worker", "starter", "horarium", "activities", "workflows", "examples")

TEMPORALS = {
    "TEMPORAL_ADDRESS",
    "TEMPORAL_NAMESPACE",
    "TEMPORAL_API_KEY",
    "TEMPORAL_PROFILE",
    "TEMPORAL_CONFIG_FILE",
    "TEMPORAL_TLS",
    "TEMPORAL_TLS_CLIENT_CERT_PATH",
    "TEMPORAL_TLS_CLIENT_KEY_PATH",
    "TEMPORAL_TLS_SERVER_CA_CERT_PATH",
    "TEMPORAL_TLS_SERVER_NAME",
}
"""Names of the Temporal SDK's environment configuration. They stand in its compiled part, where nothing lists them."""


def settings() -> frozenset[str]:
    """Every name of an environment variable that our code speaks of."""
    found = set(TEMPORALS)
    for folder in SOURCES:
        for path in (ROOT / folder).rglob("*.py"):
            found |= set(re.findall(r"\b(?:HORARIUM|SCHEDULER|OTEL)_[A-Z0-9_]*[A-Z0-9]\b", path.read_text()))
    return frozenset(found)


def refusal(arguments: Sequence[str]) -> str | None:
    """What the command line says against these arguments of `horarium`, without doing anything; None where it takes them."""
    command = typer.main.get_command(app)
    left = list(arguments)
    name = "horarium"
    while hasattr(command, "commands"):
        if not left or left[0] not in command.commands:
            return f"{name} has no command {left[:1]}"
        name = left.pop(0)
        command = command.commands[name]
    try:
        command.make_context(name, left)
    except Exception as error:  # noqa: BLE001 - click's errors, whichever copy of click typer brings
        if getattr(error, "exit_code", 1) == 0:
            return None  # it has told its help
        return f"{name}: {getattr(error, 'message', None) or error!r}"
    return None


def commands_in(text: str) -> Iterator[list[str]]:
    """The arguments of each `horarium …` in a text: in its fences, and between backticks."""
    blocks = re.findall(r"^```(?:sh|shell|console)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    spans = re.findall(r"`(horarium [^`]+)`", text)
    for line in [line for block in blocks for line in block.replace("\\\n", " ").splitlines()] + spans:
        for words in simple_commands(line):
            yield from program_arguments(words)


def program_arguments(words: list[str]) -> Iterator[list[str]]:
    """What a command gives to `horarium`: itself, behind `--`, or as the command of a service of the compose file."""
    own = list(itertools.dropwhile(lambda word: re.match(r"[A-Za-z_]+=", word), words))
    if "--" in own:
        own = own[own.index("--") + 1 :]
    if own[:1] == ["horarium"]:
        yield own[1:]
    elif own[:2] == ["docker", "compose"] and "run" in own:
        behind = list(itertools.dropwhile(lambda word: word.startswith("-"), own[own.index("run") + 1 :]))
        yield behind[1:]


def simple_commands(line: str) -> Iterator[list[str]]:
    """The words of each command of a line of shell, without what is redirected and without comments."""
    reader = shlex.shlex(line, posix=True, punctuation_chars="();<>|&")
    reader.whitespace_split = True
    words: list[str] = []
    redirected = False
    for word in reader:
        if set(word) <= set("<>"):
            redirected = True
        elif set(word) <= set("();|&"):
            yield words
            words = []
        elif redirected:
            redirected = False
        else:
            words.append(word)
    yield words
