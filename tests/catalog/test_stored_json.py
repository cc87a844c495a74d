"""What is stored as JSON is read where it can be written again, and is a fault otherwise."""

import pytest
from starlette.responses import JSONResponse

from horarium.catalog.stored_json import MAX_STORED_DEPTH, stored_json, stored_object
from horarium.errors import InvalidSchedule

DAMAGED = {
    "no JSON": "{",
    "nothing": "",
    "too large a number": '{"a":1e999}',
    "a negative one": '{"a":[-1e999]}',
    "no number": '{"a":NaN}',
    "infinity": '{"a":-Infinity}',
    "half a character": '{"a":{"b":"\\ud800"}}',
    "half a character in a key": '{"\\udc00":1}',
    "an integer without end": f'{{"a":{"1" * 5_000}}}',
    "nested too deep": '{"a":' * (MAX_STORED_DEPTH + 1) + "1" + "}" * (MAX_STORED_DEPTH + 1),
    "nested without end": "[" * 100_000,
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED)
def test_what_cannot_be_written_again_is_a_fault(text: str) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        stored_json(text, what="The stored config", at="/config")
    (fault,) = refused.value.faults
    assert (fault.pointer, fault.code) == ("/config", "unreadable")
    assert fault.sentence.startswith("The stored config is ")
    JSONResponse({"fault": str(fault)})


@pytest.mark.parametrize(
    "text", ['{"a":"\\ud83d\\ude00"}', '{"a":1.5e300,"b":[null,true]}', "[" * 100 + "]" * 100, "7"]
)
def test_what_can_be_is_read(text: str) -> None:
    JSONResponse(stored_json(text, what="It"))


@pytest.mark.parametrize("text", ["[]", "null", "7", '"{}"'])
def test_another_value_is_no_object(text: str) -> None:
    assert stored_object('{"a":1}', what="It") == {"a": 1}
    with pytest.raises(InvalidSchedule, match="is no object"):
        stored_object(text, what="It")
