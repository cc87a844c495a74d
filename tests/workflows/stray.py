"""A workflow module that imports something which the sandbox was not told to share."""

from temporalio import workflow

import tests.workflows.documents  # noqa: F401 - the import is what the test is about


@workflow.defn
class StrayImport:
    @workflow.run
    async def run(self) -> None:
        """Does nothing."""
