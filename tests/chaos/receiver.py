"""Agents that are reached over HTTP: `python -m tests.chaos.receiver PORT`, killed and started again as anything else.

What it has taken and done is in the agents' log, which it reads again when it starts. `/once` takes a run each time it comes;
`/again` knows runs by their ids; `/polled` does too, and is asked for the outcome. It tells outcomes again and again, sometimes
another one than before, and after a crash those that it had not told.
"""

import json
import os
import signal
import sys
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

from examples.http_agent import messages
from tests.chaos.fates import LIMIT_SECONDS, STUBBORN_SECONDS, Ending, Fate, draw
from tests.chaos.words import WORDS, Said, read_words, say

SECRET = "HORARIUM_SECRET_CHAOS"
ONCE, AGAIN, POLLED = "once", "again", "polled"
_NOT_TOLD = 12
"""How often an outcome is told to an API that does not answer; with pauses of up to two seconds."""


class Receiver(ThreadingHTTPServer):
    """Takes runs, does them, and tells how they ended."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Requests)
        self.secret = os.environ[SECRET].encode()
        self.lock = threading.Lock()
        self.running: set[str] = set()
        self.ended: dict[str, dict[str, Any]] = {}
        self._take_up()

    def take(self, way: str, run: dict[str, Any]) -> None:
        """Begin a run, unless its agent knows it."""
        run_id = run["run_id"]
        with self.lock:
            known = run_id in self.running or run_id in self.ended
            if way != ONCE and known:
                return
            say(
                Said.BEGUN,
                run_id,
                agent=run["agent_version"],
                schedule=run["schedule"]["schedule_id"],
                nominal=run["nominal_time"].replace("Z", "+00:00"),
            )
            self.running.add(run_id)
        threading.Thread(target=self._do, args=(way, run), daemon=True).start()

    def standing(self, run_id: str) -> dict[str, Any] | None:
        """What a poll is told of a run; None of one that is lost."""
        with self.lock:
            if run_id in self.ended:
                return self.ended[run_id]
            return {"outcome": "running"} if run_id in self.running else None

    def _do(self, way: str, run: dict[str, Any]) -> None:
        run_id = run["run_id"]
        with httpx.Client(trust_env=False, timeout=5) as client:
            chances = self._input(client, run)
            if chances is None:
                fate = Fate(ending=Ending.FAILS, seconds=0, cost=0, reports=1, changes_its_mind=False)
            else:
                fate = draw(chances, run_id, attempt=os.getpid())
            time.sleep(fate.seconds)
            match fate.ending:
                case Ending.CRASHES:
                    say(Said.DYING, run_id, agent=run["agent_version"])
                    os.kill(os.getpid(), signal.SIGKILL)
                case Ending.HANGS:
                    return
                case Ending.RESISTS:
                    time.sleep(LIMIT_SECONDS + STUBBORN_SECONDS)
            failed = fate.ending in {Ending.FAILS, Ending.RAISES}
            outcome = {"outcome": "failed" if failed else "succeeded", "summary": f"took {fate.seconds:.2f} s"}
            if fate.cost is not None:
                outcome["cost"] = fate.cost
            with self.lock:
                # Written down with where it is to be told, in case this process dies before it was.
                where = {"url": run["outcome"]["url"], "by": run["outcome"]["by"], "told": outcome}
                say(Said.ENDED, run_id, agent=run["agent_version"], **where)
                self.ended[run_id] = outcome
                self.running.discard(run_id)
            if run["outcome"]["by"] == "callback":
                self._report_as(client, run_id, run["agent_version"], run["outcome"]["url"], outcome, fate)

    def _report_as(
        self, client: httpx.Client, run_id: str, agent: str, url: str, outcome: dict[str, Any], fate: Fate
    ) -> None:
        for _ in range(fate.reports):
            self._report(client, run_id, agent, url, outcome)
        if fate.changes_its_mind:
            other = "succeeded" if outcome["outcome"] == "failed" else "failed"
            self._report(client, run_id, agent, url, {**outcome, "outcome": other})

    def _input(self, client: httpx.Client, run: dict[str, Any]) -> dict[str, Any] | None:
        """The input, however long the API is away; None where it may not be read any more."""
        for _ in range(4):
            try:
                answer = client.get(run["input"]["url"], headers={"Authorization": f"Bearer {run['input']['token']}"})
            except httpx.HTTPError:
                time.sleep(1)
                continue
            if answer.is_success:
                return answer.json()
            if answer.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
                return None
            time.sleep(1)
        return None

    def _report(self, client: httpx.Client, run_id: str, agent: str, url: str, outcome: dict[str, Any]) -> None:
        body = json.dumps(outcome).encode()
        for attempt in range(_NOT_TOLD):
            try:
                answer = client.post(
                    url,
                    content=body,
                    headers={
                        "Content-Type": "application/json",
                        **messages.headers(body, self.secret, message_id=run_id),
                    },
                )
            except httpx.HTTPError as error:
                say(Said.REPORTED, run_id, agent=agent, told=outcome, status=0, because=type(error).__name__)
            else:
                code = answer.json().get("code") if not answer.is_success else None
                say(Said.REPORTED, run_id, agent=agent, told=outcome, status=answer.status_code, because=code)
                if answer.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
                    return
            time.sleep(min(0.2 * 2**attempt, 2))

    def _take_up(self) -> None:
        """Know again what was done before, and tell what had not been told."""
        told = set()
        untold: dict[str, tuple[str, dict[str, Any]]] = {}
        for word in read_words(Path(os.environ[WORDS])):
            match word.said:
                case Said.ENDED if "url" in word.more:
                    self.ended[word.run_id] = word.more["told"]
                    if word.more["by"] == "callback":
                        untold[word.run_id] = (word.agent, word.more)
                case Said.REPORTED if word.more["status"]:
                    told.add(word.run_id)
        left = {run_id: found for run_id, found in untold.items() if run_id not in told}
        threading.Thread(target=self._tell_all, args=(left,), daemon=True).start()

    def _tell_all(self, left: dict[str, tuple[str, dict[str, Any]]]) -> None:
        with httpx.Client(trust_env=False, timeout=5) as client:
            for run_id, (agent, more) in left.items():
                self._report(client, run_id, agent, more["url"], more["told"])


class _Requests(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        match self.path.strip("/").split("/"):
            case [way] if way in {ONCE, AGAIN, POLLED}:
                run_id = self.headers["Idempotency-Key"]
                if self._is_signed(body, run_id):
                    run = json.loads(body)
                    say(Said.POSTED, run_id, agent=run["agent_version"])
                    self.server.take(way, run)
                    self._answer(HTTPStatus.ACCEPTED)
            case [_, "runs", run_id, "cancel"]:
                if self._is_signed(body, f"cancel:{run_id}"):
                    self._answer(HTTPStatus.OK)
            case _:
                self._answer(HTTPStatus.NOT_FOUND)

    def do_GET(self) -> None:
        match self.path.strip("/").split("/"):
            case [way, "runs", run_id] if way == POLLED:
                if self._is_signed(b"", f"poll:{run_id}"):
                    standing = self.server.standing(run_id)
                    self._answer(HTTPStatus.GONE if standing is None else HTTPStatus.OK, standing)
            case _:
                self._answer(HTTPStatus.NOT_FOUND)

    def _is_signed(self, body: bytes, message_id: str) -> bool:
        given = {name.lower(): value for name, value in self.headers.items()}
        if messages.is_signed(given, body, self.server.secret, message_id=message_id):
            return True
        self._answer(HTTPStatus.UNAUTHORIZED)
        return False

    def _answer(self, status: HTTPStatus, document: dict[str, Any] | None = None) -> None:
        body = b"" if document is None else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: the agents' log has it."""


if __name__ == "__main__":
    with Receiver(int(sys.argv[1])) as server:
        print("READY", flush=True)
        server.serve_forever()
