"""Preparing an installation: its folder and catalog, and what Temporal must know. Doing it again changes nothing."""

import asyncio
from datetime import timedelta
from typing import Any

from google.protobuf.duration_pb2 import Duration
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.namespace.v1 import NamespaceConfig
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, UpdateNamespaceRequest
from temporalio.client import Client
from temporalio.common import SearchAttributeKey
from temporalio.service import RPCError, RPCStatusCode

from activities.search_attributes import ALL, ENVIRONMENT, GENERATION, NOMINAL_TIME, SCHEDULE
from horarium.catalog import Catalog, migrate
from horarium.catalog.environments import ensure_environment
from horarium.errors import Misconfigured, Unavailable
from starter.data_folder import make_writable
from starter.keys import make_key
from worker.settings import Settings

RETENTION = timedelta(days=3)
"""How long Temporal keeps closed workflows at the least: a weekend, so that Monday's reader still finds Friday's run."""
KNOWN_WITHIN = timedelta(seconds=120)
"""A server reads the search attributes again once a minute, and its namespaces more often."""
_ASK_EVERY = timedelta(milliseconds=500)
"""A server lets a namespace ask for ten lists or counts a second, by default."""
NOT_OURS = frozenset({RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNAUTHENTICATED, RPCStatusCode.UNIMPLEMENTED})
"""What a hosted service answers to whoever may not do something with its namespaces."""
_UNLIKELY = " AND ".join(
    (
        f"{ENVIRONMENT.name} = 'none'",
        f"{SCHEDULE.name} = 'none'",
        f"{GENERATION.name} = 0",
        f"{NOMINAL_TIME.name} = '1970-01-01T00:00:00Z'",
    )
)
"""Names each search attribute with a value of its type, and finds nothing: to count what is there may take minutes."""


def prepare_data(settings: Settings) -> None:
    """Create the data folder, the key of development tokens, the catalog's tables and the environment.

    Raises `Misconfigured` where that cannot be.
    """
    make_writable(settings.data)
    make_key(settings.key_file)
    for area in (settings.content.inputs, settings.content.outputs):
        make_writable(area)
    catalog = Catalog.open(settings.catalog_url)
    try:
        migrate.upgrade(catalog)
        with catalog.writing() as connection:
            ensure_environment(connection, settings.scope, mode="simulation", runtime_profile="embedded")
    finally:
        catalog.close()


async def prepare_temporal(client: Client) -> tuple[str, ...]:
    """Register the search attributes and lengthen a short retention; returns what was changed, in sentences.

    The server has read the attributes when this returns. Raises `Misconfigured` where one of them is there with another type,
    and `Unavailable` where the server does not come to know them within `KNOWN_WITHIN`.
    """
    done = []
    present = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=client.namespace)
    )
    for each in ALL:
        kind, ours = present.custom_attributes.get(each.name), _kind_of(each)
        if kind is not None and kind != ours:
            raise Misconfigured(
                f"The search attribute {each.name!r} of namespace {client.namespace!r} is of type "
                f"{IndexedValueType.Name(kind)}, and has to be {IndexedValueType.Name(ours)}. Somebody else registered it: "
                "remove it by Temporal's own tools, or take another namespace."
            )
    missing = {each.name: _kind_of(each) for each in ALL if each.name not in present.custom_attributes}
    if missing:
        await client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(namespace=client.namespace, search_attributes=missing)
        )
        done.append(f"Registered the search attributes {', '.join(sorted(missing))}.")
    namespace = await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=client.namespace))
    if namespace.config.workflow_execution_retention_ttl.ToTimedelta() < RETENTION:
        ttl = Duration()
        ttl.FromTimedelta(RETENTION)
        await client.workflow_service.update_namespace(
            UpdateNamespaceRequest(
                namespace=client.namespace, config=NamespaceConfig(workflow_execution_retention_ttl=ttl)
            )
        )
        done.append(f"Namespace {client.namespace!r} now keeps closed workflows for {RETENTION.days} days.")
    # Whoever registered them: another setup may have done so a moment ago.
    await _until_known(client)
    return tuple(done)


def _kind_of(attribute: SearchAttributeKey[Any]) -> IndexedValueType.ValueType:
    return IndexedValueType.ValueType(attribute.indexed_value_type)


async def _until_known(client: Client) -> None:
    """Wait until the server takes the search attributes: registered, they are not yet read by all that it consists of."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + KNOWN_WITHIN.total_seconds()
    while True:
        try:
            await client.count_workflows(_UNLIKELY)
        except RPCError as error:
            if error.status in NOT_OURS:
                return  # who may not ask finds out when a workflow is started, as before anybody asked
            if error.status is not RPCStatusCode.INVALID_ARGUMENT:
                raise
            if loop.time() > deadline:
                raise Unavailable(
                    "search_attributes_unknown",
                    f"The search attributes are registered, and the Temporal server does not know them after "
                    f"{KNOWN_WITHIN.total_seconds():.0f} s: {error.message}",
                    next_step="Do it again once the server has read them; restart the server if it never does.",
                ) from error
        else:
            return
        await asyncio.sleep(_ASK_EVERY.total_seconds())
