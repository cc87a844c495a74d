"""Whether live activations are accounted for in time, as far as the catalog knows."""

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import Connection

from horarium.catalog.schedules import find_versions
from horarium.catalog.watching import Watched


def next_to_account_for(connection: Connection, live: Iterable[Watched]) -> dict[int, datetime | None]:
    """When somebody has to have looked at each activation, by the schedule's row; None where nothing obliges anybody.

    That is its first due instant behind the mark. A blocked schedule leaves instants for later, but has promised a look.
    A version that cannot be evaluated obliges nobody here: its next step sends the activation to review.
    """
    activations = list(live)
    versions = find_versions(connection, {(each.row, each.revision) for each in activations})
    found: dict[int, datetime | None] = {}
    for each in activations:
        version = versions.get((each.row, each.revision))
        if each.waiting:
            found[each.row] = each.attended_until
        elif version is None or version.fault is not None:
            found[each.row] = None
        else:
            found[each.row] = version.configuration.calendar.after(each.accounted_through)
    return found
