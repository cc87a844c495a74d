"""What Temporal is told after a change was stored, without letting the caller wait. The controller does the same, later."""

from typing import Final

from horarium.api.service import Service
from horarium.control import operations
from horarium.control.receipts import Receipt
from horarium.schedule.identity import Scope

_SIGNALS: Final = {"enable": "pause", "pause": "pause", "retire": "retire"}
"""What the workflow of an activation is told that such an operation ended."""


def tell_temporal(service: Service, scope: Scope, receipt: Receipt) -> None:
    """Start the run that a receipt is of, and tell the workflow of the activation that it ended."""
    run = operations.run_to_start(scope, receipt)
    if run is not None:
        service.afterwards("start_run", lambda hands: hands.start_run(run))
    ended = operations.activation_to_nudge(scope, receipt)
    if ended is not None:
        signal = _SIGNALS[receipt.document["operation"]]
        service.afterwards("nudge", lambda hands: hands.nudge(ended, signal))
