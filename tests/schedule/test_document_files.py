"""Documents that a person names on the command line: JSON and YAML give the same values under the same bounds."""

import io
import json
import sys
from contextlib import suppress

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from horarium.errors import Fault, InvalidSchedule, Misconfigured
from horarium.schedule.document import MAX_DOCUMENT_BYTES, json_faults
from starter.documents import load_yaml, read_checked, read_document

YAML = """\
# a comment
name: Daily review   # and another
policy: {overlap: skip, pause_on_failure: false}
grants: []
budget_id: null
"""
VALUE = {
    "name": "Daily review",
    "policy": {"overlap": "skip", "pause_on_failure": False},
    "grants": [],
    "budget_id": None,
}
FLOW = "{name: Daily review, policy: {overlap: skip, pause_on_failure: false}, grants: [], budget_id: null}"


@pytest.mark.parametrize(
    ("file_name", "text"),
    [
        ("a.yaml", YAML),
        ("a.YML", YAML),
        ("a.json", json.dumps(VALUE)),
        ("a", YAML),
        ("a", FLOW),
        ("a.conf", json.dumps(VALUE, indent=2)),
    ],
)
def test_a_file_is_read_in_the_notation_that_its_name_or_its_first_character_says(tmp_path, file_name, text):
    path = tmp_path / file_name
    path.write_text(text)
    assert read_document(path) == VALUE
    assert read_document(str(path)) == VALUE


@pytest.mark.parametrize("text", [YAML, json.dumps(VALUE), FLOW])
def test_a_dash_is_standard_input_in_either_notation(monkeypatch, text):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert read_document("-") == VALUE


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("Yes", "Yes"),
        ("true", True),
        ("FALSE", False),
        ("7:30", "7:30"),
        ("2026-01-01", "2026-01-01"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("0", 0),
        ("-5", -5),
        ("+5", 5),
        ("007", "007"),
        ("0x1F", "0x1F"),
        ("0o17", "0o17"),
        ("1_000", "1_000"),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("'5'", "5"),
        ('"\\ud83d\\ude00"', "\U0001f600"),
        ("~", None),
        ("", None),
        ("null", None),
        ("Europe/Zurich", "Europe/Zurich"),
        ("<<", "<<"),
        ("=", "="),
    ],
)
def test_a_plain_scalar_means_what_the_core_schema_of_yaml_1_2_says_and_never_a_date_or_a_sum_of_sixties(
    written, value
):
    (read,) = load_yaml(f"- {written}\n")
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("text", "pointer", "code", "place"),
    [
        ("", "", "not_yaml", "empty"),
        ("# nothing", "", "not_yaml", "empty"),
        ("a: 1\na: 2", "/a", "duplicate_key", "line 2, column 1"),
        ('a: {b: 1, "b": 2}', "/a/b", "duplicate_key", "line 1, column 11"),
        ("a: &x 1\nb: *x", "/b", "alias", "line 2, column 4"),
        ("a: !!binary aGk=", "/a", "tag", "line 1, column 4"),
        ("a: !!python/object/apply:os.system [true]", "/a", "tag", "line 1, column 4"),
        ("a: [1\nb: 2", "", "not_yaml", "line 2"),
        ("a:\n\t- x", "", "not_yaml", "line 2, column 1"),
        ("a: b\n---\nc: d", "", "not_yaml", "line 2, column 1"),
        ("a: .inf", "/a", "not_a_number", "inf"),
        ("a: 1e999", "/a", "not_a_number", "inf"),
        ("a: .NaN", "/a", "not_a_number", "nan"),
        ("1: 2", "", "key_not_text", "line 1, column 1"),
        ("null: 2", "", "key_not_text", "line 1, column 1"),
        ("? [a]\n: 2", "", "key_not_text", "line 1, column 3"),
        ("a: 99999999999999999999", "/a", "integer_too_long", "line 1, column 4"),
        ("a: " + "9" * 10_000, "/a", "integer_too_long", "line 1, column 4"),
        ("a: 9007199254740992", "/a", "integer_too_large", "2^53"),
        ('a: "\\ud800"', "/a", "lone_surrogate", "surrogate"),
        ('"\\UFFFFFFFF"', "", "not_yaml", "This is not YAML"),
        ("a: \x07", "", "not_yaml", "line 1, column 4"),
        ("%YAML 1." + "9" * 5_000 + "\n--- a", "", "not_yaml", "This is not YAML"),
        ("[" * 65, "", "too_deep", "line 1, column 65"),
        ("- " * 50_000, "", "too_deep", "line 1, column"),
        ("x" * (MAX_DOCUMENT_BYTES + 1), "", "too_large", "262,144"),
        (b"a: caf\xe9", "", "not_utf8", "line 1, column 7"),
        ("\ufeffa: 1", "", "byte_order_mark", "line 1, column 1"),
    ],
)
def test_yaml_that_json_could_not_say_is_refused_with_its_place(text, pointer, code, place):
    with pytest.raises(InvalidSchedule) as caught:
        load_yaml(text)
    (fault,) = caught.value.faults
    assert (fault.pointer, fault.code) == (pointer, code)
    assert place in fault.sentence


def test_all_faults_of_a_yaml_document_are_told_at_once():
    with pytest.raises(InvalidSchedule) as caught:
        load_yaml("a: 1\na: 2\nb: [.nan, 99999999999999999999]\n3: x\n")
    assert [fault.code for fault in caught.value.faults] == [
        "duplicate_key",
        "not_a_number",
        "integer_too_long",
        "key_not_text",
    ]


def refuse_text(document):
    """A check that wants a text at /a and at /b, and says so of each."""
    wrong = [Fault(f"/{name}", "not_text", "") for name in ("a", "b") if not isinstance(document.get(name), str)]
    if wrong:
        raise InvalidSchedule(wrong)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("a: 1\na: 2\nb: 3", ["/a duplicate_key", "/a not_text", "/b not_text"]),
        ("a: &x [1]\nb: *x", ["/b alias", "/a not_text"]),
        ("a: !!str 1\nb: 2", ["/a tag", "/b not_text"]),
        ("a: .nan\nb: 2", ["/a not_a_number", "/b not_text"]),
        ("a: x\na: y\nb: z", ["/a duplicate_key"]),
        ('{"a": 1, "a": 2, "b": 3}', ["/a duplicate_key", "/a not_text", "/b not_text"]),
        ('{"a": NaN, "b": 3}', ["/a not_a_number", "/b not_text"]),
        ("a: [1\nb: 2", [" not_yaml"]),
    ],
)
def test_a_fault_of_the_notation_hides_no_other_one_and_makes_up_none(tmp_path, text, codes):
    (tmp_path / "document").write_text(text)
    with pytest.raises(InvalidSchedule) as caught:
        read_checked(tmp_path / "document", refuse_text)
    assert [f"{fault.pointer} {fault.code}" for fault in caught.value.faults] == codes


def test_a_document_is_given_back_with_what_its_check_makes_of_it(tmp_path):
    (tmp_path / "document").write_text("a: x")
    assert read_checked(tmp_path / "document", len) == ({"a": "x"}, 1)


def test_sixty_four_levels_are_read_in_yaml_too():
    deepest = "[" * 64 + "1" + "]" * 64
    assert json.dumps(load_yaml(deepest)) == deepest


@given(st.text(alphabet="ab: -[]{}#&*!|>'\"%@`,?\n\t\\0179.~<=xuUN\ud800") | st.text() | st.binary())
def test_any_text_is_read_as_json_values_or_refused(data):
    with suppress(InvalidSchedule):
        assert json_faults(load_yaml(data)) == []


plain_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False, width=16)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cn", "Co"]), max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abcyn-0", min_size=1, max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(plain_values)
def test_json_is_read_the_same_as_yaml(value):
    # What PyYAML writes for YAML 1.1 quotes more than 1.2 needs, so that both readers agree on it.
    assert load_yaml(json.dumps(value)) == value
    assert load_yaml(yaml.safe_dump(value, allow_unicode=True)) == value


def test_what_cannot_be_read_is_one_sentence_with_the_next_step(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "plain").write_text("x")
    (tmp_path / "huge.json").write_text(" " * (MAX_DOCUMENT_BYTES + 1))
    for name, words in [
        ("missing.yaml", "There is no file 'missing.yaml'"),
        ("folder.yaml", "is a folder"),
        ("plain/x.yaml", "cannot be read: Not a directory"),
        ("huge.json", "more than 262,144 bytes"),
        ("nul\x00.yaml", "cannot be read"),
        ("x" * 5_000, "cannot be read: File name too long"),
        ("/dev/zero", "more than 262,144 bytes"),
    ]:
        with pytest.raises(Misconfigured) as caught:
            read_document(name)
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_file_that_may_not_be_read_says_so(tmp_path, monkeypatch):
    # Whoever runs the tests may be root, who may read everything; so the system's answer is given here.
    def refuse(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", refuse)
    with pytest.raises(Misconfigured, match="may not be read by this user"):
        read_document(tmp_path / "secret.yaml")
