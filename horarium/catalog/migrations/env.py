"""How Alembic reaches the catalog: on the connection that the caller opened, in the caller's transaction."""

from alembic import context

from horarium.catalog.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    # SQLite cannot alter most things in place; batches copy the table instead.
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
