"""What to do when the answer to a publication is lost: keep the key, look, and repeat the same request by hand.

Run it against an installation for development, as often as you like; it publishes one schedule and enables nothing:

    horarium dev
    HORARIUM_SERVER=http://127.0.0.1:8080 HORARIUM_TOKEN=$(horarium token) python -m examples.recover_uncertain_request

The network here is one that loses answers on purpose. The rest is what a program of yours would do.
"""

import asyncio
import json
import os
import sys
import uuid
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

import horarium
from horarium.client import OutcomeUnknown, Receipt, codes

SCOPE = {
    "org_id": os.environ.get("HORARIUM_ORGANIZATION", "local"),
    "environment_id": os.environ.get("HORARIUM_ENVIRONMENT", "dev"),
}
CONFIGURATION = {
    "name": "Hourly review",
    "calendar": {
        "timezone": "Europe/Zurich",
        "calendars": [],
        "intervals": [{"every_seconds": 3600, "offset_seconds": 0}],
        "start_at": "2026-01-01T00:00:00Z",
        "end_at": "2035-12-31T23:59:59Z",
    },
    "policy": {"overlap": "skip", "catchup_window_seconds": 600, "pause_on_failure": True},
    "run": {
        "agent_version": "ingestion-check@1",
        "input": "ingestion/manifest",
        "output_target": "ingestion-reports",
        "grants": [],
        "budget_id": None,
        "usage_class": "test_simulation",
    },
}


class LossyNetwork(httpx.AsyncHTTPTransport):
    """Delivers every request, and loses the answers to as many mutations as it is told to."""

    losses = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; the server has carried it out when this raises."""
        response = await super().handle_async_request(request)
        if self.losses and "Idempotency-Key" in request.headers:
            self.losses -= 1
            await response.aclose()
            raise httpx.ReadError("the connection was reset")
        return response


async def main(server: str, token: str, notebook: Path) -> Receipt:
    """Publish with an answer that is lost, and find out what happened. Returns the receipt of the publication."""
    network = LossyNetwork()
    async with horarium.Client(server, token=token, transport=network) as client:
        environment = await client.environments.get(SCOPE)
        request = {
            "schedule_id": str(uuid.uuid4()),
            "expected_revision": 0,
            "expected_environment_epoch": environment.authority_epoch,
            "expected_reset_generation": environment.reset_generation,
            "configuration": CONFIGURATION,
        }
        key = str(uuid.uuid4())
        # Before the first attempt: if this process dies, whoever comes next finds the request, its key and where it went.
        kept = json.dumps({"server": server, "scope": SCOPE, "key": key, "request": request})
        await asyncio.to_thread(notebook.write_text, kept)

        network.losses = 1
        try:
            receipt = await client.schedules.publish(SCOPE, request, key)
        except OutcomeUnknown as uncertain:
            print(f"1. {uncertain.sentence}")
            receipt = await recover(client, notebook)

        record = await client.schedules.get_version(SCOPE, str(receipt.resource_id))
        print(f"4. The publication is known: revision {record.reference.revision} of schedule {record.schedule_id}.")
        print("   Nothing is enabled by that. To enable it is a new decision, by a person who reviewed this version.")
        await asyncio.to_thread(notebook.unlink)  # only now: the outcome is known
        return receipt


async def recover(client: horarium.Client, notebook: Path) -> Receipt:
    """Look first, then repeat what was kept: the same body with the same key, and nothing newer.

    A person confirms between the two that account and environment are the same. What is refused here (a reset, a revoked
    authority, a key that belongs to another body) stays in the notebook, for whoever investigates.
    """
    kept: dict[str, Any] = json.loads(await asyncio.to_thread(notebook.read_text))
    scope, key, request = kept["scope"], kept["key"], kept["request"]
    try:
        found = await client.receipts.get(scope, key)
        print(f"2. There is a receipt: the publication was carried out at {found.created_at:%H:%M:%S}.")
    except codes.ReceiptNotFound:
        print("2. There is no receipt: it was refused, never arrived, or is still on its way.")
    again = await client.schedules.publish(scope, request, key)
    done = "had been done before, and was not done again" if again.replayed else "was done now"
    print(f"3. The same request with the same key: the publication {done}.")
    return again


if __name__ == "__main__":
    if not {"HORARIUM_SERVER", "HORARIUM_TOKEN"} <= set(os.environ):
        sys.exit(f"Set HORARIUM_SERVER and HORARIUM_TOKEN.\n\n{__doc__}")
    with TemporaryDirectory() as folder:
        asyncio.run(main(os.environ["HORARIUM_SERVER"], os.environ["HORARIUM_TOKEN"], Path(folder) / "request.json"))
