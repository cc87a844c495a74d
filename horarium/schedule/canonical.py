"""One form for one document (RFC 8785, JSON Canonicalization Scheme), and the digest that people and programs
compare."""

import hashlib

import rfc8785

from horarium.errors import InvalidSchedule
from horarium.schedule.document import json_faults


def canonical_json(document: object) -> bytes:
    """The RFC 8785 form of a document, in UTF-8: keys sorted, no spaces, one spelling for each number.

    Two documents are the same configuration if and only if these bytes are equal. Nothing is filled in and nothing is
    left out, so a field that was not written differs from the same field written with its default.

    Raises `InvalidSchedule` for what has no such form: integers beyond `MAX_SAFE_INTEGER`, NaN, lone surrogates, keys
    that are not strings, types that JSON does not know, depth beyond the document's bound.
    """
    if faults := json_faults(document):
        raise InvalidSchedule(faults)
    return rfc8785.dumps(document)  # type: ignore[arg-type] # json_faults has just checked what the type asks for


def digest(document: object) -> str:
    """`sha256:` and 64 hexadecimal digits: the SHA-256 of the canonical form of a configuration as it was submitted.

    Raises what `canonical_json` raises.
    """
    return f"sha256:{hashlib.sha256(canonical_json(document)).hexdigest()}"
