"""The pages of one application: their settings, their addresses, and how one is rendered."""

import re
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, unquote, urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from horarium.api.pages.assets import assets, release
from horarium.api.pages.oidc import Issuer
from horarium.api.pages.rendering import render
from horarium.api.pages.settings import PagesSettings

REFRESH_HEADER: Final = "x-horarium-refresh"
"""What our script sends where a page refreshes itself: nobody did anything then."""
PREFIX: Final = "/ui"
_PLACE: Final = re.compile(r"/ui(?:/[A-Za-z0-9._~%@:+-]+)*/?(?:\?[A-Za-z0-9._~%=&+:@/-]*)?", re.ASCII)
_LONGEST_PLACE: Final = 1_000


class Site:
    """What all pages have in common."""

    def __init__(self, settings: PagesSettings) -> None:
        self.settings = settings
        self.issuer = None if settings.oidc is None else Issuer(settings.oidc, settings.callback_url)

    async def close(self) -> None:
        """Let go of what the sign-in holds."""
        if self.issuer is not None:
            await self.issuer.close()

    def at(self, *parts: str, **query: Any) -> str:
        """The address of a page below `/ui`; a query value of None is left out, and a list stands several times."""
        path = "/".join([self.settings.base + PREFIX, *(quote(part, safe="") for part in parts)])
        asked = [
            (name.rstrip("_"), each)
            for name, value in query.items()
            for each in (value if isinstance(value, list | tuple) else [value])
            if each is not None and each != ""
        ]
        return f"{path}?{urlencode(asked)}" if asked else path

    def asset(self, name: str) -> str:
        """The address of the style, the script or the sign."""
        return self.at("static", name, v=assets()[name].mark)

    def asked(self, request: Request) -> str:
        """The address of a page as a browser asked for it."""
        return self.settings.base + request.url.path + (f"?{request.url.query}" if request.url.query else "")

    def place(self, text: str | None) -> str:
        """The address of one of our own pages that somebody asked to be led to; that of the first page for any other text."""
        if text is None or len(text) > _LONGEST_PLACE or not text.startswith(self.settings.base):
            return self.at()
        below = text.removeprefix(self.settings.base)
        inside = _PLACE.fullmatch(below) is not None and not below.startswith(f"{PREFIX}/sign-")
        # A browser goes up for these, however they are written.
        climbs = {".", ".."} & set(unquote(below.partition("?")[0]).split("/"))
        return text if inside and not climbs else self.at()

    def page(self, request: Request, name: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        """A page rendered from a template. `visit` is among the values of every template, None where nobody is signed in."""
        known = {
            "site": self,
            "visit": getattr(request.state, "visit", None),
            "session": getattr(request.state, "session", None),
            "now": datetime.now(UTC),
            "release": release(),
            "here": None,
        }
        return HTMLResponse(render(name, {**known, **values}), status_code=status)

    def go(self, address: str) -> Response:
        """Lead a browser to one of our addresses, by GET."""
        return RedirectResponse(address, status_code=303)


def site_of(request: Request) -> Site:
    """The pages of the application that a request was made to."""
    site: Site = request.app.state.site
    return site


def is_refresh(request: Request) -> bool:
    """Whether a page asks for itself, without anybody doing anything."""
    return REFRESH_HEADER in request.headers
