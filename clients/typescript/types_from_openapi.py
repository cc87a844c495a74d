"""Writes `src/api.ts`: the types of the client, from the OpenAPI page that the server itself serves.

::

    python clients/typescript/types_from_openapi.py > clients/typescript/src/api.ts
    curl -s http://127.0.0.1:8080/openapi.json | python clients/typescript/types_from_openapi.py - > api.ts

Without an argument the page is that of this checkout. The codes of problems and the classes that they are of come from the
Python client, which has one for each that the server sends.
"""  # noqa: INP001 - a script beside a TypeScript package, run by its path

import json
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from horarium.api.app import create_app
from horarium.api.tokens import FixedKeys, TokenVerifier
from horarium.authority.local import LocalAuthority, ReadableContent
from horarium.catalog import Catalog
from horarium.client import problems
from horarium.schedule.identity import Scope

Schema = Mapping[str, Any]
Schemas = Mapping[str, Schema]

REQUESTS = ("PublishRequest", "ActivateRequest", "RetireRequest")
ANSWERS = ("Environment", "Receipt", "Record", "Directory")
REFUSALS = ("Problem",)
"""The schemas that the client sends and reads; those that they name are written too."""
NAMES = {"Record": "ScheduleRecord", "Problem": "ProblemDocument", "ProblemError": "ProblemPart"}
"""Our names for schemas whose own mean something else in TypeScript, or in the client."""
SHAPES = {"string": "string", "integer": "integer", "boolean": "boolean", "object": "object"}
WIDTH = 120
HEAD = """\
// Written by types_from_openapi.py from the OpenAPI page. Do not change it by hand: change the API, and write it again.
"""


class _Nothing:
    """Contents that nobody asks for: the page is made, and nothing is served."""

    def of(self, scope: Scope) -> ReadableContent:
        raise AssertionError(scope)


def page_of_this_checkout() -> dict[str, Any]:
    """The page that `horarium api` serves at /openapi.json. Nothing is stored, and nothing is asked of a database."""
    with TemporaryDirectory() as folder:
        catalog = Catalog.open(f"sqlite:///{Path(folder) / 'none.db'}")
        try:
            app = create_app(catalog, LocalAuthority(_Nothing()), tokens=TokenVerifier(FixedKeys(())))
            return dict(json.loads(json.dumps(app.openapi())))
        finally:
            catalog.close()


def render(page: Mapping[str, Any]) -> str:
    """The TypeScript source for an OpenAPI page: types, the shapes that answers are held against, and codes."""
    schemas: Schemas = page["components"]["schemas"]
    sent = _reachable(schemas, REQUESTS)
    read = [name for name in _reachable(schemas, ANSWERS) if name not in sent]
    refused = [name for name in _reachable(schemas, REFUSALS) if name not in sent]
    parts = [HEAD]
    parts += [_declaration(name, schemas[name], closed=name in sent) for name in (*sent, *read, *refused)]
    parts += [_shapes(schemas, read), _answers(ANSWERS), _codes()]
    return "\n".join(parts)


def _reachable(schemas: Schemas, roots: Iterable[str]) -> list[str]:
    """The schemas that these name, directly or not, in the order in which they are first named."""
    found: list[str] = []
    for name in roots:
        if name not in found:
            found.append(name)
            found += [each for each in _reachable(schemas, _named(schemas[name])) if each not in found]
    return found


def _named(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if "$ref" in part:
            yield part["$ref"].rpartition("/")[2]
        for name, each in part.items():
            if name not in {"examples", "example"}:
                yield from _named(each)
    elif isinstance(part, list):
        for each in part:
            yield from _named(each)


def _declaration(name: str, schema: Schema, *, closed: bool) -> str:
    comment = _comment(schema.get("description", ""), "")
    if "enum" in schema:
        return f"{comment}export type {_ours(name)} = {_type(schema, closed=closed)};\n"
    required = schema.get("required", ())
    members = "".join(
        f"{_comment(_told(member), '  ')}  readonly {key}{'' if key in required else '?'}: {_type(member, closed=closed)};\n"
        for key, member in schema["properties"].items()
    )
    return f"{comment}export interface {_ours(name)} {{\n{members}}}\n"


def _told(member: Schema) -> str:
    """The description of a member, and its bounds."""
    least, most = member.get("minimum"), member.get("maximum")
    below = member.get("exclusiveMaximum")
    bounds = [
        f"{words} {bound:.0f}"
        for words, bound in (("at least", least), ("at most", most), ("less than", below))
        if bound is not None
    ]
    said = f"{' and '.join(bounds)}.".capitalize() if bounds else ""
    return " ".join(each for each in (member.get("description", ""), said) if each)


def _type(schema: Schema, *, closed: bool) -> str:
    if "$ref" in schema:
        return _ours(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return " | ".join(_type(each, closed=closed) for each in schema["anyOf"])
    if "enum" in schema:
        # A newer server may answer with a word that this release does not know; what is sent has to be one of these.
        words = [json.dumps(each) for each in schema["enum"]]
        return " | ".join(words if closed else [*words, "(string & {})"])
    match schema.get("type"):
        case "array":
            item = _type(schema["items"], closed=closed)
            return f"readonly ({item})[]" if " " in item else f"readonly {item}[]"
        case "object":
            return "{ readonly [name: string]: unknown }"
        case "integer" | "number":
            return "number"
        case "string" | "boolean" | "null" as plain:
            return str(plain)
    raise ValueError(f"no type for {schema!r}")


def _comment(text: str, indent: str) -> str:
    if not text:
        return ""
    plain = text.replace("*/", "* /")
    if len(indent) + len(plain) + 7 <= WIDTH and "\n" not in plain:
        return f"{indent}/** {plain} */\n"
    lines = [
        line for each in plain.split("\n") for line in (textwrap.wrap(each, WIDTH - len(indent) - 3) if each else [""])
    ]
    return f"{indent}/**\n" + "".join(f"{indent} * {line}".rstrip() + "\n" for line in lines) + f"{indent} */\n"


def _shapes(schemas: Schemas, names: Iterable[str]) -> str:
    told = (
        "What an answer has to have to be believed. `?` before a shape: it may be left out; `|null` behind it: it may be "
        "null; `[]`: a list of it. A name is another of these shapes."
    )
    lines = [_comment(told, ""), "export const shapes = {\n"]
    for name in names:
        required = schemas[name].get("required", ())
        lines.append(f"  {_ours(name)}: {{\n")
        for key, member in schemas[name]["properties"].items():
            lines.append(f"    {key}: {json.dumps(('' if key in required else '?') + _shape(member))},\n")
        lines.append("  },\n")
    return "".join(lines) + "} as const satisfies { readonly [name: string]: { readonly [member: string]: string } };\n"


def _shape(schema: Schema) -> str:
    if "$ref" in schema:
        return _ours(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        (one,) = [each for each in schema["anyOf"] if each.get("type") != "null"]
        return f"{_shape(one)}|null"
    if schema.get("type") == "array":
        return f"{_shape(schema['items'])}[]"
    return "instant" if schema.get("format") == "date-time" else SHAPES[schema["type"]]


def _answers(names: Iterable[str]) -> str:
    members = "".join(f"  readonly {_ours(name)}: {_ours(name)};\n" for name in names)
    return f"/** What the calls of the client answer, by the name of the shape. */\nexport interface Answers {{\n{members}}}\n"


def _codes() -> str:
    by_status = set(problems.BY_STATUS.values()) | {problems.NotAdmissible}
    lines = [
        f"  {code}: {json.dumps(next(each.__name__ for each in kind.__mro__ if each in by_status))},\n"
        for code, kind in sorted(problems.BY_CODE.items())
    ]
    told = "Every problem code that the API answers with, and the class of error that it is thrown as."
    return (
        f"/** {told} */\nexport const codes = {{\n{''.join(lines)}}} as const;\n\n"
        "/** A code of a problem. A newer server may know more of them. */\n"
        "export type ProblemCode = keyof typeof codes | (string & {});\n"
    )


def _ours(name: str) -> str:
    return NAMES.get(name, name)


if __name__ == "__main__":
    sys.stdout.write(render(json.load(sys.stdin) if sys.argv[1:] == ["-"] else page_of_this_checkout()))
