"""What a cached workflow must not have of its own: validators, code, and whatever is defined beside the workflow.

Each of the three was found by a profile, and made most of what a schedule took. They are held by their cause, and not by a
number of bytes, which depends on the machine.
"""

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec
from inspect import isclass
from typing import Any

import pytest
from pydantic import TypeAdapter
from temporalio.contrib.pydantic import PydanticPayloadConverter, pydantic_data_converter

from tests.workflows.test_replay import RECORDED, history, replayer
from worker.converter import DATA_CONVERTER, SharedPayloadConverter
from worker.plugin import VERSIONED_WORKFLOWS, WORKFLOWS

OURS = {*WORKFLOWS, *VERSIONED_WORKFLOWS}
MODULES = sorted({workflow.__module__ for workflow in OURS})


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The types that validators are compiled for from now on."""
    types: list[Any] = []
    compile_one = TypeAdapter.__init__

    def noted(self: TypeAdapter[Any], type_: Any, *arguments: Any, **options: Any) -> None:
        types.append(type_)
        compile_one(self, type_, *arguments, **options)

    monkeypatch.setattr(TypeAdapter, "__init__", noted)
    return types


@pytest.mark.parametrize("kind", ["schedule", "run"])
async def test_a_second_workflow_compiles_no_validators(compiled, kind):
    path = next(path for path in RECORDED if path.name == f"plain.{kind}.json")
    await replayer().replay_workflow(history(path))
    compiled.clear()
    await replayer().replay_workflow(history(path))
    assert compiled == []


async def test_with_the_converter_of_the_sdk_it_would(compiled):
    path = next(path for path in RECORDED if path.name == "plain.schedule.json")
    for _ in range(2):
        compiled.clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("worker.plugin.DATA_CONVERTER", pydantic_data_converter)
            await replayer().replay_workflow(history(path))
    assert len(compiled) > 1


def test_payloads_are_those_of_the_sdks_converter():
    ours, theirs = SharedPayloadConverter(), PydanticPayloadConverter()
    *same, sealed = ours.converters
    assert same == list(theirs.converters)
    assert [type(ours.converters[each]) for each in same] == [type(each) for each in theirs.converters.values()]
    assert ours.converters[sealed].to_payload("anything") is None, "only says which key is missing, and writes nothing"
    assert DATA_CONVERTER.failure_converter_class is pydantic_data_converter.failure_converter_class


@pytest.mark.parametrize("name", MODULES)
def test_a_module_that_is_executed_for_each_workflow_defines_no_other_class(name):
    module = sys.modules[name]
    defined = {value for value in vars(module).values() if isclass(value) and value.__module__ == name}
    assert defined <= OURS


@pytest.mark.parametrize("kind", ["schedule", "run"])
async def test_a_second_workflow_reads_no_code(monkeypatch, kind):
    path = next(path for path in RECORDED if path.name == f"plain.{kind}.json")
    await replayer().replay_workflow(history(path))
    files: list[str] = []
    read = SourceFileLoader.get_data

    def noted(self: SourceFileLoader, path: str) -> bytes:
        files.append(path)
        return read(self, path)

    monkeypatch.setattr(SourceFileLoader, "get_data", noted)
    await replayer().replay_workflow(history(path))
    assert files == []
    find_spec("this").loader.get_code("this")
    assert files  # or the line above could not fail
