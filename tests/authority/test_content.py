"""The content folder answers about a disk that does not: nothing but the library's own errors comes out of it."""

from pathlib import Path

import pytest

from horarium.authority.content import ContentFolder
from horarium.errors import NotFound, Refused
from horarium.schedule.identity import Scope


@pytest.fixture
def content(tmp_path):
    content = ContentFolder(tmp_path, Scope(org_id="acme", environment_id="test"))
    content.inputs.mkdir(parents=True)
    (content.outputs / "reports").mkdir(parents=True)
    (content.inputs / "letters.json").write_text("{}")
    return content


def test_an_input_is_found_with_and_without_its_ending(content):
    assert content.has_input("letters")
    assert content.has_input("letters.json")
    assert content.read_input("letters") == b"{}"


@pytest.mark.parametrize(
    "reference", ["nothing", "../test/inputs/letters", "/etc/passwd", "a/../letters", ".", "", "a//b"]
)
def test_what_is_not_a_name_below_the_folder_is_not_there(content, reference):
    assert not content.has_input(reference)
    assert not content.has_output_target(reference)
    with pytest.raises(NotFound) as caught:
        content.read_input(reference)
    assert caught.value.code == "input_unreadable"


def test_a_link_that_leaves_the_folder_leads_nowhere(content, tmp_path):
    (tmp_path / "secret").write_text("s")
    (content.inputs / "link").symlink_to(tmp_path / "secret")
    assert not content.has_input("link")


def test_a_link_that_goes_in_circles_is_no_input_and_no_target(content):
    (content.inputs / "loop").symlink_to("loop")
    (content.outputs / "loop").symlink_to("loop")
    assert not content.has_input("loop")
    assert not content.has_output_target("loop")
    with pytest.raises(NotFound):
        content.read_input("loop")
    with pytest.raises(Refused):
        content.write_output("loop", "20270101T000000Z-1", "report.md", b"x")


def test_a_disk_that_refuses_is_an_unreadable_input_and_a_refused_output(content, monkeypatch):
    def refuse(*_arguments: object, **_options: object) -> bytes:
        raise PermissionError(13, "Permission denied")

    for name in ("is_file", "is_dir", "write_bytes"):
        monkeypatch.setattr(Path, name, refuse)
    assert not content.has_input("letters")
    assert not content.has_output_target("reports")
    with pytest.raises(NotFound, match="Permission denied"):
        content.read_input("letters")
    with pytest.raises(Refused, match="Permission denied"):
        content.write_output("reports", "20270101T000000Z-1", "report.md", b"x")
