"""The code of workflow modules, compiled once for a process.

The sandbox imports a workflow's module anew for each workflow, so that no two share a global. The import system would also
read and unmarshal the file each time, and compile it where bytecode is not written, as in many containers. Code never
changes, only what it is run in, so that one copy serves all: 20 KiB less for each cached workflow, and 1 to 2 ms of CPU for
each start and each replay.

It keeps a worker to one release, too: a file that is replaced under a running worker counts when the worker is started again,
as it does for everything that the worker imports once.
"""

import sys
from collections.abc import Sequence
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType


def keep_code_of(package: str) -> None:
    """From now on import a package and what is in it from one copy of its code. A second call changes nothing."""
    if not any(isinstance(finder, _KeptCodeFinder) and finder.package == package for finder in sys.meta_path):
        sys.meta_path.insert(0, _KeptCodeFinder(package))


class _KeptCodeFinder(MetaPathFinder):
    """Finds what the import system finds, and has it loaded from kept code."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """None for modules of other packages, which leaves them to the finders behind this one."""
        if fullname.partition(".")[0] != self.package:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        # Exactly that class: whoever loads modules in another way, such as a tool that rewrites them, goes on doing so.
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _KeptCodeLoader(spec.loader.name, spec.loader.path)
        return spec


class _KeptCodeLoader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType | None:
        """As compiled when this was asked for the first time."""
        return _code_of(fullname, self.path)


@cache
def _code_of(fullname: str, path: str) -> CodeType | None:
    return SourceFileLoader(fullname, path).get_code(fullname)
