"""The tables. A person with only SQL can read a schedule's story from them (DESIGN.md, section 12).

The row of `schedules` is the lock of its schedule: whoever changes anything about one, its ledger included, takes it first.
It is wider than one activation on purpose, since slots are counted over all generations.
"""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
)

from horarium.catalog.types import Instant, ToldInstant

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

_Key = BigInteger().with_variant(Integer, "sqlite")
"""SQLite numbers rows by itself only in a column declared INTEGER."""

environments = Table(
    "environments",
    metadata,
    Column("org_id", String(200), primary_key=True),
    Column("environment_id", String(200), primary_key=True),
    Column("mode", String(20), nullable=False),
    Column("authority_epoch", Integer, nullable=False),
    Column("reset_generation", Integer, nullable=False),
    Column("runtime_profile", String(200)),
    # Whoever is of the organization may act, and what nobody declared is looked for in the folder of contents.
    Column("development", Boolean, nullable=False, server_default=false()),
    Column("live_needs_approval", Boolean, nullable=False, server_default=false()),
    # The kinds of notifications that any endpoint wants; None for none. Read with the environment, so that nobody asks in vain.
    Column("notifies", String(200)),
)

# What operators declared. Of an organization as a whole, with an empty environment_id.
declarations = Table(
    "declarations",
    metadata,
    Column("org_id", String(200), primary_key=True),
    Column("environment_id", String(200), primary_key=True),
    Column("kind", String(20), primary_key=True),
    Column("name", String(420), primary_key=True),
    Column("version", _Key, nullable=False),
    Column("facts", JSON, nullable=False),
)

# What is reserved in a budget and was spent from it; of a wallet, what it owes. Kept when the declaration goes.
accounts = Table(
    "accounts",
    metadata,
    Column("org_id", String(200), primary_key=True),
    Column("environment_id", String(200), primary_key=True),
    Column("kind", String(20), primary_key=True),
    Column("name", String(200), primary_key=True),
    Column("reserved", BigInteger, nullable=False),
    Column("spent", BigInteger, nullable=False),
)

reservations = Table(
    "reservations",
    metadata,
    Column("run_id", String(36), primary_key=True),
    Column("org_id", String(200), nullable=False),
    Column("environment_id", String(200), nullable=False),
    Column("budget", String(200), nullable=False),
    Column("wallet", String(200)),
    Column("amount", BigInteger, nullable=False),
    Column("state", String(20), nullable=False),
    # Kept by the platform's own authority, which is told of its end afterwards.
    Column("remote", Boolean, nullable=False),
    Column("settled", BigInteger),
    Column("made_at", Instant, nullable=False),
    Column("keep_until", Instant),
    Column("closed_at", Instant),
)
Index(
    "ix_reservations_open",
    reservations.c.made_at,
    sqlite_where=text("closed_at IS NULL"),
    postgresql_where=text("closed_at IS NULL"),
)

# Kill switches that are on. Of an organization as a whole, with an empty environment_id.
stops = Table(
    "stops",
    metadata,
    Column("org_id", String(200), primary_key=True),
    Column("environment_id", String(200), primary_key=True),
    Column("since", Instant, nullable=False),
    Column("by", String(200), nullable=False),
    Column("because", Text, nullable=False),
    # None while it is on. A row stays when it is lifted: what fell due until then is not caught up.
    Column("lifted_at", Instant),
)

# What operators did, one row each, never changed. Its id is the version of what it declared.
authority_events = Table(
    "authority_events",
    metadata,
    Column("id", _Key, primary_key=True),
    Column("org_id", String(200), nullable=False),
    Column("environment_id", String(200), nullable=False),
    Column("kind", String(40), nullable=False),
    Column("at", Instant, nullable=False),
    Column("actor", String(200), nullable=False),
    Column("details", JSON, nullable=False),
)
Index(
    "ix_authority_events_environment",
    authority_events.c.org_id,
    authority_events.c.environment_id,
    authority_events.c.id,
)

schedules = Table(
    "schedules",
    metadata,
    Column("id", _Key, primary_key=True),
    Column("org_id", String(200), nullable=False),
    Column("environment_id", String(200), nullable=False),
    Column("schedule_id", String(36), nullable=False),
    Column("contract", String(20), nullable=False),
    Column("head_revision", Integer, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("retired_at", Instant),
    # Set with each change of activation, until the controller has seen that Temporal agrees.
    Column("unobserved", Boolean, nullable=False),
    # The endpoint that each of its successes is told to.
    Column("heartbeat", _Key),
    # Something was told of it that a success recovers from.
    Column("troubled", Boolean, nullable=False, server_default=false()),
    # The first due instant since its last success, once a success is overdue.
    Column("silent_since", Instant),
    UniqueConstraint("org_id", "environment_id", "schedule_id"),
)
# A page of one contract, whose schedules may be few among many of the others. The contract comes first, or SQLite would take
# this for what a tick asks of an environment, whose answer has an index of its own.
Index(
    "ix_schedules_contract",
    schedules.c.contract,
    schedules.c.org_id,
    schedules.c.environment_id,
    schedules.c.schedule_id,
)
Index(
    "ix_schedules_unobserved",
    schedules.c.org_id,
    schedules.c.environment_id,
    sqlite_where=text("unobserved IS 1"),
    postgresql_where=text("unobserved IS true"),
)

versions = Table(
    "versions",
    metadata,
    Column("id", _Key, primary_key=True),
    Column("schedule", _Key, ForeignKey("schedules.id"), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("resource_id", String(36), nullable=False, unique=True),
    Column("digest", String(71), nullable=False),
    Column("configuration", Text, nullable=False),
    Column("published_at", Instant, nullable=False),
    Column("published_by", String(200), nullable=False),
    UniqueConstraint("schedule", "revision"),
)

activations = Table(
    "activations",
    metadata,
    Column("id", _Key, primary_key=True),
    Column("schedule", _Key, ForeignKey("schedules.id"), nullable=False),
    Column("generation", Integer, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("changed_at", Instant, nullable=False),
    Column("changed_by", String(200), nullable=False),
    Column("activated_at", Instant, nullable=False),
    Column("accounted_through", Instant, nullable=False),
    Column("attended_until", Instant),
    Column("waiting", Boolean, nullable=False),
    # When somebody has to have looked at it next: the first due instant behind its mark, or the look that a blocked one has
    # promised. None where nothing obliges anybody, and where it was not reckoned yet.
    Column("look_by", Instant),
    Column("catchup_started", Integer, nullable=False),
    # The environment as it was at enabling.
    Column("environment_epoch", Integer),
    Column("reset_generation", Integer),
    # The circuit breaker's own account: how many runs may still start, of what is declared until then.
    Column("allowance", Integer),
    Column("declared_until", Instant),
    # Of the next 30 days, as counted at enabling.
    Column("runs_per_month", Integer),
    Column("ended_at", Instant),
    Column("ended_as", String(20)),
    Column("ended_reason", Text),
    # Set by the controller once it saw that the workflow of an ended activation is closed.
    Column("workflow_closed", Boolean, nullable=False),
    UniqueConstraint("schedule", "generation"),
)
Index(
    "ix_activations_live",
    activations.c.schedule,
    activations.c.generation,
    sqlite_where=text("ended_at IS NULL"),
    postgresql_where=text("ended_at IS NULL"),
)
Index(
    "ix_activations_lingering",
    activations.c.schedule,
    sqlite_where=text("ended_at IS NOT NULL AND workflow_closed IS 0"),
    postgresql_where=text("ended_at IS NOT NULL AND workflow_closed IS false"),
)
# Those that nobody accounted for in time are at its beginning.
Index(
    "ix_activations_look_by",
    activations.c.look_by,
    activations.c.id,
    sqlite_where=text("ended_at IS NULL"),
    postgresql_where=text("ended_at IS NULL"),
)
# In the order of activation, with what is added up: those of one second, where the ceiling of all schedules is exceeded.
Index(
    "ix_activations_in_order",
    activations.c.changed_at,
    activations.c.id,
    activations.c.runs_per_month,
    # Although each is null: SQLite would look it up in the table.
    activations.c.ended_at,
    sqlite_where=text("ended_at IS NULL"),
    postgresql_where=text("ended_at IS NULL"),
)
# Those that an earlier release enabled, which nobody has counted yet.
Index(
    "ix_activations_uncounted",
    # Each is null, but SQLite asks by it, and would look it up in the table.
    activations.c.runs_per_month,
    activations.c.changed_at,
    activations.c.id,
    activations.c.ended_at,
    sqlite_where=text("ended_at IS NULL AND runs_per_month IS NULL"),
    postgresql_where=text("ended_at IS NULL AND runs_per_month IS NULL"),
)

# What live activations declare, in sums by the time of their activation: of so many seconds, from a second of a day on.
# A sum may have several rows, some less than nothing.
declared = Table(
    "declared",
    metadata,
    Column("id", _Key, primary_key=True),
    # What an earlier release added up is of whole days.
    Column("span", Integer, nullable=False, server_default="86400"),
    Column("day", Integer, nullable=False),
    Column("since", Integer, nullable=False, server_default="0"),
    Column("runs", BigInteger, nullable=False),
)
Index("ix_declared_part", declared.c.span, declared.c.day, declared.c.since, declared.c.runs)

entries = Table(
    "entries",
    metadata,
    Column("id", _Key, primary_key=True),
    Column("schedule", _Key, ForeignKey("schedules.id"), nullable=False),
    Column("generation", Integer, nullable=False),
    Column("trigger", String(60), nullable=False),
    Column("first_at", Instant, nullable=False),
    Column("last_at", Instant, nullable=False),
    Column("count", Integer, nullable=False),
    Column("disposition", String(20), nullable=False),
    Column("reason", String(40)),
    Column("held_since", Instant),
    Column("closed_at", Instant),
    # Exactly once rests on this key, across generations (DESIGN.md, section 5).
    UniqueConstraint("schedule", "first_at", "trigger"),
)
# A ledger grows for years and a step asks of its end only, so each question of a step has an index that leads there.
Index("ix_entries_schedule_generation_last_at", entries.c.schedule, entries.c.generation, entries.c.last_at)
Index("ix_entries_schedule_closed_at", entries.c.schedule, entries.c.closed_at)
Index(
    "ix_entries_open",
    entries.c.schedule,
    entries.c.first_at,
    sqlite_where=text("closed_at IS NULL"),
    postgresql_where=text("closed_at IS NULL"),
)
Index(
    "ix_entries_open_by_time",
    entries.c.first_at,
    sqlite_where=text("closed_at IS NULL"),
    postgresql_where=text("closed_at IS NULL"),
)
Index(
    "ix_entries_succeeded",
    entries.c.schedule,
    entries.c.first_at,
    sqlite_where=text("disposition = 'succeeded'"),
    postgresql_where=text("disposition = 'succeeded'"),
)
# Pages of a ledger go by these: in the order of first_at, and the few spans that reach into a time.
Index("ix_entries_first_at", entries.c.first_at, entries.c.id)
Index(
    "ix_entries_spans",
    entries.c.last_at,
    sqlite_where=text("count > 1"),
    postgresql_where=text("count > 1"),
)
Index(
    "ix_entries_spans_of_schedule",
    entries.c.schedule,
    entries.c.last_at,
    sqlite_where=text("count > 1"),
    postgresql_where=text("count > 1"),
)

runs = Table(
    "runs",
    metadata,
    Column("run_id", String(36), primary_key=True),
    Column("entry", _Key, ForeignKey("entries.id", ondelete="CASCADE"), nullable=False, unique=True),
    Column("workflow_id", String(700), nullable=False, unique=True),
    # Of a manual run: who asked for it.
    Column("triggered_by", String(200)),
    Column("buffered", Boolean, nullable=False),
    Column("window_from", Instant, nullable=False),
    Column("owner", String(60)),
    Column("decision", String(20)),
    Column("decided_at", Instant),
    Column("evidence", JSON),
    Column("agent_version", String(200)),
    Column("begun_at", Instant),
    Column("token_hash", String(64)),
    # Behind the gateway http: where it was sent, and when the first attempt was about to send it.
    Column("destination", String(200)),
    Column("dispatch_sent", Instant),
    # What the token of its agent is made from, together with the secret of the destination.
    Column("token_nonce", String(32)),
    # The code that the last read of its input was refused with.
    Column("input_refused", String(40)),
    Column("ended_at", Instant),
    Column("summary", Text),
    Column("outputs", JSON),
    Column("cost", BigInteger),
    # Of a run by hand that was started by another event than the calendar's: its class, and its own fields.
    Column("start_event", String(200)),
    Column("event_data", JSON(none_as_null=True)),
)

audit_events = Table(
    "audit_events",
    metadata,
    Column("id", _Key, primary_key=True),
    Column("schedule", _Key, ForeignKey("schedules.id"), nullable=False),
    Column("kind", String(40), nullable=False),
    Column("at", Instant, nullable=False),
    Column("actor", String(200), nullable=False),
    Column("generation", Integer),
    Column("revision", Integer),
    Column("details", JSON, nullable=False),
    # The number of the seal that covers the event; set once, and nothing else of an event is ever changed.
    Column("seal", Integer),
)
Index("ix_audit_events_schedule_id", audit_events.c.schedule, audit_events.c.id)
Index(
    "ix_audit_events_unsealed",
    audit_events.c.id,
    sqlite_where=text("seal IS NULL"),
    postgresql_where=text("seal IS NULL"),
)

seals = Table(
    "seals",
    metadata,
    Column("id", _Key, primary_key=True),
    Column("org_id", String(200), nullable=False),
    Column("environment_id", String(200), nullable=False),
    Column("number", Integer, nullable=False),
    Column("minute", Instant, nullable=False),
    Column("count", Integer, nullable=False),
    Column("first_event", BigInteger, nullable=False),
    Column("last_event", BigInteger, nullable=False),
    Column("digest", String(71), nullable=False),
    Column("previous", String(71)),
    UniqueConstraint("org_id", "environment_id", "number"),
    UniqueConstraint("org_id", "environment_id", "minute"),
)

receipts = Table(
    "receipts",
    metadata,
    Column("id", _Key, primary_key=True),
    Column("org_id", String(200), nullable=False),
    Column("environment_id", String(200), nullable=False),
    Column("principal", String(200), nullable=False),
    Column("key", String(200), nullable=False),
    Column("receipt_id", String(36), nullable=False, unique=True),
    Column("operation", String(20), nullable=False),
    Column("body_digest", String(71), nullable=False),
    Column("reset_generation", Integer, nullable=False),
    Column("document", JSON, nullable=False),
    Column("created_at", Instant, nullable=False),
    UniqueConstraint("org_id", "environment_id", "principal", "key"),
)

runtime = Table(
    "runtime",
    metadata,
    Column("schedule", _Key, ForeignKey("schedules.id"), primary_key=True),
    Column("generation", Integer, nullable=False),
    Column("state", String(20), nullable=False),
    Column("reason", Text),
    Column("observed_at", Instant, nullable=False),
)
# Each sweep looks whether they still are.
Index(
    "ix_runtime_in_error",
    runtime.c.schedule,
    sqlite_where=text("state = 'error'"),
    postgresql_where=text("state = 'error'"),
)
# How many wait for a person, and since when, is asked every few seconds.
Index(
    "ix_runtime_in_review",
    runtime.c.schedule,
    sqlite_where=text("state = 'review'"),
    postgresql_where=text("state = 'review'"),
)

# Cron profiles, by agent class and id. One that was deleted keeps its row, its schedule and its thread.
profiles = Table(
    "profiles",
    metadata,
    Column("id", _Key, primary_key=True),
    Column("org_id", String(200), nullable=False),
    Column("environment_id", String(200), nullable=False),
    Column("agent_class", String(200), nullable=False),
    Column("agent_id", String(200), nullable=False),
    Column("tenant_id", String(200)),
    # JSON, as text: what a hand has damaged must not keep others from being read.
    Column("config", Text, nullable=False),
    # None until it has had a cron.
    Column("schedule_id", String(36)),
    Column("created_at", ToldInstant, nullable=False),
    Column("changed_at", ToldInstant, nullable=False),
    Column("changed_by", String(200), nullable=False),
    Column("deleted_at", ToldInstant),
    UniqueConstraint("org_id", "environment_id", "agent_class", "agent_id"),
)
# A run knows its schedule, and its end is told to the profile's thread.
Index("ix_profiles_schedule_id", profiles.c.org_id, profiles.c.environment_id, profiles.c.schedule_id)
# Those that are there, page after page: what their threads remember is pruned.
Index(
    "ix_profiles_live",
    profiles.c.org_id,
    profiles.c.environment_id,
    profiles.c.id,
    sqlite_where=text("deleted_at IS NULL"),
    postgresql_where=text("deleted_at IS NULL"),
)

# One thread for each profile that has fired. Its id is derived from the profile, so two that fire at once make one.
threads = Table(
    "threads",
    metadata,
    Column("org_id", String(200), primary_key=True),
    Column("environment_id", String(200), primary_key=True),
    Column("thread_id", String(64), primary_key=True),
    Column("agent_class", String(200), nullable=False),
    Column("agent_id", String(200), nullable=False),
    Column("created_at", ToldInstant, nullable=False),
)

thread_events = Table(
    "thread_events",
    metadata,
    Column("id", _Key, primary_key=True),
    Column("org_id", String(200), nullable=False),
    Column("environment_id", String(200), nullable=False),
    Column("thread_id", String(64), nullable=False),
    Column("kind", String(40), nullable=False),
    Column("at", ToldInstant, nullable=False),
    Column("run_id", String(36)),
    Column("data", JSON, nullable=False),
)
_of_thread = (thread_events.c.org_id, thread_events.c.environment_id, thread_events.c.thread_id)
Index("ix_thread_events_id", *_of_thread, thread_events.c.id)
# Those that have grown old are pruned.
Index("ix_thread_events_at", *_of_thread, thread_events.c.at)

# When every schedule of an environment was looked at: what did not change is not written down again one by one.
sweeps = Table(
    "sweeps",
    metadata,
    Column("org_id", String(200), primary_key=True),
    Column("environment_id", String(200), primary_key=True),
    Column("swept_at", Instant, nullable=False),
)

# How often each thing was found that should not be, by its kind.
findings = Table(
    "findings",
    metadata,
    Column("org_id", String(200), primary_key=True),
    Column("environment_id", String(200), primary_key=True),
    Column("kind", String(40), primary_key=True),
    Column("count", BigInteger, nullable=False),
    Column("last_at", Instant, nullable=False),
)

agents = Table(
    "agents",
    metadata,
    Column("org_id", String(200), primary_key=True),
    Column("environment_id", String(200), primary_key=True),
    Column("agent_version", String(200), primary_key=True),
    Column("discovery", JSON, nullable=False),
    Column("lifecycle", String(20), nullable=False),
    Column("lease_until", Instant, nullable=False),
    Column("seen_at", Instant, nullable=False),
    Column("registered_at", Instant),
    # Of what the runner reports, so that a class is found, and its versions are listed, without reading all that others report.
    Column("agent_class", String(200)),
    Column("description", Text),
)
Index("ix_agents_class", agents.c.org_id, agents.c.environment_id, agents.c.agent_class)

workers = Table(
    "workers",
    metadata,
    Column("instance", String(200), primary_key=True),
    Column("role", String(20), nullable=False),
    Column("seen_at", Instant, nullable=False),
    Column("tzdata", String(40), nullable=False),
)
