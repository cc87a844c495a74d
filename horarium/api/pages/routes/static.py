"""The style, the script and the sign."""

from fastapi import Response

from horarium.api.pages.assets import assets
from horarium.api.pages.routing import page_router
from horarium.api.pages.site import PREFIX
from horarium.errors import NotFound

router = page_router(PREFIX)


@router.get("/static/{name}")
async def asset(name: str) -> Response:
    """Give one of them. Its address changes with what it holds, so a browser may keep it."""
    found = assets().get(name)
    if found is None:
        raise NotFound("path_not_found", "There is no such file.")
    return Response(
        found.data,
        media_type=found.media_type,
        headers={"Cache-Control": "public, max-age=31536000, immutable", "ETag": f'"{found.mark}"'},
    )
