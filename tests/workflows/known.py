"""Waiting until Temporal has a workflow: an entry is committed before its workflow is started, and a start takes its time."""

import asyncio
from typing import Any

from temporalio.client import WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

_WITHIN_SECONDS = 60


async def known(handle: WorkflowHandle[Any, Any]) -> WorkflowHandle[Any, Any]:
    """The handle, once Temporal has its workflow. Until then nobody can cancel it, ask it, or wait for its end."""
    async with asyncio.timeout(_WITHIN_SECONDS):
        while True:
            try:
                await handle.describe()
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:
                    raise
                await asyncio.sleep(0.05)
            else:
                return handle
