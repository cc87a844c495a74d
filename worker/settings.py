"""Where things are, from the environment: every process of one installation is given the same."""

import getpass
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from activities.pace import Pace
from horarium.authority.asking import Authority
from horarium.authority.content import ContentFolder
from horarium.authority.local import LocalAuthority
from horarium.authority.signing import AUTHORITY_SECRET, keys_named
from horarium.errors import Misconfigured, Refused
from horarium.schedule.ceilings import PER_PROFILE, TOTAL, USUAL, Ceilings
from horarium.schedule.identity import Scope
from worker.metrics_settings import PORT as _METRICS_PORT
from worker.metrics_settings import MetricsAddress, read_metrics_address
from worker.page_settings import PageVariables, read_page_variables
from worker.payload_keys import read_payload_keys

_BUILD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+-]*(\.[A-Za-z0-9_+-]+)*")
"""What Temporal takes as a build id, and what can be typed at a command line as it is."""
_LONGEST_NAME = 100

LOCAL_API = "http://127.0.0.1:8080"
"""Where the API of an installation on one machine is, if nobody said otherwise."""
DEFAULT_DATA = Path(".horarium")

DEFAULT_REQUESTS_PER_SECOND = 50

DEFAULT_CACHED_WORKFLOWS = 3_000
"""What fits into 2 GiB whatever the schedules do.

A schedule worker takes 112 MiB, and 100 KiB for a schedule or a run in its cache. To that come some 2 KiB for each event of the
history: nothing of ours grows with it, so it is Temporal's core that keeps them. So 3,000 new ones take 0.4 GiB, 1.0 GiB in
the middle of their 200 events, and 1.6 GiB if all were at the end. What was used least recently leaves the cache first. A
wake of what is not in it asks Temporal for the history and replays it: 4 ms of CPU become 9.5 with 25 events. Idle, neither
costs any.
"""
MOST_CACHED_WORKFLOWS = 1_000_000
_CACHED = "HORARIUM_CACHED_WORKFLOWS"

DEFAULT_AGENT_RUNS = 500
"""More than a herd has. What is due beyond it begins when another ends, if one does while its runner's lease lasts: with the
SDK's default of a hundred, two of three runs of a herd of 300 whose agents take a minute do not begin at all."""
MOST_AGENT_RUNS = 10_000
_AGENT_RUNS = "HORARIUM_AGENT_RUNS"

MOST_RUNS = 10**12
"""Beyond that a ceiling is no ceiling."""
MOST_DAYS = 36_500
"""A hundred years of thread events."""
_RETENTION = "SCHEDULER_EVENT_RETENTION_DAYS"

_SERVED = {"HORARIUM_ORGANIZATION": "local", "HORARIUM_ENVIRONMENT": "dev"}
_LOCAL_HOSTS = {"localhost", "127.0.0.1", "::1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSettings:
    """Whom the API lets in, and how often.

    `keys_url` is the address of the JWK set that tokens are signed with; without it the key file of the data folder is used,
    which is for development. `issuer` and `audience` are what tokens must name, where they are set. `required_scope` is what
    every operation on schedules needs, None for the scope of the contract, and `operator_scope` what operators need, None for
    ours. The rate is that of one principal.
    """

    keys_url: str | None = None
    issuer: str | None = None
    audience: str | None = None
    required_scope: str | None = None
    operator_scope: str | None = None
    requests_per_second: int = DEFAULT_REQUESTS_PER_SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteAuthority:
    """The platform's own authority: its address, and the environment variable that holds the secret shared with it."""

    url: str
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """Which build of the two workers a process is, where their versions are told apart while one replaces the other.

    `name` is that of the Temporal worker deployment, the same for all builds; `build_id` says which release this is.
    """

    name: str
    build_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One installation as a process sees it.

    `data` is the folder of the embedded installation; `catalog_url` an SQLAlchemy URL, by default a file in it. `scope` is
    the organization and environment that is served. `public_url` is where agents behind the gateway http find the API: it is
    told to them with each run. `deployment` is None where workers of several builds are not told apart. `ceilings` bound what
    schedules may declare. `pages` is what the pages are told beside that. Thread events of cron profiles are deleted once they
    are older than `event_retention_days`, and never where that is None. A schedule worker keeps `cached_workflows` in memory.
    An agent runner does `agent_runs` of each agent version at the same time.
    `metrics` is where a process that is no API tells its figures, None where it does not.
    """

    data: Path
    catalog_url: str
    scope: Scope
    pace: Pace = field(default_factory=Pace)
    api: ApiSettings = field(default_factory=ApiSettings)
    remote_authority: RemoteAuthority | None = None
    public_url: str = LOCAL_API
    deployment: Deployment | None = None
    ceilings: Ceilings = USUAL
    pages: PageVariables = field(default_factory=PageVariables)
    event_retention_days: int | None = None
    cached_workflows: int = DEFAULT_CACHED_WORKFLOWS
    agent_runs: int = DEFAULT_AGENT_RUNS
    metrics: MetricsAddress | None = None

    @property
    def key_file(self) -> Path:
        """The private key that development tokens are signed with."""
        return self.data / "keys" / "dev.pem"

    @property
    def content(self) -> ContentFolder:
        """Where inputs are read and outputs go."""
        return ContentFolder(self.data / "content", self.scope)

    @property
    def authority(self) -> Authority:
        """Who is asked what may run: one for each who asks for it, and closes it.

        Raises `Misconfigured` where it is a platform's own and the secret shared with it is missing or too short.
        """
        if self.remote_authority is None:
            return LocalAuthority(self.content)
        # Here, since what it imports takes a while, and most commands ask no authority of a platform.
        from horarium.authority.http import HttpAuthority  # noqa: PLC0415 - as above

        return HttpAuthority(
            base=self.remote_authority.url, keys=keys_named(self.remote_authority.secret, named_by=AUTHORITY_SECRET)
        )

    @property
    def principal(self) -> str:
        """Who acts at this command line."""
        return f"local:{_user()}"

    def environment(self) -> dict[str, str]:
        """The same settings for a child process."""
        return {
            "HORARIUM_DATA": str(self.data),
            "HORARIUM_CATALOG": self.catalog_url,
            "HORARIUM_ORGANIZATION": self.scope.org_id,
            "HORARIUM_ENVIRONMENT": self.scope.environment_id,
            "HORARIUM_PUBLIC_URL": self.public_url,
            "HORARIUM_DEPLOYMENT": "" if self.deployment is None else self.deployment.name,
            "HORARIUM_BUILD_ID": "" if self.deployment is None else self.deployment.build_id,
            PER_PROFILE: str(self.ceilings.per_profile),
            TOTAL: "" if self.ceilings.total is None else str(self.ceilings.total),
            _RETENTION: "" if self.event_retention_days is None else str(self.event_retention_days),
            _CACHED: str(self.cached_workflows),
            _AGENT_RUNS: str(self.agent_runs),
            # Several children cannot serve their figures at one port.
            _METRICS_PORT: "",
        }


def load(environ: Mapping[str, str] = os.environ, *, data: Path | None = None) -> Settings:
    """The settings of this process.

    `HORARIUM_DATA`, `HORARIUM_CATALOG`, `HORARIUM_ORGANIZATION`, `HORARIUM_ENVIRONMENT`, `HORARIUM_PUBLIC_URL`,
    `HORARIUM_STEPS_PER_RUN`; for the API `HORARIUM_JWKS_URL`, `HORARIUM_TOKEN_ISSUER`, `HORARIUM_TOKEN_AUDIENCE`,
    `HORARIUM_REQUIRED_SCOPE`, `HORARIUM_OPERATOR_SCOPE` and `HORARIUM_REQUESTS_PER_SECOND`; for a platform's own
    authority `HORARIUM_AUTHORITY_URL`, `HORARIUM_AUTHORITY_SECRET` and `HORARIUM_AUTHORITY_PRIVATE`; for workers
    `HORARIUM_CACHED_WORKFLOWS`, for agent runners `HORARIUM_AGENT_RUNS`, and for workers of several builds
    `HORARIUM_DEPLOYMENT` and `HORARIUM_BUILD_ID`; for all but the
    API `HORARIUM_METRICS_HOST` and `HORARIUM_METRICS_PORT`; for whoever speaks with Temporal `HORARIUM_PAYLOAD_KEYS`, which is
    only looked at here; and
    `SCHEDULER_MAX_RUNS_PER_PROFILE_PER_MONTH`, `SCHEDULER_MAX_TOTAL_RUNS_PER_MONTH` and `SCHEDULER_EVENT_RETENTION_DAYS`. A
    `data` folder that is given counts more than the environment's. Raises `Misconfigured`.
    """
    named = Path(environ.get("HORARIUM_DATA") or DEFAULT_DATA).absolute()
    folder = named if data is None else data.absolute()
    url = environ.get("HORARIUM_CATALOG")
    if url and url.startswith("sqlite") and folder != named:
        # A file that belongs to the folder of the environment is not the catalog of the folder that was asked for.
        url = None
    scope = _scope(environ)
    # At the start, although the plugin alone uses them: an API without Temporal would say it much later.
    read_payload_keys(environ)
    return Settings(
        data=folder,
        catalog_url=url or f"sqlite:///{folder / 'catalog.db'}",
        scope=scope,
        pace=Pace(steps_per_run=_whole_number(environ, "HORARIUM_STEPS_PER_RUN")),
        api=_api(environ),
        remote_authority=_remote_authority(environ),
        public_url=_public_url(environ),
        deployment=_deployment(environ),
        ceilings=ceilings_from(environ),
        pages=read_page_variables(environ),
        event_retention_days=_bounded(environ, _RETENTION, MOST_DAYS, off="to keep thread events for good"),
        cached_workflows=_bounded(environ, _CACHED, MOST_CACHED_WORKFLOWS, off=f"for {DEFAULT_CACHED_WORKFLOWS}")
        or DEFAULT_CACHED_WORKFLOWS,
        agent_runs=_bounded(environ, _AGENT_RUNS, MOST_AGENT_RUNS, off=f"for {DEFAULT_AGENT_RUNS}")
        or DEFAULT_AGENT_RUNS,
        metrics=read_metrics_address(environ),
    )


def _scope(environ: Mapping[str, str]) -> Scope:
    organization, environment = (environ.get(name) or usual for name, usual in _SERVED.items())
    try:
        return Scope(org_id=organization, environment_id=environment)
    except Refused as error:
        raise Misconfigured(f"{' and '.join(_SERVED)} say what is served. {error.sentence}") from error


def ceilings_from(environ: Mapping[str, str]) -> Ceilings:
    """The ceilings, under the names of seed 004: `SCHEDULER_MAX_RUNS_PER_PROFILE_PER_MONTH`, 43,200 where it is not set, and
    `SCHEDULER_MAX_TOTAL_RUNS_PER_MONTH`, off where it is not set. Raises `Misconfigured`.
    """
    return Ceilings(
        per_profile=_bounded(environ, PER_PROFILE, MOST_RUNS, off=f"for {USUAL.per_profile}") or USUAL.per_profile,
        total=_bounded(environ, TOTAL, MOST_RUNS, off="to bound nothing"),
    )


def _bounded(environ: Mapping[str, str], name: str, most: int, *, off: str) -> int | None:
    text = environ.get(name)
    if not text:
        return None
    # Looked at as a text first: Python refuses to read a number of thousands of digits.
    fits = text.isascii() and text.isdecimal() and len(text) <= len(str(most)) and 1 <= int(text) <= most
    if not fits:
        raise Misconfigured(f"{name} is {text[:40]!r}; it is a whole number from 1 to {most}. Leave it out {off}.")
    return int(text)


def _deployment(environ: Mapping[str, str]) -> Deployment | None:
    name, build_id = (environ.get(each) or None for each in ("HORARIUM_DEPLOYMENT", "HORARIUM_BUILD_ID"))
    if name is None and build_id is None:
        return None
    if name is None or build_id is None:
        given, missing = (
            ("HORARIUM_BUILD_ID", "HORARIUM_DEPLOYMENT")
            if name is None
            else ("HORARIUM_DEPLOYMENT", "HORARIUM_BUILD_ID")
        )
        raise Misconfigured(
            f"{given} is set and {missing} is not. Set both, so that Temporal can tell this build's workers from another's, "
            "or neither."
        )
    for variable, value, fits in (
        # Temporal separates the two by a point, so that the first has none.
        ("HORARIUM_DEPLOYMENT", name, _BUILD.fullmatch(name) and "." not in name),
        ("HORARIUM_BUILD_ID", build_id, _BUILD.fullmatch(build_id)),
    ):
        if not fits or len(value) > _LONGEST_NAME:
            points = " and no points" if variable == "HORARIUM_DEPLOYMENT" else ""
            raise Misconfigured(
                f"{variable} is {value[:_LONGEST_NAME]!r}; it is a name of letters, digits, _, + and -{points}, "
                f"{_LONGEST_NAME} characters at the most."
            )
    return Deployment(name=name, build_id=build_id)


def _public_url(environ: Mapping[str, str]) -> str:
    url = environ.get("HORARIUM_PUBLIC_URL") or LOCAL_API
    parts = _parts(url)
    if parts is None or parts.username or parts.password or parts.query or parts.fragment:
        raise Misconfigured(
            "HORARIUM_PUBLIC_URL is the address of the API as agents reach it, such as https://horarium.example, without user, "
            "password, query and fragment."
        )
    return url.rstrip("/")


def _remote_authority(environ: Mapping[str, str]) -> RemoteAuthority | None:
    url = environ.get("HORARIUM_AUTHORITY_URL") or None
    if url is None:
        return None
    private = environ.get("HORARIUM_AUTHORITY_PRIVATE") or "no"
    if private not in {"yes", "no"}:
        raise Misconfigured(f"HORARIUM_AUTHORITY_PRIVATE is {private[:40]!r}; it is yes or no.")
    parts = _parts(url)
    if parts is None or parts.username or parts.password or parts.query or parts.fragment:
        # It is not repeated: whatever else stands in it may be a secret.
        raise Misconfigured(
            "HORARIUM_AUTHORITY_URL is an address such as https://authority.example/horarium, without user, password, query "
            "and fragment."
        )
    if parts.scheme != "https" and not (parts.hostname in _LOCAL_HOSTS or private == "yes"):
        raise Misconfigured(
            f"HORARIUM_AUTHORITY_URL is {url[:200]!r}; an authority is asked over https://. Over http:// only on this machine, "
            "or where HORARIUM_AUTHORITY_PRIVATE=yes says that nobody else is on the network between."
        )
    secret = environ.get(AUTHORITY_SECRET) or None
    if secret is None:
        raise Misconfigured(
            "HORARIUM_AUTHORITY_URL is set and HORARIUM_AUTHORITY_SECRET is not. It names the environment variable that holds "
            "the secret shared with the authority, such as HORARIUM_SECRET_AUTHORITY."
        )
    return RemoteAuthority(url=url.rstrip("/"), secret=secret)


def _parts(url: str) -> SplitResult | None:
    """An address over HTTP in its parts; None for anything else."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    fits = url.isascii() and url.isprintable() and " " not in url and port != 0
    return parts if fits and parts.scheme in {"http", "https"} and parts.hostname else None


def _api(environ: Mapping[str, str]) -> ApiSettings:
    url = environ.get("HORARIUM_JWKS_URL") or None
    if url is not None:
        parts = urlsplit(url)
        if not parts.hostname or not (
            parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOCAL_HOSTS)
        ):
            raise Misconfigured(
                f"HORARIUM_JWKS_URL is {url[:200]!r}; keys come over https:// (or from this machine over http://)."
            )
    return ApiSettings(
        keys_url=url,
        issuer=environ.get("HORARIUM_TOKEN_ISSUER") or None,
        audience=environ.get("HORARIUM_TOKEN_AUDIENCE") or None,
        required_scope=_one_scope(environ, "HORARIUM_REQUIRED_SCOPE"),
        operator_scope=_one_scope(environ, "HORARIUM_OPERATOR_SCOPE"),
        requests_per_second=_whole_number(environ, "HORARIUM_REQUESTS_PER_SECOND") or DEFAULT_REQUESTS_PER_SECOND,
    )


def _one_scope(environ: Mapping[str, str], name: str) -> str | None:
    text = environ.get(name) or None
    if text is not None and len(text.split()) != 1:
        raise Misconfigured(f"{name} is {text[:80]!r}; it is one scope, without spaces.")
    return text


def _whole_number(environ: Mapping[str, str], name: str) -> int | None:
    text = environ.get(name)
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise Misconfigured(f"{name} is {text[:40]!r}; it is a whole number from 1.")
    return int(text)


def _user() -> str:
    try:
        return getpass.getuser()
    except OSError:
        # A container may run under a number that no user database knows.
        return str(os.getuid())
