"""Payloads are encrypted, bound to their workflow, and readable as long as their key is there."""

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.converter import ActivitySerializationContext, WorkflowSerializationContext
from temporalio.exceptions import ApplicationError

from horarium.errors import HorariumError, Unavailable
from worker.codec import BOUND_TO, ENCODING, KEY_ID, EncryptingCodec
from worker.converter import DATA_CONVERTER, KeysMissing, with_keys
from worker.payload_keys import PayloadKeys

K1, K2 = bytes(range(32)), bytes(range(1, 33))
MARKER = "a marker that nobody may find"
PLAIN = Payload(metadata={"encoding": b"json/plain", "messageType": b"note"}, data=MARKER.encode())


def codec(**keys: bytes) -> EncryptingCodec:
    return EncryptingCodec(PayloadKeys(keys))


def of_workflow(one: EncryptingCodec, workflow_id: str, namespace: str = "default") -> EncryptingCodec:
    return one.with_context(WorkflowSerializationContext(namespace=namespace, workflow_id=workflow_id))


async def refusal(one: EncryptingCodec, payload: Payload) -> Unavailable:
    with pytest.raises(Unavailable) as refused:
        await one.decode([payload])
    return refused.value


async def test_a_payload_comes_back_with_its_own_metadata_and_shows_neither_meanwhile() -> None:
    (sealed,) = await codec(k1=K1).encode([PLAIN])
    assert dict(sealed.metadata) == {"encoding": ENCODING, KEY_ID: b"k1"}
    for shown in (MARKER.encode(), b"messageType", b"json/plain"):
        assert shown not in sealed.SerializeToString()
    assert await codec(k1=K1).decode([sealed]) == [PLAIN]


async def test_the_same_payload_is_never_the_same_twice() -> None:
    first, second = await codec(k1=K1).encode([PLAIN, PLAIN])
    assert first.data != second.data
    assert len(first.data) == len(second.data)


async def test_what_was_stored_before_there_were_keys_is_read_as_it_is() -> None:
    assert await codec(k1=K1).decode([PLAIN]) == [PLAIN]


async def test_keys_rotate_without_a_gap_and_a_key_that_is_gone_is_named() -> None:
    old = await codec(k1=K1).encode([PLAIN])
    # First to read with it, everywhere; then to write with it.
    assert await codec(k1=K1, k2=K2).decode(old) == [PLAIN]
    both = codec(k2=K2, k1=K1)
    assert await both.decode(old) == [PLAIN]
    new = await both.encode([PLAIN])
    assert await codec(k1=K1, k2=K2).decode(new) == [PLAIN]

    assert await codec(k2=K2).decode(new) == [PLAIN]
    refused = await refusal(codec(k2=K2), old[0])
    assert refused.code == "payload_key_missing"
    assert "encrypted with the key 'k1', and this process does not have it" in refused.sentence
    assert "HORARIUM_PAYLOAD_KEYS" in refused.next_step


async def test_a_process_without_keys_says_which_one_it_lacks_and_fails_no_workflow() -> None:
    (sealed,) = await codec(k1=K1).encode([PLAIN])
    with pytest.raises(
        KeysMissing, match=r"with the key 'k1', and this process has no keys. \[payload_key_missing\]"
    ) as met:
        await with_keys(DATA_CONVERTER, None).decode([sealed])
    assert "HORARIUM_PAYLOAD_KEYS" in str(met.value)
    # These types end a workflow for good, and it is read as well once the keys are there.
    assert not isinstance(met.value, HorariumError)
    strange = Payload(metadata={"encoding": ENCODING, "encryption-key-id": b"theirs"}, data=b"whatever")
    with pytest.raises(KeysMissing, match="by another program"):
        await with_keys(DATA_CONVERTER, None).decode([strange])
    # Nothing is written so.
    (plain,) = await with_keys(DATA_CONVERTER, None).encode([object.__name__])
    assert plain.metadata["encoding"] == b"json/plain"


async def test_another_key_under_the_same_id_opens_nothing() -> None:
    (sealed,) = await codec(k1=K1).encode([PLAIN])
    refused = await refusal(codec(k1=K2), sealed)
    assert refused.code == "payload_unreadable"
    assert "the key 'k1' here is not the one" in refused.sentence


async def test_a_payload_opens_in_its_own_workflow_and_in_no_other() -> None:
    ours = of_workflow(codec(k1=K1), "run/acme/prod/1")
    (sealed,) = await ours.encode([PLAIN])
    assert sealed.metadata[BOUND_TO] == b"run/acme/prod/1"
    assert await ours.decode([sealed]) == [PLAIN]
    assert "belongs to another workflow" in str(await refusal(of_workflow(codec(k1=K1), "run/acme/prod/2"), sealed))


async def test_a_namespace_may_be_restored_under_another_name() -> None:
    (sealed,) = await of_workflow(codec(k1=K1), "run/1").encode([PLAIN])
    assert await of_workflow(codec(k1=K1), "run/1", namespace="restored").decode([sealed]) == [PLAIN]


async def test_who_knows_of_no_workflow_opens_what_is_bound_to_one() -> None:
    """As a codec server does, which is told payloads alone."""
    (sealed,) = await of_workflow(codec(k1=K1), "run/1").encode([PLAIN])
    assert await codec(k1=K1).decode([sealed]) == [PLAIN]


async def test_an_activity_opens_what_its_workflow_wrote_for_it() -> None:
    context = ActivitySerializationContext(
        namespace="default",
        activity_id="1",
        activity_type="work",
        activity_task_queue="queue",
        workflow_id="run/1",
        workflow_type="run",
        is_local=False,
    )
    (sealed,) = await of_workflow(codec(k1=K1), "run/1").encode([PLAIN])
    assert await codec(k1=K1).with_context(context).decode([sealed]) == [PLAIN]


@pytest.mark.parametrize("change", ["data", "workflow", "unbound", "key", "short"])
async def test_whatever_is_changed_is_noticed(change: str) -> None:
    (sealed,) = await of_workflow(codec(k1=K1), "run/1").encode([PLAIN])
    match change:
        case "data":
            sealed.data = sealed.data[:-1] + bytes([sealed.data[-1] ^ 1])
        case "workflow":
            sealed.metadata[BOUND_TO] = b"run/2"
        case "unbound":
            del sealed.metadata[BOUND_TO]
        case "key":
            sealed.metadata[KEY_ID] = b"k2"
        case _:
            sealed.data = sealed.data[:20]
    assert (await refusal(codec(k1=K1, k2=K1), sealed)).code == "payload_unreadable"


async def test_what_another_codec_encrypted_is_not_guessed_at() -> None:
    strange = Payload(metadata={"encoding": ENCODING, "encryption-key-id": b"theirs"}, data=b"whatever")
    assert "by another program" in str(await refusal(codec(k1=K1), strange))


async def test_what_a_failure_says_is_encrypted_too_and_comes_back() -> None:
    converter = with_keys(DATA_CONVERTER, PayloadKeys({"k1": K1}))
    stored = Failure()
    cause = RuntimeError(MARKER)
    error = ApplicationError(MARKER, {"details": MARKER})
    error.__cause__ = cause
    await converter.encode_failure(error, stored)
    assert MARKER.encode() not in stored.SerializeToString()

    back = await converter.decode_failure(stored)
    assert isinstance(back, ApplicationError)
    assert (back.message, back.details) == (MARKER, ({"details": MARKER},))
    assert MARKER in str(back.__cause__)


def test_without_keys_the_converter_is_the_one_of_before() -> None:
    assert with_keys(DATA_CONVERTER, None) is DATA_CONVERTER
