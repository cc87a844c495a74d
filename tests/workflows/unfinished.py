"""Workflows that end while a handler is still at work, each in the way that its warning is about."""

import asyncio

from temporalio import workflow


@workflow.defn
class LeavesASignal:
    def __init__(self) -> None:
        self.came = False

    @workflow.run
    async def run(self) -> str:
        await workflow.wait_condition(lambda: self.came)
        return "left"

    @workflow.signal
    async def come(self) -> None:
        self.came = True
        await asyncio.sleep(3_600)


@workflow.defn
class LeavesAnUpdate:
    def __init__(self) -> None:
        self.came = False

    @workflow.run
    async def run(self) -> str:
        await workflow.wait_condition(lambda: self.came)
        return "left"

    @workflow.update
    async def come(self) -> None:
        self.came = True
        await asyncio.sleep(3_600)
