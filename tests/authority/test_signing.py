import base64
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horarium.authority.signing import AUTHORITY_SECRET, Keys, keys_named, sign, verify
from horarium.errors import Forbidden, Misconfigured
from worker import page_settings
from worker.payload_keys import PAYLOAD_KEYS

NOW = datetime(2027, 3, 1, 9, 0, tzinfo=UTC)
OURS = Keys((b"a secret of this test, long enough",))
OTHERS = Keys((b"another secret, and no less long",))
BODY = b'{"test": 2432232314}'


def test_the_example_of_the_specification_is_signed_as_its_libraries_sign_it() -> None:
    """Secret, id, time, body and signature are those of the test of the specification's own Python library."""
    keys = keys_named("HORARIUM_SECRET_X", {"HORARIUM_SECRET_X": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"})
    headers = sign(BODY, keys, message_id="msg_p5jXN8AQM9LWM0D4loKWxJek", now=datetime.fromtimestamp(1614265330, UTC))
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


@given(body=st.binary(max_size=200), message_id=st.from_regex(r"[A-Za-z0-9_-]{1,40}", fullmatch=True))
def test_what_was_signed_is_verified_and_named(body: bytes, message_id: str) -> None:
    headers = sign(body, OURS, message_id=message_id, now=NOW)
    assert verify(headers, body, OURS, now=NOW) == message_id


@given(body=st.binary(min_size=1, max_size=60), place=st.integers(0, 59), bit=st.integers(0, 7))
def test_one_bit_of_the_body_is_enough_to_refuse_it(body: bytes, place: int, bit: int) -> None:
    headers = sign(body, OURS, message_id="m", now=NOW)
    changed = bytearray(body)
    changed[place % len(body)] ^= 1 << bit
    with pytest.raises(Forbidden):
        verify(headers, bytes(changed), OURS, now=NOW)


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("webhook-id", ""),
        ("webhook-id", "m2"),
        ("webhook-id", "m."),
        ("webhook-id", "m" * 201),
        ("webhook-timestamp", ""),
        ("webhook-timestamp", "now"),
        ("webhook-timestamp", "-1"),
        ("webhook-timestamp", "9" * 400),
        ("webhook-timestamp", "\u0661\u0662"),
        ("webhook-signature", ""),
        ("webhook-signature", "v1,"),
        ("webhook-signature", "v1"),
        ("webhook-signature", "v1,\u00e9"),
        ("webhook-signature", "v1a,AAAA"),
    ],
)
def test_a_header_that_is_not_as_signed_is_refused(header: str, value: str) -> None:
    headers = sign(BODY, OURS, message_id="m", now=NOW) | {header: value}
    with pytest.raises(Forbidden) as refused:
        verify(headers, BODY, OURS, now=NOW)
    assert refused.value.code == "bad_signature"


def test_a_message_without_headers_is_refused() -> None:
    with pytest.raises(Forbidden):
        verify({}, BODY, OURS, now=NOW)


@pytest.mark.parametrize(("seconds", "accepted"), [(-301, False), (-300, True), (0, True), (300, True), (301, False)])
def test_a_message_is_good_for_five_minutes_around_its_time(seconds: int, accepted: bool) -> None:
    headers = sign(BODY, OURS, message_id="m", now=NOW + timedelta(seconds=seconds))
    if accepted:
        assert verify(headers, BODY, OURS, now=NOW) == "m"
    else:
        with pytest.raises(Forbidden, match=r"301 s away"):
            verify(headers, BODY, OURS, now=NOW)


def test_a_secret_is_replaced_without_a_gap() -> None:
    """The receiver takes the new one beside the old; the sender changes; the receiver drops the old."""
    both = Keys((OTHERS.first, OURS.first))
    assert verify(sign(BODY, OURS, message_id="m", now=NOW), BODY, both, now=NOW) == "m"
    assert verify(sign(BODY, both, message_id="m", now=NOW), BODY, OTHERS, now=NOW) == "m"
    with pytest.raises(Forbidden):
        verify(sign(BODY, both, message_id="m", now=NOW), BODY, OURS, now=NOW)


def test_one_of_several_signatures_is_enough_and_unknown_kinds_are_passed_over() -> None:
    ours = sign(BODY, OURS, message_id="m", now=NOW)
    others = sign(BODY, OTHERS, message_id="m", now=NOW)
    several = f"v1a,AAAA {others['webhook-signature']} {ours['webhook-signature']}"
    assert verify(ours | {"webhook-signature": several}, BODY, OURS, now=NOW) == "m"


def test_only_the_first_twenty_signatures_are_looked_at() -> None:
    headers = sign(BODY, OURS, message_id="m", now=NOW)
    good = headers["webhook-signature"]
    assert verify(headers | {"webhook-signature": "v1,A " * 19 + good}, BODY, OURS, now=NOW) == "m"
    with pytest.raises(Forbidden):
        verify(headers | {"webhook-signature": "v1,A " * 20 + good}, BODY, OURS, now=NOW)


def test_a_secret_is_text_or_base64() -> None:
    raw = bytes(range(24))
    environ = {"HORARIUM_SECRET_X": f"whsec_{base64.b64encode(raw).decode()}  a-text-of-twenty-four-by"}
    assert keys_named("HORARIUM_SECRET_X", environ).all == (raw, b"a-text-of-twenty-four-by")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("HORARIUM_SECRET_X", None),
        ("HORARIUM_SECRET_X", "   "),
        ("HORARIUM_SECRET_X", "hunter2-is-too-short"),
        ("HORARIUM_SECRET_X", "whsec_hunter2!"),
        ("HORARIUM_SECRET_X", "whsec_aHVudGVyMg=="),
        ("HORARIUM_SECRET_X", "a-long-enough-secret-here hunter2"),
        ("hunter2-in-the-wrong-place-of-all", "x"),
    ],
)
def test_a_secret_that_cannot_be_used_is_told_without_showing_it(variable: str, value: str | None) -> None:
    environ = {} if value is None else {variable: value}
    with pytest.raises(Misconfigured) as wrong:
        keys_named(variable, environ)
    assert "hunter2" not in str(wrong.value)
    assert "aHVud" not in str(wrong.value)
    assert "long-enough" not in str(wrong.value)
    assert wrong.value.__cause__ is None


OTHER_PURPOSES = [
    (PAYLOAD_KEYS, "k2=file:/run/secrets/k2 k1=HORARIUM_SECRET_X"),
    (page_settings.SECRET, "HORARIUM_SECRET_X"),
    (AUTHORITY_SECRET, "HORARIUM_SECRET_X"),
]


@pytest.mark.parametrize(("setting", "value"), OTHER_PURPOSES)
def test_a_secret_that_is_for_something_else_signs_nothing(setting: str, value: str) -> None:
    """Whoever may declare a receiver would be sent proofs made with it."""
    environ = {"HORARIUM_SECRET_X": "a-secret-that-is-long-enough", setting: value}
    with pytest.raises(Misconfigured, match=rf"HORARIUM_SECRET_X .*{setting}"):
        keys_named("HORARIUM_SECRET_X", environ)
    with pytest.raises(Misconfigured, match="holds no secret"):
        keys_named("HORARIUM_SECRET_X_2", environ)


@pytest.mark.parametrize(("setting", "value"), OTHER_PURPOSES[:2])
def test_what_signs_for_an_authority_is_its_own_and_nothing_elses(setting: str, value: str) -> None:
    environ = {"HORARIUM_SECRET_X": "a-secret-that-is-long-enough", AUTHORITY_SECRET: "HORARIUM_SECRET_X"}
    assert keys_named("HORARIUM_SECRET_X", environ, named_by=AUTHORITY_SECRET).first == b"a-secret-that-is-long-enough"
    with pytest.raises(Misconfigured, match=setting):
        keys_named("HORARIUM_SECRET_X", {**environ, setting: value}, named_by=AUTHORITY_SECRET)


def test_keys_are_not_shown() -> None:
    assert "secret" not in repr(OURS)
