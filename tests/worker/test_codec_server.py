"""The codec server: who is told what payloads say, and which pages may ask."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from temporalio.api.common.v1 import Payload
from temporalio.converter import WorkflowSerializationContext

from horarium.api.tokens import FixedKeys, TokenVerifier
from horarium.control.principals import WRITE_SCOPE
from horarium.errors import Misconfigured
from starter.codec_server import MAX_BODY, CodecAccess, create_codec_app, require_origins
from tests.api.house import HUMAN, PROGRAM, STRANGER, VERIFICATION, token
from worker.codec import EncryptingCodec
from worker.payload_keys import PayloadKeys

KEYS = PayloadKeys({"k2": bytes(range(1, 33)), "k1": bytes(range(32))})
OURS = "run/acme/test/7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11/1/2026-11-30T07:30:00Z"
SAID = b'"what the run said"'
PAGES = "http://localhost:8233"


@asynccontextmanager
async def server(**changed: Any) -> AsyncIterator[httpx.AsyncClient]:
    access = {
        "tokens": TokenVerifier(FixedKeys((VERIFICATION,))),
        "organization": "acme",
        "required_scope": WRITE_SCOPE,
        "origins": require_origins([f"{PAGES}/namespaces/default"]),
        **changed,
    }
    transport = httpx.ASGITransport(create_codec_app(EncryptingCodec(KEYS), CodecAccess(**access)))
    async with httpx.AsyncClient(transport=transport, base_url="http://codec.test") as client:
        yield client


async def sealed(workflow_id: str | None = OURS, *, keys: PayloadKeys = KEYS) -> Payload:
    codec = EncryptingCodec(keys)
    if workflow_id is not None:
        codec = codec.with_context(WorkflowSerializationContext(namespace="default", workflow_id=workflow_id))
    (made,) = await codec.encode([Payload(metadata={"encoding": b"json/plain"}, data=SAID)])
    return made


def as_json(*payloads: Payload) -> dict[str, Any]:
    def text(data: bytes) -> str:
        return base64.b64encode(data).decode()

    return {
        "payloads": [
            {"metadata": {name: text(value) for name, value in each.metadata.items()}, "data": text(each.data)}
            for each in payloads
        ]
    }


PLAIN = as_json(Payload(metadata={"encoding": b"json/plain"}, data=SAID))


def of(bearer: str, **more: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {bearer}", "X-Namespace": "default", **more}


async def test_a_person_is_told_what_a_payload_of_the_own_organization_says() -> None:
    async with server() as client:
        answer = await client.post("/decode", json=as_json(await sealed()), headers=of(HUMAN, Origin=PAGES))
    assert (answer.status_code, answer.json()) == (200, PLAIN)
    assert answer.headers["Access-Control-Allow-Origin"] == PAGES
    assert answer.headers["Vary"] == "Origin"
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({}, 401, "unauthenticated"),
        ({"Authorization": "Basic YTpi"}, 401, "unauthenticated"),
        (of("nonsense"), 401, "unauthenticated"),
        (of(PROGRAM), 403, "human_session_required"),
        (of(token(scope="other")), 403, "scope_missing"),
        (of(HUMAN, Origin="https://evil.example"), 403, "origin_not_allowed"),
        (of(HUMAN, Origin="null"), 403, "origin_not_allowed"),
        (of(HUMAN, Origin=f"{PAGES}.evil.example"), 403, "origin_not_allowed"),
    ],
)
@pytest.mark.parametrize("path", ["/decode", "/encode"])
async def test_nobody_else_is_told(path: str, headers: dict[str, str], status: int, code: str) -> None:
    async with server() as client:
        answer = await client.post(path, json=as_json(await sealed()), headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert "Access-Control-Allow-Origin" not in answer.headers


async def test_what_is_of_another_organization_stays_as_it_is_and_the_rest_is_told() -> None:
    theirs = await sealed(OURS.replace("acme", "globex"))
    renamed = await sealed(OURS.replace("acme", "globex"))
    renamed.metadata["horarium-workflow"] = OURS.encode()
    unbound, foreign = await sealed(None), await sealed("acme/of-another-program")
    given = (theirs, renamed, unbound, foreign)
    async with server() as client:
        answer = await client.post("/decode", json=as_json(*given, await sealed()), headers=of(HUMAN))
        assert answer.json()["payloads"] == [*as_json(*given)["payloads"], *PLAIN["payloads"]]
        stranger = await client.post("/decode", json=as_json(theirs, await sealed()), headers=of(STRANGER))
    assert stranger.json()["payloads"][0] == PLAIN["payloads"][0]
    assert stranger.json()["payloads"][1] != PLAIN["payloads"][0]


async def test_one_whose_key_is_gone_stays_as_it_is_and_names_its_key() -> None:
    old = await sealed(keys=PayloadKeys({"k0": bytes(32)}))
    async with server() as client:
        answer = await client.post("/decode", json=as_json(old, await sealed()), headers=of(HUMAN))
    assert answer.json()["payloads"] == [*as_json(old)["payloads"], *PLAIN["payloads"]]
    assert base64.b64decode(answer.json()["payloads"][0]["metadata"]["horarium-key"]) == b"k0"


@pytest.mark.parametrize("asked", ["by a person", "without a token"])
async def test_a_long_history_on_one_page_is_not_too_much(asked: str) -> None:
    """Temporal's pages ask once for each event."""
    changed = {} if asked == "by a person" else {"tokens": None}
    async with server(**changed) as client:
        for _ in range(500):
            answer = await client.post("/decode", json=PLAIN, headers=of(HUMAN))
            assert answer.status_code == 200


async def test_what_was_never_encrypted_is_passed_back() -> None:
    async with server() as client:
        answer = await client.post("/decode", json=PLAIN, headers=of(HUMAN))
    assert answer.json() == PLAIN


async def test_what_a_person_sends_by_hand_is_encrypted_with_the_first_key() -> None:
    async with server() as client:
        answer = await client.post("/encode", json=PLAIN, headers=of(HUMAN))
    (made,) = answer.json()["payloads"]
    assert base64.b64decode(made["metadata"]["horarium-key"]) == b"k2"
    assert SAID not in base64.b64decode(made["data"])


async def test_a_browser_is_told_beforehand_whether_its_page_may_ask() -> None:
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Private-Network": "true"}
    async with server() as client:
        ours = await client.options("/decode", headers={"Origin": PAGES, **asked})
        theirs = await client.options("/decode", headers={"Origin": "https://evil.example", **asked})
    assert ours.status_code == 204
    assert ours.headers["Access-Control-Allow-Origin"] == PAGES
    assert "authorization" in ours.headers["Access-Control-Allow-Headers"]
    assert ours.headers["Access-Control-Allow-Private-Network"] == "true"
    assert "Access-Control-Allow-Credentials" not in ours.headers
    assert theirs.status_code == 403
    assert "Access-Control-Allow-Origin" not in theirs.headers


async def test_without_tokens_the_origin_and_the_organization_count_all_the_same() -> None:
    async with server(tokens=None) as client:
        theirs = await sealed(OURS.replace("acme", "globex"))
        answer = await client.post("/decode", json=as_json(await sealed(), theirs))
        assert answer.json()["payloads"] == [*PLAIN["payloads"], *as_json(theirs)["payloads"]]
        refused = await client.post("/decode", json=as_json(), headers={"Origin": "https://evil.example"})
    assert refused.status_code == 403


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"[]", 422),
        (b'{"payloads": 1}', 422),
        (b'{"payloads": [{"data": 5}]}', 422),
        (b'{"payloads": [], "more": 1}', 422),
        (b" " * (MAX_BODY + 1), 413),
    ],
)
async def test_a_body_that_is_none_is_a_problem(body: bytes, status: int) -> None:
    async with server() as client:
        answer = await client.post("/decode", content=body, headers=of(HUMAN, **{"Content-Type": "application/json"}))
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "application/problem+json"


async def test_there_is_nothing_else_here() -> None:
    async with server() as client:
        assert (await client.get("/decode")).status_code == 405
        assert (await client.post("/other")).json()["code"] == "path_not_found"
        assert (await client.get("/healthz")).json() == {"status": "ok"}


def test_origins_are_written_as_browsers_do() -> None:
    given = ["http://localhost:8233/", "https://cloud.temporal.io:443/namespaces/n", "http://[::1]:8233"]
    assert require_origins(given) == {"http://localhost:8233", "https://cloud.temporal.io", "http://[::1]:8233"}
    for wrong in ("localhost:8233", "*", "ftp://x", "http://user@x", ""):
        with pytest.raises(Misconfigured):
            require_origins([wrong])
