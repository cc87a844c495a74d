"""Reaching Temporal, as the SDK's own environment configuration says: TEMPORAL_ADDRESS, _NAMESPACE, _API_KEY, TLS, profiles."""

import asyncio
import time
from datetime import timedelta

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.envconfig import ClientConfig, ClientConnectConfig
from temporalio.runtime import Runtime
from temporalio.service import RPCError, RPCStatusCode

from horarium.errors import HorariumError, Misconfigured, Unavailable
from worker.logs import tell
from worker.plugin import horarium_plugin

DEFAULT_ADDRESS = "localhost:7233"
TELL_AFTER = timedelta(milliseconds=200)
"""How long nothing is said while nothing answers. A server that is there takes a tenth of that."""
UNNAMED_WITHIN = timedelta(seconds=5)
"""How long a server is waited for that nobody named."""
ATTEMPT_WITHIN = timedelta(seconds=10)
"""For one attempt: what listens and never answers would hold it for ever."""
NAMESPACE_WITHIN = timedelta(seconds=3)
"""A development server that has only just come up may make its namespace a moment later."""

_DENIED = {RPCStatusCode.UNAUTHENTICATED, RPCStatusCode.PERMISSION_DENIED}
_NO_ANSWER = {RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED}


async def connect(
    *,
    wait_seconds: float = 0,
    address: str | None = None,
    namespace: str = "default",
    runtime: Runtime | None = None,
) -> Client:
    """A client with our plugin, of a namespace that is there.

    With `address` that server and `namespace` are meant and the environment has no say; without it the SDK's environment
    configuration decides. Tries again for `wait_seconds` while nothing answers, says so on stderr meanwhile, and then
    raises `Unavailable`; for a few seconds where nobody named a server, which is more likely elsewhere than late. What
    waiting does not help (TLS, a refused key, an unknown namespace) is `Misconfigured`.
    """
    config = _configured() if address is None else ClientConnectConfig(target_host=address, namespace=namespace)
    named = "target_host" in config
    target = config.setdefault("target_host", DEFAULT_ADDRESS)
    if not named:
        wait_seconds = min(wait_seconds, UNNAMED_WITHIN.total_seconds())
    until = time.monotonic() + wait_seconds
    waiting = f"Waiting for a Temporal server at {target} (up to {wait_seconds:g} s) …"
    told = asyncio.get_running_loop().call_later(TELL_AFTER.total_seconds(), tell, waiting) if wait_seconds else None
    try:
        while True:
            left = max(until - time.monotonic(), 1.0)
            try:
                async with asyncio.timeout(min(left, ATTEMPT_WITHIN.total_seconds())):
                    client = await Client.connect(**config, plugins=[horarium_plugin()], runtime=runtime)
                    await _require_namespace(client, target)
            except (RuntimeError, ValueError, RPCError, TimeoutError) as error:
                refused = why_in_vain(target, error)
                if refused is not None:
                    raise refused from error
                if time.monotonic() >= until:
                    tls = bool(config.get("tls"))
                    raise _unanswered(target, error, named=named, tls=tls) from error
            else:
                return client
            await asyncio.sleep(0.2)
    finally:
        if told is not None:
            told.cancel()


def why_in_vain(address: str, error: Exception) -> HorariumError | None:
    """What is wrong with the settings, where an error at connecting shows that waiting does not help; else None."""
    text = str(error)
    if isinstance(error, ValueError):
        return Misconfigured(
            f"{address!r} is no address of a Temporal server ({error}). Set TEMPORAL_ADDRESS to HOST:PORT."
        )
    if (isinstance(error, RPCError) and error.status in _DENIED) or any(
        f"code: {code}" in text for code in ("Unauthenticated", "PermissionDenied")
    ):
        return Misconfigured(
            f"Temporal at {address} refuses who we are. Set TEMPORAL_API_KEY (or the TLS certificate in "
            "TEMPORAL_TLS_CLIENT_CERT_PATH) to one that may use the namespace in TEMPORAL_NAMESPACE."
        )
    if "InvalidContentType" in text or "CorruptMessage" in text:
        return Misconfigured(
            f"What listens at {address} does not speak TLS, and the settings ask for it. Set TEMPORAL_TLS=false "
            "(an API key alone switches TLS on), or correct TEMPORAL_ADDRESS."
        )
    if "InvalidCertificate" in text or "AlertReceived" in text or "NotValidForName" in text:
        return Misconfigured(
            f"TLS with {address} fails: its certificate is not trusted, or it does not accept ours. Set "
            "TEMPORAL_TLS_SERVER_CA_CERT_PATH, TEMPORAL_TLS_SERVER_NAME and TEMPORAL_TLS_CLIENT_CERT_PATH as the server needs."
        )
    if "PrivateKey" in text or "CertificateParseError" in text:
        return Misconfigured(
            "The TLS certificate or key for Temporal cannot be read. See TEMPORAL_TLS_CLIENT_CERT_PATH and "
            "TEMPORAL_TLS_CLIENT_KEY_PATH: both are PEM files."
        )
    return None


def temporal_namespace() -> str:
    """The namespace that the environment means. What is wrong with its configuration is told by whoever connects."""
    try:
        return _configured().get("namespace") or "default"
    except Misconfigured:
        return "default"


def _configured() -> ClientConnectConfig:
    try:
        return ClientConfig.load_client_connect_config()
    except (RuntimeError, ValueError, OSError) as error:
        raise Misconfigured(
            f"Temporal's client configuration cannot be read: {' '.join(str(error).split())}. "
            "See the variables TEMPORAL_… and, where it is set, the file that TEMPORAL_CONFIG_FILE names."
        ) from error


async def _require_namespace(client: Client, address: str) -> None:
    """Raise `Misconfigured` for a namespace that is not there. Connecting alone does not ask for it."""
    until = time.monotonic() + NAMESPACE_WITHIN.total_seconds()
    while True:
        try:
            await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=client.namespace))
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                if time.monotonic() < until:
                    await asyncio.sleep(0.2)
                    continue
                raise Misconfigured(
                    f"Temporal at {address} has no namespace {client.namespace!r}. Set TEMPORAL_NAMESPACE to one that it "
                    "has, or make this one: temporal operator namespace create -n " + client.namespace
                ) from error
            if error.status in _DENIED or error.status in _NO_ANSWER:
                raise
            # Anything else is an answer: a proxy may not pass this call on, and the work itself will show.
        return


def _unanswered(address: str, error: Exception, *, named: bool, tls: bool) -> Unavailable:
    if "after connection" in str(error) or isinstance(error, TimeoutError):
        if tls:
            # With TLS 1.3 a server refuses a client's certificate after the handshake, by ending the connection.
            return Unavailable(
                "temporal_unavailable",
                f"Something listens at {address} with TLS, and it ends the connection or does not answer.",
                next_step="If it asks for certificates, set TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH to "
                "one that it accepts; else correct TEMPORAL_ADDRESS.",
            )
        return Unavailable(
            "temporal_unavailable",
            f"Something listens at {address}, and it does not answer as a Temporal server does.",
            next_step="Correct TEMPORAL_ADDRESS; where the server wants TLS, set TEMPORAL_TLS=true or TEMPORAL_API_KEY.",
        )
    return Unavailable(
        "temporal_unavailable",
        f"No Temporal server answers at {address}"
        + ("." if named else ", which is meant while TEMPORAL_ADDRESS names no other."),
        next_step="Start one with `horarium dev`, or set TEMPORAL_ADDRESS to where yours is; `horarium dev` prints it.",
    )
