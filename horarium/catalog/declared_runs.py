"""How many runs a month all enabled schedules of an installation declare, each as it was counted at its enabling."""

from sqlalchemy import Connection, func, select, tuple_

from horarium.catalog.schedules import Activation
from horarium.catalog.tables import activations

_SUM = select(func.coalesce(func.sum(activations.c.runs_per_month), 0)).where(activations.c.ended_at.is_(None))


def declared_by_all(connection: Connection) -> int:
    """The runs a month of all that is enabled, of every organization."""
    return int(connection.execute(_SUM).scalar_one())


def declared_before(connection: Connection, activation: Activation) -> int:
    """The runs a month of all that is enabled and was activated before this one."""
    order = tuple_(activations.c.changed_at, activations.c.id)
    earlier = _SUM.where(order < tuple_(activation.changed_at, activation.row))
    return int(connection.execute(earlier).scalar_one())
