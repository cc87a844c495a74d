"""`horarium token --sign-in`, and the pages of `horarium api`, as a person on the machine runs them."""

import json
import re
import signal
import subprocess
import sys

import httpx
import pytest

from tests.api.commands import READY_WITHIN, ROOT, environment, horarium


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("installation")
    done = horarium("setup", "--no-temporal", "--data", str(folder))
    assert done.returncode == 0, done.stderr
    return folder


def test_a_link_signs_in_at_an_api_that_is_a_process_of_its_own(data):
    api = subprocess.Popen(
        [sys.executable, "-m", "starter", "api", "--port", "0", "--data", str(data)],
        cwd=ROOT,
        env=environment(HORARIUM_TEMPORAL_UI="http://127.0.0.1:8233"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        address = re.search(r"http://\S+", api.stdout.readline())[0]
        done = horarium("token", "--sign-in", "--data", str(data), HORARIUM_PUBLIC_URL=address)
        assert done.returncode == 0, done.stderr
        link = done.stdout.strip()
        assert link.startswith(f"{address}/ui/sign-in?code=")
        opened = {"Sec-Fetch-Site": "none"}
        with httpx.Client(follow_redirects=True, timeout=READY_WITHIN, headers=opened) as client:
            page = client.get(link)
            assert (page.status_code, page.url.path) == (200, "/ui/local/dev/schedules")
            assert "No schedule is published here yet" in page.text
        with httpx.Client(timeout=READY_WITHIN, headers=opened) as other:
            assert other.get(link).status_code == 401
    finally:
        api.send_signal(signal.SIGTERM)
        rest, _ = api.communicate(timeout=READY_WITHIN)
    assert link.partition("code=")[2] not in rest


def test_the_link_as_a_document_says_whom_it_is_for(data):
    done = horarium("token", "--sign-in", "--subject", "grace", "-o", "json", "--data", str(data))
    told = json.loads(done.stdout)
    assert told["claims"]["sub"] == "grace"
    assert told["link"].startswith("http://127.0.0.1:8080/ui/sign-in?code=")


def test_a_key_is_given_no_link(data):
    done = horarium("token", "--sign-in", "--kind", "key", "--data", str(data))
    assert (done.returncode, done.stdout) == (1, "")
    assert "human_session_required" in done.stderr


def test_where_tokens_are_an_issuers_there_is_no_link(data):
    done = horarium("token", "--sign-in", "--data", str(data), HORARIUM_JWKS_URL="https://id.example/keys")
    assert (done.returncode, done.stdout) == (1, "")
    assert "HORARIUM_JWKS_URL is set" in done.stderr


def test_an_issuer_whose_secret_is_missing_is_told_at_the_start(data):
    done = horarium(
        "api",
        "--port",
        "0",
        "--data",
        str(data),
        HORARIUM_OIDC_ISSUER="https://id.example",
        HORARIUM_OIDC_CLIENT_ID="horarium",
        HORARIUM_OIDC_CLIENT_SECRET="HORARIUM_SECRET_OIDC",
    )
    assert done.returncode == 1
    assert "HORARIUM_SECRET_OIDC, which is not set" in done.stderr
