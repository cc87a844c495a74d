"""The OpenAPI page of what a platform's own authority has to answer, made from the messages themselves.

`python -m starter.authority_page > deploy/authority.openapi.yaml` writes it anew; a test holds the file to this.
"""

import sys
from typing import Any, Final

import yaml
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from horarium.authority import contract
from horarium.authority.content import MAX_INPUT_BYTES
from horarium.authority.http import ANSWER_WITHIN, MAX_ANSWER_BYTES, READ_WITHIN
from horarium.authority.signing import TOLERANCE

_DESCRIPTION: Final = f"""\
What Horarium asks a platform's own authority, and what the authority answers. It is asked when a schedule is enabled, at
every occurrence, and at each read of an input. No answer is kept: what is true now counts.

**It fails closed.** Whatever is not a valid answer in time admits nothing: silence, a redirect, any status but 200, a type
that is not as below. At an occurrence the authority is asked again inside the schedule's catch-up window, then the run is
refused as `authority_unavailable`. Enabling is refused at once with 503. The sentence and the worker's log say why it was
no answer.

**Time.** A question is answered within {ANSWER_WITHIN.total_seconds():g} seconds, an input within
{READ_WITHIN.total_seconds():g}. An answer has at most {MAX_ANSWER_BYTES // 1024} KiB, an input {
    MAX_INPUT_BYTES // 1024 // 1024
} MiB, neither compressed.

**Signatures.** Every message is signed as the [Standard Webhooks
specification](https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md) says, and its
libraries verify it. Refuse with 401 whatever is not signed with the shared secret, and whatever was signed more than
{
    TOLERANCE.total_seconds()
    / 60:g} minutes away from your time. The path is not signed: act on the body alone. Answers are
not signed; they come over TLS.

**Once more.** Any message may be sent again, with the same effect as once: the answer to the first may have been lost.

**Money.** A question with a `run_id` reserves what the run may cost: the agent's `max_cost`, where the budget has that much
room, once for that run, in one step with the look at the room. Each run that was asked about in this way is closed later,
sooner or later, with what it cost or with null; also those that were refused, and those of which the question never
arrived. A run that was closed is closed for good: a question about it that comes afterwards reserves nothing. It suffices
to remember a closed run of which nothing was held for {2 * TOLERANCE.total_seconds() / 60:g} minutes, since no older
message is answered.
"""


def page() -> dict[str, Any]:
    """The page as a document."""
    messages = (
        contract.QuestionAsked,
        contract.QuestionAnswered,
        contract.InputWanted,
        contract.ReservationClosed,
        contract.ReservationConfirmed,
    )
    _, schemas = models_json_schema(
        [(each, "validation") for each in messages],
        ref_template="#/components/schemas/{model}",
    )
    return {
        "openapi": "3.1.0",
        "info": {"title": "A platform's authority, as Horarium asks it", "version": "1", "description": _DESCRIPTION},
        "paths": {
            contract.QUESTIONS: _operation(
                "ask",
                "May this run now?",
                contract.QuestionAsked,
                {"200": _json("What is true now.", contract.QuestionAnswered)},
            ),
            contract.INPUTS: _operation(
                "read_input",
                "The bytes of an input, for a started run.",
                contract.InputWanted,
                {
                    "200": {
                        "description": "The bytes, as they are.",
                        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
                    },
                    "404": {
                        "description": "There is no such input, or not for this person; which of the two is not told."
                    },
                },
            ),
            contract.RESERVATIONS: _operation(
                "close_reservation",
                "A run has ended, or will not run.",
                contract.ReservationClosed,
                {
                    "200": _json(
                        "It is closed, now or before, and whether or not the run was known.",
                        contract.ReservationConfirmed,
                    )
                },
                path_parameter="run_id",
            ),
        },
        "components": _components(schemas),
    }


def _components(schemas: dict[str, Any]) -> dict[str, Any]:
    """The schemas, and how messages are signed."""
    return {
        "schemas": schemas["$defs"],
        "parameters": {
            "id": _header("webhook-id", "The id of the message, the same when it is sent again.", "question_5c1f"),
            "timestamp": _header("webhook-timestamp", "When it was signed, in seconds since 1970.", "1798718400"),
            "signature": _header(
                "webhook-signature",
                "One or more signatures with spaces between, of which one has to fit: `v1,` and the base64 of the HMAC-SHA256 "
                "of `{webhook-id}.{webhook-timestamp}.{body}` under the shared secret.",
                "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
            ),
        },
    }


def _operation(
    name: str,
    summary: str,
    message: type[BaseModel],
    responses: dict[str, Any],
    *,
    path_parameter: str | None = None,
) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {"$ref": f"#/components/parameters/{each}"} for each in ("id", "timestamp", "signature")
    ]
    if path_parameter is not None:
        place = {"name": path_parameter, "in": "path", "required": True}
        parameters.append({**place, "description": "As in the body.", "schema": {"type": "string"}})
    refused = {"401": {"description": "The message is not signed as it has to be."}}
    return {
        "post": {
            "operationId": name,
            "summary": summary,
            "parameters": parameters,
            "requestBody": {"required": True, **_content(message)},
            "responses": {**responses, **refused},
        }
    }


def _json(description: str, model: type[BaseModel]) -> dict[str, Any]:
    return {"description": description, **_content(model)}


def _content(model: type[BaseModel]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}}}


def _header(name: str, description: str, example: str) -> dict[str, Any]:
    told = {"name": name, "in": "header", "required": True, "description": description}
    return {**told, "schema": {"type": "string"}, "example": example}


class _Dumper(yaml.SafeDumper):
    """Several lines stand as they are, so that a person can read them."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def written() -> str:
    """The page as it stands in its file."""
    text: str = yaml.dump(page(), Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True)
    return "# Made by `python -m starter.authority_page`; change the messages, not this file.\n" + text


if __name__ == "__main__":
    sys.stdout.write(written())
