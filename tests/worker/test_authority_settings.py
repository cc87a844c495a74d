"""Which authority a process asks: what may stand in the environment, and that no secret is repeated where it may not."""

from pathlib import Path

import pytest

from horarium.authority.http import HttpAuthority
from horarium.authority.local import LocalAuthority
from horarium.errors import Misconfigured
from worker.settings import load

SECRET = "a-secret-of-more-than-24-bytes"
HERE = {
    "HORARIUM_AUTHORITY_URL": "https://authority.example/horarium",
    "HORARIUM_AUTHORITY_SECRET": "HORARIUM_SECRET_A",
}


def test_without_an_address_it_is_the_catalogs_own(tmp_path: Path) -> None:
    authority = load({"HORARIUM_AUTHORITY_SECRET": "HORARIUM_SECRET_A"}, data=tmp_path).authority
    assert isinstance(authority, LocalAuthority)
    assert not authority.holds_money


def test_with_an_address_it_is_the_platforms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HORARIUM_SECRET_A", f"{SECRET} whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
    authority = load(HERE, data=tmp_path).authority
    assert isinstance(authority, HttpAuthority)
    assert authority.holds_money
    assert authority.base == "https://authority.example/horarium"
    assert authority.keys.all == (SECRET.encode(), bytes(24))
    assert SECRET not in repr(authority)


@pytest.mark.parametrize(
    ("url", "private"),
    [
        ("https://authority.example", None),
        ("https://authority.example:8443/a/b/", None),
        ("http://localhost:8080", None),
        ("http://127.0.0.1:8080", None),
        ("http://[::1]:8080", None),
        ("http://authority.internal", "yes"),
        ("https://authority.example", "yes"),
    ],
)
def test_an_address_that_may_be_asked(tmp_path: Path, url: str, private: str | None) -> None:
    environ = {**HERE, "HORARIUM_AUTHORITY_URL": url, "HORARIUM_AUTHORITY_PRIVATE": private or ""}
    remote = load(environ, data=tmp_path).remote_authority
    assert remote is not None
    assert remote.url == url.rstrip("/")


@pytest.mark.parametrize(
    "change",
    [
        {"HORARIUM_AUTHORITY_URL": "http://authority.example"},
        {"HORARIUM_AUTHORITY_URL": "http://authority.example", "HORARIUM_AUTHORITY_PRIVATE": "no"},
        {"HORARIUM_AUTHORITY_URL": "http://localhost.example"},
        {"HORARIUM_AUTHORITY_URL": "authority.example"},
        {"HORARIUM_AUTHORITY_URL": "ftp://authority.example"},
        {"HORARIUM_AUTHORITY_URL": "https://"},
        {"HORARIUM_AUTHORITY_URL": "https://ada:hunter2@authority.example"},
        {"HORARIUM_AUTHORITY_URL": "https://hunter2@authority.example"},
        {"HORARIUM_AUTHORITY_URL": "https://authority.example?key=hunter2"},
        {"HORARIUM_AUTHORITY_URL": "https://authority.example#hunter2"},
        {"HORARIUM_AUTHORITY_URL": "https://authority.example:0"},
        {"HORARIUM_AUTHORITY_URL": "https://authority.example:70000"},
        {"HORARIUM_AUTHORITY_URL": "https://[::1"},
        {"HORARIUM_AUTHORITY_URL": "https://authority.example/a b"},
        {"HORARIUM_AUTHORITY_PRIVATE": "perhaps"},
        {"HORARIUM_AUTHORITY_SECRET": ""},
    ],
)
def test_a_setting_that_cannot_be_meant_is_refused_at_once(tmp_path: Path, change: dict[str, str]) -> None:
    with pytest.raises(Misconfigured) as wrong:
        load({**HERE, **change}, data=tmp_path)
    assert "HORARIUM_AUTHORITY" in str(wrong.value)
    assert "hunter2" not in str(wrong.value)


@pytest.mark.parametrize("secret", [None, "", "hunter2", "whsec_aHVudGVyMg=="])
def test_a_secret_that_is_missing_or_too_short_is_told_before_anything_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secret: str | None
) -> None:
    monkeypatch.delenv("HORARIUM_SECRET_A", raising=False)
    if secret is not None:
        monkeypatch.setenv("HORARIUM_SECRET_A", secret)
    with pytest.raises(Misconfigured, match="HORARIUM_SECRET_A") as wrong:
        load(HERE, data=tmp_path).authority  # noqa: B018 - whoever asks for it is told
    assert "hunter2" not in str(wrong.value)


def test_the_secret_itself_in_the_place_of_its_name_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="begins with HORARIUM_SECRET_") as wrong:
        load({**HERE, "HORARIUM_AUTHORITY_SECRET": SECRET}, data=tmp_path).authority  # noqa: B018 - as above
    assert SECRET not in str(wrong.value)
