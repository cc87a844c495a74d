"""Finding the agents that a person names by a Python module, and saying in a sentence why there are none.

The module is somebody else's code. Whatever it does when it is imported becomes one sentence that says what, where, and
what to do; never a traceback of ours.
"""

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path

from horarium.agents.agent import Agent
from horarium.errors import Misconfigured

COMMAND = "HORARIUM_COMMAND"
"""In the environment of a child: what the person typed, where that was another command than the child's own."""
FOLDER = "HORARIUM_AGENTS_FROM"
"""In the environment of a child: the person's working folder, where the child works in another one."""


def load_agents(module: str, *, command: str) -> list[Agent]:
    """The list `agents` of a module, which is looked for in the working folder first, as `python -m` does.

    `command` is what the person typed, for the sentences. Raises `Misconfigured`: a path in place of a module's name, no
    such module, one that cannot be imported, one without agents.
    """
    command = os.environ.get(COMMAND) or command
    if sys.path[0] != str(_folder()):
        sys.path.insert(0, str(_folder()))
    refuse_unknown(module, command=command)
    again = f"Correct it, then run `{command}` again."
    try:
        loaded = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            raise _unknown(module, command) from error
        raise Misconfigured(
            f"Module {module!r} imports {error.name!r}, which is not installed for {sys.executable} "
            f"({_place(error)}). Install it there, then run `{command}` again."
        ) from error
    except SyntaxError as error:
        place = f"{error.filename}, line {error.lineno}"
        raise Misconfigured(f"Module {module!r} is not Python: {error.msg} ({place}). {again}") from error
    except ImportError as error:
        raise Misconfigured(f"Module {module!r} cannot be imported: {error} ({_place(error)}). {again}") from error
    except (Exception, SystemExit) as error:
        raise Misconfigured(
            f"Module {module!r} raises {type(error).__name__} when it is imported: {_line(error)} ({_place(error)}). {again}"
        ) from error
    return _agents_of(loaded, module, again)


def refuse_unknown(module: str, *, command: str, path: Sequence[str] = (), inside: bool = False) -> None:
    """Raise `Misconfigured` for what is a path, and for a module that is not to be found.

    Nothing is imported. `path` are folders that are looked into first. Packages are looked into where `inside` says so;
    one that is made up only while it is imported would seem to lack a part.
    """
    name = module.removesuffix(".py")
    if name != module or "/" in module or os.sep in module:
        dotted = ".".join(part for part in Path(name).parts if part not in {"/", "."})
        where = f" in {str(Path(name).parent)!r}" if Path(name).is_absolute() else ""
        proposed = Path(name).name if where else dotted
        raise Misconfigured(
            f"{module!r} is a path, and `{command}` takes the name of a module as Python imports it: "
            f"try {proposed!r}{where}."
        )
    if not all(part.isidentifier() for part in module.split(".")):
        raise Misconfigured(
            f"{module!r} is no name of a module. `{command}` takes one as in `import examples.ingestion`."
        )
    before = list(sys.path)
    sys.path[:0] = path
    try:
        importlib.invalidate_caches()
        if not _is_there(module.split(".") if inside else module.split(".")[:1]):
            raise _unknown(module, command)
    finally:
        sys.path[:] = before


def _is_there(names: Sequence[str]) -> bool:
    try:
        found = importlib.util.find_spec(names[0])
    except (ImportError, ValueError):
        return False
    if found is None:
        return False
    folders = list(found.submodule_search_locations or [])
    for depth in range(1, len(names)):
        try:
            found = PathFinder.find_spec(".".join(names[: depth + 1]), folders)
        except KeyError:
            # A folder without __init__.py; Python tells its places only once what is around it was imported.
            folders = [str(place) for place in (Path(each, names[depth]) for each in folders) if place.is_dir()]
            continue
        if found is None:
            return False
        folders = list(found.submodule_search_locations or [])
    return True


def elsewhere(command: str) -> dict[str, str]:
    """The environment of a child that works in another folder and shall find what is found from this one."""
    inherited = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    python_path = os.pathsep.join(str(Path(part).absolute()) for part in inherited)
    return {COMMAND: command, FOLDER: str(Path.cwd()), "PYTHONPATH": python_path}


def _folder() -> Path:
    return Path(os.environ.get(FOLDER) or Path.cwd())


def _agents_of(loaded: object, module: str, again: str) -> list[Agent]:
    found = getattr(loaded, "agents", None)
    if not isinstance(found, list | tuple):
        what = (
            "has no list `agents`" if found is None else f"has `agents`, and it is no list but {type(found).__name__}"
        )
        raise Misconfigured(
            f"Module {module!r} {what}. Write `agents = [MyAgent()]` in it, as examples/ingestion does. {again}"
        )
    for each in found:
        if not isinstance(each, Agent):
            named = each.__name__ if isinstance(each, type) else type(each).__name__
            advice = f"Write {named}(), an object of the class." if isinstance(each, type) else "Derive it from Agent."
            raise Misconfigured(f"`agents` of module {module!r} holds {named}, which is no agent. {advice} {again}")
    if not found:
        raise Misconfigured(f"`agents` of module {module!r} is empty. Put at least one agent into it. {again}")
    return list(found)


def _unknown(module: str, command: str) -> Misconfigured:
    return Misconfigured(
        f"There is no module {module!r}: it was looked for in {str(_folder())!r} and on PYTHONPATH. "
        f"Run `{command}` in the folder that holds {module.partition('.')[0]!r}, or set PYTHONPATH to that folder."
    )


def _place(error: BaseException) -> str:
    """Where it happened: the innermost line of a file, so not of the interpreter's own frozen modules."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<")]
    return f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else "no line is known"


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or "without a word"
