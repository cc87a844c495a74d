"""Coming and going: the first page, signing in, signing out, and the choice of an environment."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Final

import structlog
from fastapi import Depends, Request, Response
from starlette.exceptions import HTTPException

from horarium.api.pages.forms import read_form, require_own_page
from horarium.api.pages.oidc import PENDING_FOR, UNKNOWN, read_pending
from horarium.api.pages.refusals import refusal
from horarium.api.pages.routing import page_router
from horarium.api.pages.site import PREFIX, Site, site_of
from horarium.api.pages.visits import Guest, SignedIn, sent_by
from horarium.api.problems import Rejected
from horarium.api.service import Service, limited_peer
from horarium.control import sessions
from horarium.control.principals import Principal, require_organization, require_scope
from horarium.schedule.identity import NAME, Scope

router = page_router("")
Peer = Annotated[Service, Depends(limited_peer)]

_LONGEST_ENTRY: Final = 8 * 1024
_UNSENT: Final = (
    "Your session had ended, so what you sent was not done. Sign in, look whether it still says what you want, and send it "
    "again."
)
_logger = structlog.get_logger(__name__)


@router.get("/")
async def root(request: Request) -> Response:
    """Lead a browser to the pages. A program that asks for the root is told, as ever, that nothing is there."""
    if "text/html" not in request.headers.get("accept", ""):
        raise HTTPException(404)
    site = site_of(request)
    return site.go(site.at())


@router.get(PREFIX)
@router.get(PREFIX + "/")
async def first(guest: SignedIn) -> Response:
    """Lead somebody to their environment, or let them choose where there are several."""
    found = await _environments(guest)
    if len(found) == 1:
        return guest.site.go(guest.site.at(guest.principal.org_id, found[0], "schedules"))
    return _choice(guest, found)


@router.get(PREFIX + "/environments")
async def choose(guest: SignedIn) -> Response:
    """Let somebody choose another environment."""
    return _choice(guest, await _environments(guest))


@router.get(PREFIX + "/sign-in")
async def sign_in_page(
    request: Request,
    service: Peer,
    next: str | None = None,  # noqa: A002 - as the address has it
    code: str | None = None,
    unsent: str | None = None,
) -> Response:
    """Let somebody sign in. Whoever has a link with a code is in at once, where the browser says that no other page led here.

    It says so to https:// and to its own machine only. Elsewhere the form with the code is shown, so that nobody is signed in
    by a stranger's link, as the stranger, without noticing. `unsent` is there where a form was sent without a session.
    """
    site = site_of(request)
    place = site.place(next)
    secret = request.cookies.get(site.settings.session_cookie)
    if code is not None and site.settings.takes_codes:
        if secret and await service.read(sessions.resume, secret, now=service.now()) is not None:
            return site.go(place)  # a browser that loads an address twice must not find its code used up
        if request.headers.get("sec-fetch-site") in {"none", "same-origin"}:
            return await _enter_by_code(request, service, code, place)
    told = None if unsent is None else _UNSENT
    return site.page(request, "sign_in.html", place=place, code=code or "", told=told)


@router.post(PREFIX + "/sign-in")
async def sign_in(request: Request, service: Peer) -> Response:
    """Sign in with a code or a token of a development installation."""
    site = site_of(request)
    require_own_page(request, site.settings)
    fields = await read_form(request, within=service.limits.body_within.total_seconds())
    place, entry = site.place(fields.get("next")), fields.get("code", "").strip()[:_LONGEST_ENTRY]
    if not site.settings.takes_codes:
        raise Rejected(404, "path_not_found", "Nobody signs in here with a code.", next_step="Sign in with the issuer.")
    if entry.count(".") != 2:
        return await _enter_by_code(request, service, entry, place)
    try:
        principal, until = await service.tokens.verify_until(entry)
    except Rejected as error:
        if error.status != 401:
            raise
        return _not_known(request, place)
    return await _enter(request, service, principal, place, until=until)


@router.get(PREFIX + "/sign-in/with-issuer")
async def sign_in_with_issuer(request: Request, _service: Peer, next: str | None = None) -> Response:  # noqa: A002 - as above
    """Send the browser to the issuer."""
    site = site_of(request)
    if site.issuer is None:
        raise Rejected(404, "path_not_found", "No issuer is set up here.", next_step="Look at the page to sign in.")
    address, pending = await site.issuer.begin(site.place(next))
    answer = site.go(address)
    _set_cookie(answer, site, site.settings.sign_in_cookie, pending.as_cookie(), lives=PENDING_FOR)
    return answer


@router.get(PREFIX + "/sign-in/callback")
async def come_back(
    request: Request, service: Peer, state: str | None = None, code: str | None = None, error: str | None = None
) -> Response:
    """Take the browser back from the issuer. What it kept of the sign-in is dropped, also where the person is refused.

    It stays where the issuer is silent, for another try.
    """
    site = site_of(request)
    if site.issuer is None:
        raise Rejected(404, "path_not_found", "No issuer is set up here.", next_step="Look at the page to sign in.")
    pending = read_pending(request.cookies.get(site.settings.sign_in_cookie))
    try:
        principal = await site.issuer.finish(pending, state=state, code=code, error=error)
    except Rejected as refused:
        if refused.code == UNKNOWN:
            raise  # any page may lead here, and must not end what is under way
        answer = refusal(request, refused)
        _drop_cookie(answer, site, site.settings.sign_in_cookie)
        return answer
    assert pending is not None, "what was never begun is not finished"
    answer = await _enter(request, service, principal, site.place(pending.place))
    _drop_cookie(answer, site, site.settings.sign_in_cookie)
    return answer


@router.post(PREFIX + "/sign-out")
async def sign_out(guest: SignedIn) -> Response:
    """End the session, here and in the catalog."""
    await sent_by(guest)
    await guest.service.write(sessions.end, guest.secret)
    principal = guest.principal
    _logger.info(
        "signed_out", principal=f"{principal.org_id}/{principal.name}", request_id=guest.request.state.request_id
    )
    guest.request.state.session = None
    leaving = None if guest.site.issuer is None else await guest.site.issuer.leaving()
    answer = guest.site.page(guest.request, "signed_out.html", leaving=leaving)
    _drop_cookie(answer, guest.site, guest.site.settings.session_cookie)
    answer.headers["Clear-Site-Data"] = '"cache"'
    return answer


@router.get(PREFIX + "/{org_id}")
@router.get(PREFIX + "/{org_id}/{environment_id}")
async def environment(guest: SignedIn, org_id: str, environment_id: str | None = None) -> Response:
    """Lead somebody to the schedules of an environment, or let them choose one."""
    if environment_id is None or not (NAME.fullmatch(org_id) and NAME.fullmatch(environment_id)):
        return guest.site.go(guest.site.at())
    require_organization(guest.principal, Scope(org_id=org_id, environment_id=environment_id))
    return guest.site.go(guest.site.at(org_id, environment_id, "schedules"))


async def _environments(guest: Guest) -> Sequence[str]:
    require_scope(guest.principal, guest.service.required_scope)
    return await guest.service.read(sessions.environments, guest.principal)


def _choice(guest: Guest, found: Sequence[str]) -> Response:
    return guest.site.page(guest.request, "environments.html", org_id=guest.principal.org_id, environments=found)


async def _enter_by_code(request: Request, service: Service, code: str, place: str) -> Response:
    principal = await service.write(sessions.redeem, code, now=service.now())
    return _not_known(request, place) if principal is None else await _enter(request, service, principal, place)


async def _enter(
    request: Request, service: Service, principal: Principal, place: str, *, until: datetime | None = None
) -> Response:
    site = site_of(request)
    before = request.cookies.get(site.settings.session_cookie)
    secret = await service.write(sessions.begin, principal, now=service.now(), before=before, until=until)
    _logger.info("signed_in", principal=f"{principal.org_id}/{principal.name}", request_id=request.state.request_id)
    answer = site.go(place)
    _set_cookie(answer, site, site.settings.session_cookie, secret, lives=sessions.LONGEST)
    return answer


def _not_known(request: Request, place: str) -> Response:
    told = "This code or token is not valid here: it was used, its time is over, or it is another installation's."
    return site_of(request).page(request, "sign_in.html", status=401, place=place, code="", told=told)


def _set_cookie(answer: Response, site: Site, name: str, value: str, *, lives: timedelta) -> None:
    answer.set_cookie(
        name,
        value,
        max_age=int(lives.total_seconds()),
        path="/",
        secure=site.settings.is_secure,
        httponly=True,
        samesite="lax",
    )


def _drop_cookie(answer: Response, site: Site, name: str) -> None:
    answer.delete_cookie(name, path="/", secure=site.settings.is_secure, httponly=True, samesite="lax")
