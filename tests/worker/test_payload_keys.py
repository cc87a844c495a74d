"""The keys for payloads: where they are looked for, and that all that is wrong is told without showing any."""

import base64
from pathlib import Path

import pytest

from horarium.errors import Misconfigured
from worker.payload_keys import MOST_KEYS, PAYLOAD_KEYS, read_payload_keys
from worker.redaction import secrets_in
from worker.settings import load

K1, K2 = bytes(range(32)), bytes(range(1, 33))
VARIABLE = "HORARIUM_SECRET_PAYLOAD_K1"


def written(key: bytes) -> str:
    return base64.b64encode(key).decode()


def refusal(setting: str, **environ: str) -> str:
    with pytest.raises(Misconfigured) as refused:
        read_payload_keys({PAYLOAD_KEYS: setting, **environ})
    return str(refused.value)


@pytest.mark.parametrize("environ", [{}, {PAYLOAD_KEYS: ""}, {PAYLOAD_KEYS: "  "}])
def test_without_the_setting_there_are_no_keys(environ: dict[str, str]) -> None:
    assert read_payload_keys(environ) is None


def test_keys_come_from_variables_and_files_and_the_first_encrypts(tmp_path: Path) -> None:
    file = tmp_path / "k1"
    file.write_text(written(K1) + "\n")
    keys = read_payload_keys({PAYLOAD_KEYS: f"k2=HORARIUM_SECRET_K2 k1=file:{file}", "HORARIUM_SECRET_K2": written(K2)})
    assert keys is not None
    assert (keys.first, dict(keys.by_id)) == ("k2", {"k2": K2, "k1": K1})
    assert written(K2) not in repr(keys)
    assert repr(K2) not in repr(keys)


def test_everything_that_is_wrong_is_told_at_once_and_no_key_is_shown(tmp_path: Path) -> None:
    short, absent = tmp_path / "short", tmp_path / "absent"
    short.write_text(written(b"too short"))
    said = refusal(
        f"{written(K1)} k1={VARIABLE} k1={VARIABLE} k2=lower k3=HORARIUM_SECRET_NONE k4=file:{short} k5=file:{absent} "
        "k6=file:relative",
        **{VARIABLE: written(K1)},
    )
    assert written(K1) not in said
    assert written(b"too short") not in said
    for part in (
        "Number 1 has no id",
        "Number 3 has the id of another one before it",
        "Number 4 names neither a variable",
        "Number 5 is in HORARIUM_SECRET_NONE, which is not set",
        f"Number 6 is no key. The file {str(short)!r} has to hold 32 bytes",
        f"Number 7 is in the file {str(absent)!r}, which cannot be read: No such file",
        "Number 8 names a file by a path that does not begin with /",
    ):
        assert part in said
    assert "Number 2" not in said


def test_a_file_that_everybody_may_write_holds_no_key(tmp_path: Path) -> None:
    file = tmp_path / "k1"
    file.write_text(written(K1))
    file.chmod(0o666)
    assert "which everybody may write" in refusal(f"k1=file:{file}")


def test_more_keys_than_anybody_needs_are_refused() -> None:
    many = " ".join(f"k{number}={VARIABLE}" for number in range(MOST_KEYS + 1))
    assert f"names {MOST_KEYS + 1} keys, and takes {MOST_KEYS}" in refusal(many, **{VARIABLE: written(K1)})


def test_every_command_says_at_its_start_that_the_setting_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=PAYLOAD_KEYS):
        load({PAYLOAD_KEYS: "k1=nowhere"}, data=tmp_path)


def test_a_key_in_a_variable_is_kept_out_of_the_log() -> None:
    assert written(K1) in secrets_in({VARIABLE: written(K1)})
