"""The pages in this process, asked as a browser asks: with cookies, forms and the headers that browsers send."""

import re
from html import unescape
from typing import Any

import httpx

from horarium.api.pages.settings import PagesSettings
from horarium.catalog import Catalog
from horarium.control import sessions
from horarium.control.principals import OPERATOR_SCOPE, WRITE_SCOPE, Principal, PrincipalKind
from tests.api.house import Api

ORIGIN = "http://127.0.0.1:8080"
LOCAL = PagesSettings(public_url=ORIGIN, takes_codes=True, temporal_ui="http://127.0.0.1:8233/namespaces/default")
COOKIE = LOCAL.session_cookie
HOME = "/ui/acme/test"


def person(name: str = "ada", *, org_id: str = "acme", scopes: frozenset[str] | None = None) -> Principal:
    return Principal(
        name=name,
        kind=PrincipalKind.HUMAN,
        org_id=org_id,
        scopes=frozenset({WRITE_SCOPE, OPERATOR_SCOPE}) if scopes is None else scopes,
    )


class Pages(Api):
    """An application with pages, and somebody's browser at it."""

    def __init__(self, catalog: Catalog, *, settings: PagesSettings = LOCAL, **more: Any) -> None:
        super().__init__(catalog, pages=settings, **more)
        self.settings = settings

    def close(self) -> None:
        self.run(self.app.state.site.close())
        super().close()

    def browser(self, who: Principal | None = None) -> "Browser":
        """A browser, with somebody signed in or nobody."""
        opened = Browser(self)
        if who is not None:
            with self.catalog.writing() as connection:
                secret = sessions.begin(connection, who, now=self.app.state.service.now())
            opened.cookies[self.settings.session_cookie] = secret
        return opened


class Browser:
    """One browser: it keeps cookies, tells its origin, and follows no redirect by itself."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self.cookies: dict[str, str] = {}

    def ask(self, method: str, path: str, **parts: Any) -> httpx.Response:
        headers = {"Accept": "text/html", **parts.pop("headers", {})}
        if self.cookies:
            headers.setdefault("Cookie", "; ".join(f"{name}={value}" for name, value in self.cookies.items()))

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self._pages.app)
            async with httpx.AsyncClient(transport=transport, base_url=self._pages.settings.origin) as client:
                answer = await client.request(method, path, headers=headers, **parts)
                self._keep(answer)
                return answer

        return self._pages.run(send())

    def get(self, path: str, **parts: Any) -> httpx.Response:
        """Ask for an address as somebody does who typed it, or opened a link from no page."""
        return self.ask("GET", path, headers={"Sec-Fetch-Site": "none", **parts.pop("headers", {})}, **parts)

    def post(self, path: str, fields: dict[str, str], **parts: Any) -> httpx.Response:
        """Send a form as a page of ours does, with nothing but these fields."""
        headers = {"Sec-Fetch-Site": "same-origin", "Origin": self._pages.settings.origin, **parts.pop("headers", {})}
        return self.ask("POST", path, data=fields, headers=headers, **parts)

    def form_token(self, path: str = "/ui/environments") -> str:
        """What the forms of this session hold."""
        return field(self.get(path), "form_token")

    def _keep(self, answer: httpx.Response) -> None:
        for line in answer.headers.get_list("set-cookie"):
            name, _, rest = line.partition("=")
            value = rest.partition(";")[0].strip('"')
            if "max-age=0" in line.lower():
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value


def field(answer: httpx.Response, name: str) -> str:
    """The value of a field of a form."""
    found = re.search(rf'name="{name}" value="([^"]*)"', answer.text)
    assert found, answer.text
    return unescape(found[1])


def text_of(answer: httpx.Response) -> str:
    """The words of a page, its tags taken out."""
    inside = answer.text.partition("<main")[2].partition(">")[2].partition("</main>")[0]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", inside)).split())
