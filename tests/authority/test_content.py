"""The content folder: each environment's inputs and outputs are its own, and nothing beside them is reached."""

from pathlib import Path

import pytest

from horarium.authority.content import MAX_INPUT_BYTES, ContentFolder
from horarium.errors import NotFound, Refused
from horarium.schedule.identity import Scope

HERE = Scope(org_id="acme", environment_id="dev")
THERE = [Scope(org_id="acme", environment_id="live"), Scope(org_id="other", environment_id="dev")]


@pytest.fixture
def content(tmp_path: Path) -> ContentFolder:
    folder = ContentFolder(tmp_path, HERE)
    folder.inputs.mkdir(parents=True)
    (folder.outputs / "reports").mkdir(parents=True)
    (folder.inputs / "inbox.json").write_text("{}")
    return folder


def test_an_input_is_read_by_its_reference_with_or_without_json(content: ContentFolder) -> None:
    assert content.inputs == content.root / "acme" / "dev" / "inputs"
    for reference in ("inbox", "inbox.json"):
        assert content.has_input(reference)
        assert content.read_input(reference) == b"{}"


@pytest.mark.parametrize("scope", THERE)
def test_another_environment_has_none_of_it(content: ContentFolder, scope: Scope) -> None:
    other = ContentFolder(content.root, scope)
    other.inputs.mkdir(parents=True)
    other.outputs.mkdir()
    assert not other.has_input("inbox")
    assert not other.has_output_target("reports")
    with pytest.raises(NotFound):
        other.read_input("inbox")
    with pytest.raises(NotFound):
        other.write_output("reports", "run", "a.md", b"")


@pytest.mark.parametrize(
    "reference", ["../inputs/inbox", "../../live/inputs/inbox", "/etc/passwd", "", "a//b", ".", "..", "%2e"]
)
def test_a_reference_that_leads_elsewhere_is_no_input(content: ContentFolder, reference: str) -> None:
    assert not content.has_input(reference)
    assert not content.has_output_target(reference)


def test_a_link_that_leads_elsewhere_is_not_followed(content: ContentFolder, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s")
    (content.inputs / "link").symlink_to(secret)
    (content.outputs / "up").symlink_to(tmp_path)
    assert not content.has_input("link")
    assert not content.has_output_target("up")


def test_an_input_that_is_too_large_is_refused(content: ContentFolder) -> None:
    (content.inputs / "large").write_bytes(b"x" * (MAX_INPUT_BYTES + 1))
    with pytest.raises(Refused, match="larger than"):
        content.read_input("large")


def test_an_output_is_stored_under_its_run_and_replaced_by_the_same_name(content: ContentFolder) -> None:
    for data in (b"one", b"two"):
        assert content.write_output("reports", "run", "a.md", data) == "reports/run/a.md"
    assert [path.name for path in (content.outputs / "reports" / "run").iterdir()] == ["a.md"]
    assert (content.outputs / "reports" / "run" / "a.md").read_bytes() == b"two"


@pytest.mark.parametrize("name", ["../a", ".hidden", "", "a/b", "a" * 201, "ä", "a@b", "a:b"])
def test_the_rule_for_names_is_the_one_that_agents_are_told(content: ContentFolder, name: str) -> None:
    with pytest.raises(Refused) as refused:
        content.write_output("reports", "run", name, b"")
    assert refused.value.code == "output_name"
