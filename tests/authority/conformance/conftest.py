"""Run against the authority that ships with the product and against a small example of a platform's, or against a real one:

    HORARIUM_SECRET_AUTHORITY=… python -m pytest tests/authority/conformance \\
        --authority-url https://authority.example/horarium --authority-secret HORARIUM_SECRET_AUTHORITY
"""

import asyncio
from collections.abc import Iterator

import pytest

from horarium.authority.declared import KINDS
from horarium.authority.http import HttpAuthority
from horarium.authority.signing import Keys, keys_named
from horarium.catalog import Catalog, migrate
from tests.authority.conformance.subjects import FURNITURE, Local, Remote, Subject
from tests.authority.platform import KEYS, Platform, serving


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("authority")
    group.addoption("--authority-url", default=None, help="the authority to test, instead of those of this repository")
    group.addoption(
        "--authority-secret",
        default="HORARIUM_SECRET_AUTHORITY",
        help="the environment variable that holds the secret shared with it",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    elsewhere = metafunc.config.getoption("--authority-url", None)
    if "subject" in metafunc.fixturenames:
        kinds = ["platform"] if elsewhere else ["catalog", "example"]
        metafunc.parametrize("subject", kinds, indirect=True, scope="module")


@pytest.fixture(scope="module")
def address(request: pytest.FixtureRequest) -> Iterator[tuple[str, Keys]]:
    """Where the remote authority is, and the secret shared with it."""
    elsewhere = request.config.getoption("--authority-url", None)
    if elsewhere:
        yield elsewhere.rstrip("/"), keys_named(request.config.getoption("--authority-secret"))
        return
    platform = Platform()
    platform.declared = {
        (kind, name): KINDS[kind].model_validate(facts)
        for kind, names in FURNITURE["declarations"].items()
        for name, facts in names.items()
    }
    platform.contents = {name: text.encode() for name, text in FURNITURE["contents"].items()}
    with serving(platform) as url:
        yield url, KEYS


@pytest.fixture(scope="module")
def subject(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subject]:
    if request.param == "catalog":
        catalog = Catalog.open(f"sqlite:///{tmp_path_factory.mktemp('conformance') / 'catalog.db'}")
        migrate.upgrade(catalog)
        local = Local(catalog)
        local.furnish()
        yield local
        catalog.close()
        return
    url, keys = request.getfixturevalue("address")
    with asyncio.Runner() as runner:
        authority = HttpAuthority(base=url, keys=keys)
        yield Remote(authority, runner)
        runner.run(authority.aclose())
