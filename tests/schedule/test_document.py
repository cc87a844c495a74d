"""JSON from outside has one meaning, or is refused with its place."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horarium.errors import Fault, InvalidSchedule
from horarium.schedule import document
from horarium.schedule.canonical import canonical_json, digest
from horarium.schedule.document import json_faults, load_json


def refusal(data: bytes | str) -> tuple[Fault, ...]:
    with pytest.raises(InvalidSchedule) as caught:
        load_json(data)
    return caught.value.faults


def test_a_document_of_every_kind_of_value_is_read_as_it_stands():
    text = '{"a": [1, -2, 0.5, 1e3, true, false, null, "ü\\u00fc\\n"], "": {"a/b": {}}, "int64": 9223372036854775807}'
    expected = {
        "a": [1, -2, 0.5, 1000.0, True, False, None, "üü\n"],
        "": {"a/b": {}},
        "int64": 9_223_372_036_854_775_807,
    }
    assert load_json(text) == expected
    assert load_json(text.encode()) == expected


@pytest.mark.parametrize(
    ("text", "pointer", "code"),
    [
        ('{"a": 1, "a": 1}', "/a", "duplicate_key"),
        ('{"a": [{"b~/c": {"x": 1, "x": 2}}]}', "/a/0/b~0~1c/x", "duplicate_key"),
        ('{"a": NaN}', "/a", "not_a_number"),
        ("[0, -Infinity]", "/1", "not_a_number"),
        ('{"a": 1e999}', "/a", "not_a_number"),
        ('{"a": 12345678901234567890}', "/a", "integer_too_long"),
        ('{"a": -' + "9" * 10_000 + "}", "/a", "integer_too_long"),
        ('{"a": "\\ud800"}', "/a", "lone_surrogate"),
        ('{"\\udc00": 1}', "/\\udc00", "lone_surrogate"),
    ],
)
def test_a_value_that_has_no_one_meaning_is_refused_at_its_pointer(text, pointer, code):
    (fault,) = refusal(text)
    assert (fault.pointer, fault.code) == (pointer, code)


@pytest.mark.parametrize(
    ("data", "code", "place"),
    [
        ("", "not_json", "line 1, column 1"),
        ("  \n ", "not_json", "line 1, column 1"),
        ('{"a": 1,\n "b": 2,\n}', "not_json", "line 3, column 1"),
        ("{'a': 1}", "not_json", "line 1, column 2"),
        ('{"a": 1\n', "not_json", "line 2, column 1"),
        ('{"a": "x\ny"}', "not_json", "line 1, column 9"),
        ('{"a": 1} {}', "not_json", "line 1, column 10"),
        ("{} # why", "not_json", "line 1, column 4"),
        ("[01]", "not_json", "line 1, column 3"),
        ('{"a":\n  "\ud800"}', "lone_surrogate", "line 2, column 4"),
        (b'{"a":\n "caf\xe9"}', "not_utf8", "line 2, column 6"),
        (b"\xff\xfe{\x00}\x00", "not_utf8", "line 1, column 1"),
        (b"\xef\xbb\xbf{}", "byte_order_mark", "line 1, column 1"),
        ("[\n" * 65, "too_deep", "line 65, column 1"),
        ("[" * 100_000, "too_deep", "line 1, column 65"),
    ],
)
def test_a_fault_of_syntax_says_line_and_column(data, code, place):
    (fault,) = refusal(data)
    assert (fault.pointer, fault.code) == ("", code)
    assert f"at {place}" in fault.sentence


def test_sixty_four_levels_are_read_and_brackets_in_a_text_do_not_count():
    deepest = "[" * 64 + '"[[[[\\"{{{{"' + "]" * 64
    assert json.dumps(load_json(deepest), separators=(",", ":")) == deepest


def test_the_bound_of_size_counts_bytes_and_is_inclusive():
    room = document.MAX_DOCUMENT_BYTES - 2
    assert load_json('"' + "x" * room + '"') == "x" * room
    assert refusal('"' + "x" * (room + 1) + '"')[0].code == "too_large"
    assert refusal('"' + "é" * (room // 2 + 1) + '"')[0].code == "too_large"


def test_all_faults_of_a_document_are_told_at_once_in_its_order():
    faults = refusal('{"b": NaN, "a": [{"x": 1, "x": 2}, 99999999999999999999], "a": 0}')
    assert [(fault.pointer, fault.code) for fault in faults] == [
        ("/b", "not_a_number"),
        ("/a/0/x", "duplicate_key"),
        ("/a/1", "integer_too_long"),
        ("/a", "duplicate_key"),
    ]


def test_a_text_that_never_closes_is_refused_in_time_that_grows_with_its_length():
    # A scan that starts again at each of these quotes would take hours.
    assert refusal('{"a": "' + '\\"' * 120_000)[0].code == "not_json"


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_what_python_writes_is_read_back_equal(value):
    assert load_json(json.dumps(value)) == value
    assert json_faults(value) == []


@given(st.text() | st.binary() | st.text(alphabet='{}[]",:\\ud8E+-.0123456789tfn '))
def test_any_text_is_read_or_refused_and_nothing_else_happens(data):
    with suppress(InvalidSchedule):
        assert load_json(data) == json.loads(data)


@pytest.mark.parametrize(
    ("value", "pointer", "code"),
    [
        ({"a": {1, 2}}, "/a", "not_json"),
        ({"a": b"x"}, "/a", "not_json"),
        ({"a": {1: 2}}, "/a", "key_not_text"),
        ({"a": {None: 2}}, "/a", "key_not_text"),
        ({"a": [float("nan")]}, "/a/0", "not_a_number"),
        ({"a": 2**53}, "/a", "integer_too_large"),
        pytest.param({"a": -(10**10_000)}, "/a", "integer_too_large", id="10,000 digits"),
        ({"a": "\udfff"}, "/a", "lone_surrogate"),
        ({"\udfff": 1}, "/\\udfff", "lone_surrogate"),
    ],
)
def test_a_value_of_a_program_that_is_not_json_has_no_canonical_form(value, pointer, code):
    with pytest.raises(InvalidSchedule) as caught:
        canonical_json(value)
    assert [(fault.pointer, fault.code) for fault in caught.value.faults] == [(pointer, code)]


def test_a_value_that_contains_itself_is_refused_and_does_not_exhaust_the_stack():
    endless: list[object] = []
    endless.append(endless)
    assert [fault.code for fault in json_faults(endless)] == ["too_deep"]
    doubled: object = []
    for _ in range(40):
        doubled = [doubled, doubled]
    assert [fault.code for fault in json_faults(doubled)] == ["too_large"]


def test_the_canonical_form_is_that_of_rfc_8785():
    # The sample of the standard itself, section 3.2.3 and 3.2.4.
    value = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"/",
        "literals": [None, True, False],
    }
    expected = (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )
    assert canonical_json(value) == expected.encode()


@given(json_values)
def test_the_canonical_form_is_json_of_the_same_value_and_a_fixed_point(value):
    canonical = canonical_json(value)
    # Every number of the form is a double (RFC 8785, section 3.2.2.3): 1e17 is written without an exponent.
    read_back = json.loads(canonical, parse_int=float)
    assert read_back == value
    assert canonical_json(read_back) == canonical


def test_the_digest_does_not_see_the_order_of_keys_and_sees_every_field():
    reviewed = {"name": "Daily", "policy": {"overlap": "skip"}}
    # Computed with another program: printf '{"name":"Daily","policy":{"overlap":"skip"}}' | sha256sum
    assert digest(reviewed) == "sha256:69d601b1476a5c4f9ec8fc5d35e74189a077e744844948df35ceac84345212ba"
    assert digest({"policy": {"overlap": "skip"}, "name": "Daily"}) == digest(reviewed)
    assert digest({**reviewed, "policy": {"overlap": "skip", "max_concurrent_runs": 1}}) != digest(reviewed)


def test_of_a_thousand_faults_two_hundred_are_told_and_how_many_are_left():
    faults = refusal("[" + ",".join(["NaN"] * 1_000) + "]")
    assert len(faults) == 200
    assert faults[198].pointer == "/198"
    assert faults[199].code == "more_faults"
    assert "801 more" in faults[199].sentence
