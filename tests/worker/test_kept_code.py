"""Workflow modules are executed anew for each workflow, and compiled once."""

import inspect
import sys
from collections.abc import Iterator
from importlib import import_module, invalidate_caches
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import ModuleType

import pytest

from worker.kept_code import keep_code_of

BEFORE = "numbers = []\n\ndef which():\n    return 'before'\n"
AFTER = "numbers = []\n\ndef which():\n    return 'after, and longer'\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a package with a module `work`, another for each test since code is kept for good."""
    name = f"kept_{tmp_path.name}"
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").touch()
    (tmp_path / name / "work.py").write_text(BEFORE)
    monkeypatch.syspath_prepend(tmp_path)
    finders = list(sys.meta_path)
    yield name
    sys.meta_path[:] = finders
    for module in (name, f"{name}.work"):
        sys.modules.pop(module, None)


def executed(name: str) -> ModuleType:
    """As the sandbox has it: a module of its own each time."""
    spec = find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_import_has_its_own_globals_and_all_share_the_code(package: str) -> None:
    keep_code_of(package)
    one, other = executed(f"{package}.work"), executed(f"{package}.work")
    one.numbers.append(1)
    assert other.numbers == []
    assert one.which is not other.which
    assert one.which.__code__ is other.which.__code__


def test_a_file_that_is_replaced_meanwhile_does_not_mix_two_releases_in_a_process(package: str, tmp_path: Path) -> None:
    keep_code_of(package)
    assert executed(f"{package}.work").which() == "before"
    (tmp_path / package / "work.py").write_text(AFTER)
    invalidate_caches()
    assert executed(f"{package}.work").which() == "before"


def test_without_it_they_would_be_mixed(package: str, tmp_path: Path) -> None:
    assert executed(f"{package}.work").which() == "before"
    (tmp_path / package / "work.py").write_text(AFTER)
    invalidate_caches()
    assert executed(f"{package}.work").which() == "after, and longer"


def test_a_second_call_changes_nothing(package: str) -> None:
    keep_code_of(package)
    finders = list(sys.meta_path)
    keep_code_of(package)
    assert sys.meta_path == finders


def test_a_module_is_found_with_its_source_and_what_is_not_there_is_not(package: str) -> None:
    keep_code_of(package)
    module = import_module(f"{package}.work")
    assert inspect.getsource(module) == BEFORE
    assert find_spec(f"{package}.nothing") is None
    with pytest.raises(ModuleNotFoundError, match="nothing"):
        import_module(f"{package}.nothing")


def test_modules_of_other_packages_are_left_alone(package: str) -> None:
    keep_code_of(f"{package}_of_another_name")
    assert executed(f"{package}.work").which.__code__ is not executed(f"{package}.work").which.__code__
