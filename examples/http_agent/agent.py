"""The agent: counts the lines of its input. Everything else here is what any agent behind the gateway `http` needs.

It answers at once and works afterwards. A run that it has seen before is not done again, so that it can be declared
idempotent: after a lost answer, Horarium sends the same run once more.
"""

import json
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

from examples.http_agent import messages

# A person's event has up to 64 KiB by itself, and the settings of a profile come on top.
MAX_BODY = 512 * 1024
REPORT_ATTEMPTS = 5


class LineCounter(ThreadingHTTPServer):
    """Takes runs. `secret` is the one that the destination is registered with."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], secret: bytes) -> None:
        super().__init__(address, _Requests)
        self.secret = secret
        self.runs: dict[str, dict[str, Any]] = {}
        """What is known of each run, by its id. A real agent keeps this in a database."""
        self._lock = threading.Lock()

    def take(self, run: dict[str, Any]) -> None:
        """Begin a run, unless it has been begun before."""
        with self._lock:
            if run["run_id"] in self.runs:
                return
            self.runs[run["run_id"]] = {"outcome": "running"}
        threading.Thread(target=self._do, args=(run,), daemon=True).start()

    def forget(self, run_id: str) -> None:
        """A person cancelled the run; what it will report is not wanted any more."""
        if run_id in self.runs:
            self.runs[run_id] = {"outcome": "failed", "summary": "It was cancelled.", "cost": 0}

    def _do(self, run: dict[str, Any]) -> None:
        run_id = run["run_id"]
        with httpx.Client(trust_env=False, timeout=10) as client:
            outcome = self._counted(client, run)
            if self.runs[run_id]["outcome"] != "running":
                return
            self.runs[run_id] = outcome
            if run["outcome"]["by"] == "callback":
                self._report(client, run, outcome)

    def _counted(self, client: httpx.Client, run: dict[str, Any]) -> dict[str, Any]:
        """Do the work. The run's own token opens its input and nothing else, and dies with the run."""
        try:
            read = client.get(run["input"]["url"], headers={"Authorization": f"Bearer {run['input']['token']}"})
            # 403 says that access was lost since the run was admitted.
            read.raise_for_status()
        except httpx.HTTPError as error:
            return {"outcome": "failed", "summary": f"The input could not be read: {error}"[:300], "cost": 0}
        lines = len(read.content.splitlines())
        return {"outcome": "succeeded", "summary": f"The input has {lines} lines.", "cost": lines}

    def _report(self, client: httpx.Client, run: dict[str, Any], outcome: dict[str, Any]) -> None:
        """Report until it was heard: the same outcome may be reported again, and counts once."""
        body = json.dumps(outcome).encode()
        for attempt in range(REPORT_ATTEMPTS):
            try:
                answer = client.post(
                    run["outcome"]["url"],
                    content=body,
                    headers={
                        "Content-Type": "application/json",
                        **messages.headers(body, self.secret, message_id=run["run_id"]),
                    },
                )
            except httpx.HTTPError:
                answer = None
            # 409 says that the run ended otherwise: there is nothing to be added to that.
            if answer is not None and answer.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
                return
            threading.Event().wait(2**attempt)


class _Requests(BaseHTTPRequestHandler):
    server: LineCounter

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MAX_BODY:
            self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        body = self.rfile.read(int(length))
        parts = self.path.strip("/").split("/")
        match parts:
            case ["runs", run_id, "cancel"]:
                if self._is_signed(body, f"cancel:{run_id}"):
                    self.server.forget(run_id)
                    self._answer(HTTPStatus.OK)
            case [""]:
                run_id = self.headers.get("Idempotency-Key", "")
                if self._is_signed(body, run_id):
                    self.server.take(json.loads(body))
                    self._answer(HTTPStatus.ACCEPTED)
            case _:
                self._answer(HTTPStatus.NOT_FOUND)

    def do_GET(self) -> None:
        """Where the destination's outcome is learnt by polls."""
        match self.path.strip("/").split("/"):
            case ["runs", run_id] if run_id in self.server.runs:
                if self._is_signed(b"", f"poll:{run_id}"):
                    self._answer(HTTPStatus.OK, self.server.runs[run_id])
            case _:
                self._answer(HTTPStatus.NOT_FOUND)

    def _is_signed(self, body: bytes, message_id: str) -> bool:
        given = {name.lower(): value for name, value in self.headers.items()}
        signed = messages.is_signed(given, body, self.server.secret, message_id=message_id)
        if not signed:
            self._answer(HTTPStatus.UNAUTHORIZED)
        return signed

    def _answer(self, status: HTTPStatus, document: dict[str, Any] | None = None) -> None:
        body = b"" if document is None else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: what is worth telling is in the ledger."""
