"""The OpenAPI page: what each operation takes and answers, with an example of both, and every way in which it refuses."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.routing import BaseRoute

from horarium.api import problems, requests
from horarium.api.examples import KEY
from horarium.api.models import Problem
from horarium.api.profile_models import EventSubmission, ProfileSubmission
from horarium.api.v0_models import V0NoDocument, V0ScheduleDocument
from horarium.authority.file import AuthorityFile
from horarium.control.administration import (
    ApproveRequest,
    ChangeRequest,
    CollectRequest,
    LiftRequest,
    StopRequest,
)
from horarium.control.cancellation import CancelRequest
from horarium.control.notification_requests import AddRequest, AgainRequest, HeartbeatRequest, NameRequest
from horarium.control.outcomes import OutcomeReport
from horarium.control.receipts import MAX_KEY
from horarium.control.requests import ActivateRequest, PublishRequest, RetireRequest, TriggerRequest

DESCRIPTION: Final = """\
Schedules for unattended agent runs: publish a reviewed configuration, enable it, and read what became of every due instant.

**What an answer proves, and what it does not**

* `execution_ready` says that both runtime workers are there. It is no proof that an installed worker has ever completed a
  scheduled run, nor that this schedule is active.
* A receipt confirms that one operation was completed. It is not the present state: the activation may have changed since.
* `runtime.observed_at` is the controller's last check, a failed one included. It is not proof of a successful execution.
* No preview of occurrences is implied by a record or a directory entry.

**When an answer was lost**

Keep the reviewed request, the selected account and environment, and your Idempotency-Key until the outcome is known. Read the
present state, and `GET receipts/{key}`. Repeat the same body with the same key only after confirming the same account and
environment. Do not replace the key, do not rebuild the request from a newer head, and do not enable automatically after a
recovered publication. A reset or a revoked authority can refuse recovery; keep the uncertain request for investigation then.

**Errors**

Every refusal is a problem document (RFC 9457) with a stable `code`, all faults at once in `errors`, and what to do next in
`next_step`. What the caller may not see is answered with 404, in the same words as what is not there.
"""

SEEN: Final = (401, 403, 404, 414, 422, 429, 431, 500, 503)
"""How every authorized operation may refuse."""
WITH_BODY: Final = (400, 408, 413, 415)
"""How one with a body may refuse beside that."""

_KEY_PARAMETER: Final[dict[str, Any]] = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": True,
    "description": "A text that the caller makes for this one change and keeps until its outcome is known. The same key with "
    "the same body returns the stored receipt and changes nothing; with another body it is refused.",
    "schema": {"type": "string", "minLength": 1, "maxLength": MAX_KEY, "pattern": "^[!-~]([ -~]*[!-~])?$"},
    "example": KEY,
}
_WHY: Final[Mapping[int, str]] = {
    **problems.TITLES,
    409: "The state is not the one that was reviewed, or does not allow this. `errors` lists every reason.",
    429: "Too many requests. Come again after the seconds in Retry-After.",
    503: "A part that is needed does not answer now. Nothing changed; come again after the seconds in Retry-After.",
}


def operation(
    answer: type[BaseModel],
    example: object,
    *,
    status: int = 200,
    why: str = "Done.",
    refuses: tuple[int, ...] = SEEN,
    body: type[BaseModel] | None = None,
    body_example: object = None,
    body_required: bool = True,
    keyed: bool = False,
) -> dict[str, Any]:
    """What a route's decorator is told: the answer and the body, each with its example, and the refusals.

    Answers are not validated again on their way out; the tests hold them against the models.
    """
    extra: dict[str, Any] = {}
    if keyed:
        extra["parameters"] = [_KEY_PARAMETER]
    if body is not None:
        refuses = (*refuses, *WITH_BODY)
        extra["requestBody"] = {
            "required": body_required,
            "content": {
                "application/json": {
                    "schema": {"$ref": f"#/components/schemas/{body.__name__}"},
                    "example": body_example,
                }
            },
        }
    return {
        "status_code": status,
        "response_class": JSONResponse,
        "response_model": None,
        "openapi_extra": extra,
        "responses": {
            status: {"model": answer, "description": why, "content": {"application/json": {"example": example}}},
            **refusals(refuses),
        },
    }


def refusals(statuses: Iterable[int]) -> dict[int | str, dict[str, Any]]:
    """The responses of an operation that are problem documents."""
    return {status: _problem(status) for status in sorted(set(statuses))}


def describe(app: FastAPI, routes: Iterable[BaseRoute]) -> dict[str, Any]:
    """The page of an application; `routes` are those that `operation` told something."""
    page = get_openapi(
        title=app.title,
        version=app.version,
        openapi_version="3.1.0",
        description=DESCRIPTION,
        routes=app.routes,
        tags=app.openapi_tags,
    )
    described: list[type[BaseModel]] = [
        Problem,
        PublishRequest,
        ActivateRequest,
        RetireRequest,
        TriggerRequest,
        CancelRequest,
        OutcomeReport,
        StopRequest,
        LiftRequest,
        ChangeRequest,
        CollectRequest,
        ApproveRequest,
        AuthorityFile,
        AddRequest,
        HeartbeatRequest,
        NameRequest,
        AgainRequest,
        requests.Configuration,
        requests.PreviewRequest,
        V0ScheduleDocument,
        V0NoDocument,
        ProfileSubmission,
        EventSubmission,
    ]
    _, definitions = models_json_schema(
        [(model, "validation") for model in described], ref_template="#/components/schemas/{model}"
    )
    schemas = page.setdefault("components", {}).setdefault("schemas", {})
    schemas.update(definitions["$defs"])
    # The control plane reads the configuration by itself, so its model says no more than that it is an object.
    schemas["PublishRequest"]["properties"]["configuration"] = {"$ref": "#/components/schemas/Configuration"}
    # FastAPI adds its own form of a validation error, which this API never sends.
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for route in routes:
        if isinstance(route, APIRoute) and route.include_in_schema:
            for method in route.methods or ():
                _put_examples(page["paths"][route.path_format][method.lower()], route)
    return page


def _put_examples(described: dict[str, Any], route: APIRoute) -> None:
    """Put examples back as they are: FastAPI leaves out whatever is null in them, and null means something here."""
    told: list[tuple[dict[str, Any], Mapping[str, Any]]] = [
        (described["responses"][str(status)], answer) for status, answer in route.responses.items()
    ]
    if route.openapi_extra and "requestBody" in route.openapi_extra:
        told.append((described["requestBody"], route.openapi_extra["requestBody"]))
    for there, ours in told:
        for kind, content in ours["content"].items():
            if "example" in content:
                there["content"][kind]["example"] = content["example"]


def _problem(status: int) -> dict[str, Any]:
    found: dict[str, Any] = {
        "description": _WHY[status],
        "content": {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    if status in {429, 503}:
        found["headers"] = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer", "minimum": 1}}}
    if status == 401:
        found["headers"] = {"WWW-Authenticate": {"schema": {"type": "string"}}}
    return found
