"""A catalog whose file is taken away while it is in use says so, in every process, instead of writing into nothing."""

from datetime import UTC, datetime

import pytest

from horarium.catalog import Catalog, migrate
from horarium.catalog.presence import roles_present
from horarium.errors import Misconfigured


@pytest.mark.parametrize("replaced", [False, True], ids=["removed", "replaced"])
def test_a_catalog_file_that_was_removed_or_replaced_is_used_no_more(tmp_path, replaced):
    path = tmp_path / "catalog.db"
    catalog = Catalog.open(f"sqlite:///{path}")
    migrate.upgrade(catalog)
    with catalog.reading() as connection:
        assert roles_present(connection, now=datetime(2027, 3, 1, tzinfo=UTC)) == frozenset()
    for each in tmp_path.glob("catalog.db*"):
        each.rename(each.with_name(f"taken-{each.name}"))
    if replaced:
        other = Catalog.open(f"sqlite:///{path}")
        migrate.upgrade(other)
        other.close()
    for using in (catalog.reading, catalog.writing):
        with pytest.raises(Misconfigured, match="removed or replaced"), using():
            pass
    catalog.close()
