"""Commands at a server: the same answers as on the data folder, by a real process over a real socket."""

import asyncio
import getpass
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from .conftest import Installation, without_ours


@contextmanager
def serving(data: str, **environment: str):
    """`horarium api` on a free port, with more variables where there are, until the end of the block; its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "starter", "api", "--port", "0", "--data", data],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**without_ours(), **environment},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("Listening on http://"), line
        yield line.split()[-1]
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """An installation with its workers there, and a server of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
        installation = Installation(tmp_path_factory.mktemp("served") / "data")
        with serving(installation.data) as address:
            yield installation, address


@pytest.fixture
def both(served, horarium, monkeypatch):
    """Call a command at the server and on the data folder, and give both results."""
    installation, address = served
    installation.populate()
    token = horarium("token", "--data", installation.data).stdout.strip()
    monkeypatch.setenv("HORARIUM_TOKEN", token)

    def call(*arguments: str):
        at_server = horarium(*arguments, "--server", address)
        on_folder = horarium(*arguments, "--data", installation.data)
        return at_server, on_folder

    return call


@pytest.fixture
def there(served, both, horarium):
    """Call a command at the server and expect it to succeed; the answer is what a pipe is given."""

    def call(*arguments: str):
        result = horarium(*arguments, "--server", served[1])
        assert result.exit_code == 0, result.stderr
        return [json.loads(line) for line in result.stdout.splitlines()]

    return call


@pytest.fixture
def published(there, configuration, write) -> str:
    return there("publish", write(configuration))[0]["schedule_id"]


@pytest.fixture(scope="module")
def standing() -> dict[str, str]:
    """The one schedule that reads are about, once it is there."""
    return {}


READS = {
    "get": ["get", "ID"],
    "get a revision": ["get", "ID", "--revision", "1"],
    "get a revision that is not there": ["get", "ID", "--revision", "9"],
    "get by the beginning of its id": ["get", "ID8"],
    "get what is not there": ["get", "7b0c7c3e-4f0e-4f53-9f0b-000000000000"],
    "get what no id begins with": ["get", "0123456789abcdef0123456789abcdef"[:20]],
    "get nonsense": ["get", "nonsense"],
    "list": ["list", "--include-retired"],
    "list a page": ["list", "--limit", "1"],
    "occurrences": ["occurrences", "ID"],
    "some occurrences": ["occurrences", "ID", "--limit", "1", "--from", "2026-01-01", "--disposition", "staged"],
    "occurrences of what is not there": ["occurrences", "7b0c7c3e-4f0e-4f53-9f0b-000000000000"],
    "events": ["events", "ID"],
    "events behind one": ["events", "ID", "--after", "1", "--limit", "2"],
    "diff": ["diff", "FILE", "ID"],
    "diff of what differs": ["diff", "OTHER", "ID"],
    "apply what is there": ["apply", "-f", "FILE", "--schedule", "ID"],
    "a document with faults": ["publish", "FAULTY"],
    "a stale revision": ["publish", "FILE", "--schedule", "ID", "--expected-revision", "0"],
    "a stale generation": ["enable", "ID", "--generation", "7"],
    "another digest": ["enable", "ID", "--digest", "sha256:" + "0" * 64],
    "a malformed digest": ["enable", "ID", "--digest", "sha256:00"],
}


@pytest.mark.parametrize("form", ["json", "table"])
@pytest.mark.parametrize("arguments", READS.values(), ids=READS)
def test_a_server_and_a_folder_answer_alike(both, there, standing, configuration, write, arguments, form):
    same = write(configuration)
    if not standing:
        standing["id"] = there("publish", same)[0]["schedule_id"]
        there("enable", standing["id"])
        there("trigger", standing["id"])
    published = standing["id"]
    configuration["policy"]["overlap"] = "allow"
    other = write(configuration, "other.json")
    configuration["policy"]["overlap"] = "never"
    names = {
        "ID": published,
        "ID8": published[:8],
        "FILE": same,
        "OTHER": other,
        "FAULTY": write(configuration, "faulty.json"),
    }
    at_server, on_folder = both(*(names.get(each, each) for each in arguments), "-o", form)
    assert at_server.exit_code == on_folder.exit_code
    # Proposals of a next command name the place, and that alone differs.
    plain = [text.split(" --server ")[0].split(" --data ")[0] for text in (at_server.stdout, on_folder.stdout)]
    assert plain[0] == plain[1]
    assert at_server.stderr == on_folder.stderr


@pytest.mark.parametrize("form", ["json", "table"])
def test_a_preview_by_a_server_is_the_same(served, both, horarium, configuration, write, form):
    path = write(configuration)
    window = ("--from", "2027-03-27T00:00:00Z", "--until", "2027-03-29T23:59:59Z", "-o", form)
    at_server, alone = horarium("preview", path, *window, "--server", served[1]), horarium("preview", path, *window)
    assert at_server.exit_code == 0, at_server.stderr
    assert at_server.stdout == alone.stdout


def test_the_life_of_a_schedule_at_a_server_is_recorded_as_the_tokens_owner(there, published):
    person = f"{getpass.getuser()}@local"
    record = there("enable", published)[0]
    assert (record["activation"]["enabled"], record["activation"]["changed_by"]) == (True, person)
    run = there("trigger", published)[0]
    assert there("occurrences", published)[0]["run_id"] == run["run_id"]
    assert there("pause", published)[0]["activation"]["generation"] == 2
    assert there("retire", published)[0]["retired"] is True
    assert {each["actor"] for each in there("events", published)} == {person}


def test_what_is_done_on_the_folder_is_recorded_as_the_local_persons(served, horarium, configuration, write):
    installation, _ = served
    done = horarium("publish", write(configuration), "--data", installation.data)
    schedule_id = json.loads(done.stdout)["schedule_id"]
    events = horarium("events", schedule_id, "--data", installation.data)
    assert json.loads(events.stdout)["actor"] == f"local:{getpass.getuser()}"


def test_applying_at_a_server_is_found_again_by_name(there, configuration, write):
    configuration["name"] = "Only one of this name"
    path = write(configuration)
    first, second = there("apply", "-f", path)[0], there("apply", "-f", path)[0]
    assert [first["result"], second["result"]] == ["published", "unchanged"]
    assert first["schedule_id"] == second["schedule_id"]


def test_the_server_may_be_named_by_the_environment_and_a_folder_counts_more(
    served, both, horarium, monkeypatch, tmp_path
):
    installation, address = served
    monkeypatch.setenv("HORARIUM_SERVER", address)
    assert horarium("list").exit_code == 0
    monkeypatch.delenv("HORARIUM_TOKEN")
    assert "Set HORARIUM_TOKEN" in horarium("list").stderr
    assert horarium("list", "--data", installation.data).exit_code == 0


def test_naming_a_server_and_a_folder_is_a_mistake_in_the_command(horarium):
    assert horarium("list", "--server", "http://127.0.0.1:1", "--data", "x").exit_code == 2


def test_a_server_that_is_not_there_is_told_in_a_sentence(horarium, monkeypatch):
    monkeypatch.setenv("HORARIUM_TOKEN", "t")
    result = horarium("list", "--server", "http://127.0.0.1:1")
    assert result.exit_code == 1
    assert "http://127.0.0.1:1 does not answer" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_bad_token_is_told_and_not_shown(served, horarium, monkeypatch):
    monkeypatch.setenv("HORARIUM_TOKEN", "very.secret.token")
    result = horarium("list", "--server", served[1])
    assert (result.exit_code, "[unauthenticated] Set HORARIUM_TOKEN" in result.stderr) == (1, True)
    assert "secret" not in result.stderr + result.stdout


@contextmanager
def losing(address: str):
    """A server before another one, which carries requests there and loses the answers to mutations."""
    host, port = address.removeprefix("http://").split(":")
    loop = asyncio.new_event_loop()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        lines = [line for line in head.decode().split("\r\n") if line]
        fields = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}
        body = await reader.readexactly(int(fields.get("content-length", "0")))
        kept = [line for line in lines if not line.lower().startswith("connection:")]
        there, back = await asyncio.open_connection(host, int(port))
        back.write("\r\n".join([*kept, "Connection: close", "", ""]).encode() + body)
        await back.drain()
        answer = await there.read()
        if "idempotency-key" not in fields:
            writer.write(answer)
            await writer.drain()
        back.close()
        writer.close()

    server = loop.run_until_complete(asyncio.start_server(carry, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def test_a_lost_answer_names_the_key_and_the_command_that_recovers_it(
    served, both, there, horarium, configuration, write
):
    path = write(configuration)
    with losing(served[1]) as lossy:
        lost = horarium("publish", path, "--server", lossy, "-o", "json")
    assert lost.exit_code == 1
    assert lost.stdout == ""
    told = json.loads(lost.stderr)
    assert told["code"] == "outcome_unknown"
    command = told["next_step"].split("`")[-2]
    assert f"--key {told['key']}" in command
    assert f"--server {lossy}" in command
    arguments = command.removeprefix("horarium ").replace(f" --server {lossy}", "").split(" ")
    again = there(*arguments)[0]
    assert again["replayed"] is True
    assert there("get", again["schedule_id"])[0]["head"]["revision"] == 1
    assert told["key"] in str(told["next_step"])


@pytest.mark.parametrize("kind", ["enable", "trigger", "pause", "retire"])
def test_the_recovering_command_repeats_exactly_what_was_reviewed(served, both, there, horarium, published, kind):
    if kind != "enable":
        there("enable", published)
    with losing(served[1]) as lossy:
        lost = horarium(kind, published, "--server", lossy)
    assert "[outcome_unknown]" in lost.stderr
    command = lost.stderr.split("`")[-2].removeprefix("horarium ").replace(f" --server {lossy}", "")
    before = there("events", published)
    there(*command.split(" "))
    assert there("events", published) == before, "nothing was done twice"


def test_following_at_a_server_prints_what_is_new_until_ctrl_c(served, both, there, published):
    there("enable", published)
    follower = subprocess.Popen(
        [sys.executable, "-m", "starter", "occurrences", published, "--follow", "--server", served[1]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**without_ours(), "HORARIUM_TOKEN": os.environ["HORARIUM_TOKEN"]},
    )
    try:
        assert follower.stdout is not None
        first = there("trigger", published)[0]
        assert json.loads(follower.stdout.readline())["run_id"] == first["run_id"]
        second = there("trigger", published, "--overlap", "allow")[0]
        assert json.loads(follower.stdout.readline())["run_id"] == second["run_id"]
        follower.send_signal(signal.SIGINT)
        rest, errors = follower.communicate(timeout=60)
        assert (follower.returncode, rest, errors) == (130, "", "")
    finally:
        follower.kill()
        follower.wait()


def test_the_example_recovers_its_request(served, both, there):
    address = served[1]
    before = len(there("list", "--limit", "50"))
    done = subprocess.run(
        [sys.executable, "-m", "examples.recover_uncertain_request"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**without_ours(), "HORARIUM_SERVER": address, "HORARIUM_TOKEN": os.environ["HORARIUM_TOKEN"]},
    )
    assert (done.returncode, done.stderr) == (0, "")
    steps = done.stdout.splitlines()
    assert steps[0].startswith("1. Whether the publication was carried out is not known")
    assert steps[1].startswith("2. There is a receipt")
    assert "had been done before, and was not done again" in steps[2]
    assert len(there("list", "--limit", "50")) == before + 1
