"""Preparing an installation: its folder and catalog, and what Temporal must know. Doing it again changes nothing."""

import asyncio
from datetime import timedelta

from google.protobuf.duration_pb2 import Duration
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.namespace.v1 import NamespaceConfig
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, UpdateNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.search_attributes import ALL
from horarium.catalog import Catalog, migrate
from horarium.catalog.environments import ensure_environment
from horarium.errors import Unavailable
from starter.data_folder import make_writable
from starter.keys import make_key
from worker.settings import Settings

RETENTION = timedelta(days=3)
"""How long Temporal keeps closed workflows at the least: a weekend, so that Monday's reader still finds Friday's run."""
KNOWN_WITHIN = timedelta(seconds=120)
"""A server reads the search attributes again once a minute, and its namespaces more often."""
_ASK_EVERY = timedelta(milliseconds=100)


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

    A workflow can be started with the attributes when this returns. Raises `Unavailable` where the server does not come to know
    them.
    """
    done = []
    present = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=client.namespace)
    )
    missing = {
        each.name: IndexedValueType.ValueType(each.indexed_value_type)
        for each in ALL
        if each.name not in present.custom_attributes
    }
    if missing:
        await client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(namespace=client.namespace, search_attributes=missing)
        )
        done.append(f"Registered the search attributes {', '.join(sorted(missing))}.")
    # Whoever registered them: another setup may have done so a moment ago.
    await _until_known(client)
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
    return tuple(done)


async def _until_known(client: Client) -> None:
    """Wait until the server takes the search attributes: registered, they are not yet read by all that it consists of."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + KNOWN_WITHIN.total_seconds()
    while True:
        try:
            await client.count_workflows(" AND ".join(f"{each.name} IS NOT NULL" for each in ALL))
        except RPCError as error:
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
