"""The tables of notifications: who is told, what of, and how far each telling has come.

Their rows come and go while a post is on its way, so no number is given twice: SQLite would else give the last row's again.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from horarium.catalog.tables import metadata
from horarium.catalog.types import Instant

_Key = BigInteger().with_variant(Integer, "sqlite")

# Where operators want to be told. The secret is in the environment of the controller; its variable's name stands here.
endpoints = Table(
    "endpoints",
    metadata,
    Column("id", _Key, primary_key=True),
    Column("org_id", String(200), nullable=False),
    Column("environment_id", String(200), nullable=False),
    Column("name", String(100), nullable=False),
    Column("url", String(2000), nullable=False),
    Column("secret", String(100), nullable=False),
    Column("private", Boolean, nullable=False),
    Column("kinds", String(200), nullable=False),
    # Of one schedule only; None for all of the environment.
    Column("schedule_id", String(36)),
    Column("declared_at", Instant, nullable=False),
    Column("declared_by", String(200), nullable=False),
    # Set where it said that it is gone.
    Column("stopped_at", Instant),
    Column("stopped_because", Text),
    Column("delivered_at", Instant),
    # It asked to be told nothing before.
    Column("held_until", Instant),
    UniqueConstraint("org_id", "environment_id", "name"),
    sqlite_autoincrement=True,
)

# The outbox: a row for each thing that happened, written with it. To whom it goes is decided when it is spread.
notifications = Table(
    "notifications",
    metadata,
    Column("id", _Key, primary_key=True),
    Column("message_id", String(36), nullable=False, unique=True),
    Column("org_id", String(200), nullable=False),
    Column("environment_id", String(200), nullable=False),
    Column("schedule", _Key, ForeignKey("schedules.id")),
    # Where only one endpoint is told: a heartbeat, or a test.
    Column("endpoint", _Key),
    Column("kind", String(20), nullable=False),
    Column("at", Instant, nullable=False),
    Column("generation", Integer),
    Column("trigger", String(60)),
    Column("first_at", Instant),
    Column("last_at", Instant),
    Column("count", Integer),
    Column("disposition", String(20)),
    Column("reason", String(40)),
    Column("run_id", String(36)),
    Column("because", Text),
    Column("spread", Boolean, nullable=False),
    sqlite_autoincrement=True,
)
Index(
    "ix_notifications_unspread",
    notifications.c.org_id,
    notifications.c.environment_id,
    notifications.c.id,
    sqlite_where=text("spread IS 0"),
    postgresql_where=text("spread IS false"),
)
# The oldest of them is watched.
Index(
    "ix_notifications_unspread_at",
    notifications.c.at,
    sqlite_where=text("spread IS 0"),
    postgresql_where=text("spread IS false"),
)
# Old ones are pruned.
Index("ix_notifications_at", notifications.c.at)

# When each live schedule is to be looked at next, for a success that is overdue. Apart from the schedules, which are locked by
# what happens to them.
expected = Table(
    "expected",
    metadata,
    Column("schedule", _Key, ForeignKey("schedules.id"), primary_key=True),
    Column("org_id", String(200), nullable=False),
    Column("environment_id", String(200), nullable=False),
    Column("look_at", Instant, nullable=False),
)
Index("ix_expected_look_at", expected.c.org_id, expected.c.environment_id, expected.c.look_at)

# One for each endpoint that a notification goes to. Who takes it up moves `next_at` behind the time that he may take, so that
# nobody else does meanwhile, and whoever dies in the middle is followed by another.
deliveries = Table(
    "deliveries",
    metadata,
    Column("id", _Key, primary_key=True),
    Column("notification", _Key, ForeignKey("notifications.id", ondelete="CASCADE"), nullable=False),
    Column("endpoint", _Key, ForeignKey("endpoints.id", ondelete="CASCADE"), nullable=False),
    Column("state", String(20), nullable=False),
    Column("since", Instant, nullable=False),
    Column("next_at", Instant, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("last_status", Integer),
    Column("last_error", Text),
    Column("ended_at", Instant),
    UniqueConstraint("notification", "endpoint"),
    sqlite_autoincrement=True,
)
Index("ix_deliveries_endpoint", deliveries.c.endpoint, deliveries.c.state, deliveries.c.next_at)
Index("ix_deliveries_ended_at", deliveries.c.ended_at)
# What is not heard is watched: how long the oldest waits, and how many are dead.
Index(
    "ix_deliveries_waiting",
    deliveries.c.since,
    sqlite_where=text("state = 'waiting'"),
    postgresql_where=text("state = 'waiting'"),
)
Index(
    "ix_deliveries_dead",
    deliveries.c.id,
    sqlite_where=text("state = 'dead'"),
    postgresql_where=text("state = 'dead'"),
)
