"""`GET receipts/{key}`: what became of a request whose answer was lost."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from fastapi.responses import JSONResponse

from horarium.api import examples, models, queries
from horarium.api.bodies import well_formed_key
from horarium.api.openapi import SEEN, operation
from horarium.api.routes.paths import PREFIX
from horarium.api.service import Authorized
from horarium.control.receipts import find_receipt

router = APIRouter(prefix=PREFIX, tags=["Receipts"])

_EXAMPLE = {
    **examples.receipt(
        "publish", schedule_id=examples.SCHEDULE, resource_id=examples.RESOURCE, reference=examples.REFERENCE
    ),
    "replayed": True,
}


@router.get("/receipts/{key:path}", **operation(models.Receipt, _EXAMPLE, refuses=SEEN))
async def get_receipt(
    call: Authorized,
    key: Annotated[
        str,
        Path(
            description="The caller's own key, percent-encoded.",
            examples=[examples.KEY],
            json_schema_extra={"minLength": 1, "maxLength": 200, "pattern": "^[A-Za-z0-9._:-]+$"},
        ),
    ],
    _query: Annotated[queries.Nothing, Query()],
) -> JSONResponse:
    """Look up the receipt of one of the caller's own keys.

    A receipt confirms that the operation was completed; the activation may have changed since. Without a receipt the request
    was refused, or has not arrived so far. Before the same body is sent again with the same key, confirm the same account and
    scope.
    """
    receipt = await call.service.read(find_receipt, call.scope, call.principal, well_formed_key(key))
    return JSONResponse(receipt.document)
