"""Who looks at a page, and at which environment: by the session of their browser."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar

from fastapi import Depends, Request
from sqlalchemy import Connection
from starlette.responses import HTMLResponse, Response

from horarium.api.pages.forms import read_form, require_own_page, require_token
from horarium.api.pages.routing import SignInNeeded
from horarium.api.pages.site import Site, is_refresh, site_of
from horarium.api.service import EnvironmentId, OrganizationId, Service, limited_peer, scope_in_path, service_of
from horarium.control import sessions
from horarium.control.overview import kill_switches
from horarium.control.principals import Principal, authorize
from horarium.control.sessions import Session
from horarium.schedule.identity import Scope

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """Somebody who is signed in. `secret` is what their browser showed."""

    service: Service
    site: Site
    request: Request
    session: Session
    secret: str = field(repr=False)

    @property
    def principal(self) -> Principal:
        """Who they are, as the control layer asks for it."""
        return self.session.principal


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """Somebody who is signed in, at an environment that they may see. `now` is the same for the whole answer.

    `stops` are the kill switches that are on, as `kill_switches` tells them: every page says so.
    """

    guest: Guest
    scope: Scope
    now: datetime
    stops: Sequence[Mapping[str, Any]]

    @property
    def service(self) -> Service:
        """The service, for what happens after a change."""
        return self.guest.service

    @property
    def principal(self) -> Principal:
        """Who it is."""
        return self.guest.principal

    @property
    def form_token(self) -> str:
        """What stands in every form of this session."""
        return self.guest.session.form_token

    @property
    def operates(self) -> bool:
        """Whether they may see what operators do."""
        return self.service.operator_scope in self.principal.scopes

    async def ask(self, function: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Read with a function of the control layer."""
        return await self.service.read(function, *args, **kwargs)

    async def change(self, function: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Change with a function of the control layer, as one transaction."""
        return await self.service.write(function, *args, **kwargs)

    def at(self, *parts: str, **query: Any) -> str:
        """The address of a page of this environment."""
        return self.guest.site.at(self.scope.org_id, self.scope.environment_id, *parts, **query)

    def new_key(self) -> str:
        """An idempotency key for a form: however often it is sent, one thing happens."""
        return str(uuid.uuid4())

    def render(self, name: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        """A page from a template."""
        return self.guest.site.page(self.guest.request, name, status=status, **{"now": self.now, **values})

    def go(self, *parts: str, **query: Any) -> Response:
        """Lead the browser to another page of this environment."""
        return self.guest.site.go(self.at(*parts, **query))


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A form that one of our pages sent, by the person who was shown it. `fields` are texts, each name once."""

    visit: Visit
    fields: dict[str, str]


async def signed_in(request: Request) -> Guest:
    """Let somebody through whose browser shows a session that is alive, as far as they may still ask."""
    service, site = service_of(request), site_of(request)
    secret = request.cookies.get(site.settings.session_cookie, "")
    if not secret:
        limited_peer(request)
        raise SignInNeeded
    now = service.now()
    session = await service.read(sessions.resume, secret, now=now)
    if session is None:
        limited_peer(request)
        raise SignInNeeded
    principal = session.principal
    request.state.principal = f"{principal.org_id}/{principal.name}"
    request.state.session = session
    service.principals.take((principal.org_id, principal.name))
    if session.is_stale and not is_refresh(request):
        service.meanwhile("touch session", service.write(sessions.touch, secret, now=now))
    return Guest(service=service, site=site, request=request, session=session, secret=secret)


async def visiting(
    request: Request, guest: Annotated[Guest, Depends(signed_in)], org_id: OrganizationId, environment_id: EnvironmentId
) -> Visit:
    """Let somebody through to an environment that they may see; of any other nobody is told whether it is there."""
    scope = scope_in_path(org_id, environment_id)
    authorize(guest.principal, scope, guest.service.required_scope)
    stops = await guest.service.read(kill_switches, scope)
    visit = Visit(guest=guest, scope=scope, now=guest.service.now(), stops=stops)
    request.state.visit = visit
    return visit


async def submitting(visit: Annotated[Visit, Depends(visiting)]) -> Submission:
    """Read a form, and let it through where one of our pages sent it in this very session."""
    fields = await sent_by(visit.guest)
    return Submission(visit=visit, fields=fields)


async def sent_by(guest: Guest) -> dict[str, str]:
    """The fields of a form that one of our pages sent in this very session."""
    require_own_page(guest.request, guest.site.settings)
    fields = await read_form(guest.request, within=guest.service.limits.body_within.total_seconds())
    require_token(fields, guest.session.form_token)
    return fields


SignedIn = Annotated[Guest, Depends(signed_in)]
Visited = Annotated[Visit, Depends(visiting)]
Submitted = Annotated[Submission, Depends(submitting)]
