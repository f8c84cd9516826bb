"""The life of a table on a storage: the same calls for each kind of server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from penstock import Catalog


def check_life_of_a_table(catalog: Catalog) -> None:
    """Create, append, compact, expire, read and drop."""
    catalog.create_database("db")
    table = catalog.create_table("db.t", "id BIGINT", options={"bucket": "2", "bucket-key": "id"})
    for number in range(4):
        table.append(pa.table({"id": range(number * 100, number * 100 + 100)}))
    assert table.compact().snapshots
    assert len(table.expire_snapshots(retain_max=1, retain_min=1, older_than=0).snapshot_ids) == 4
    assert sorted(table.to_arrow()["id"].to_pylist()) == list(range(400))
    assert table.inspect.fsck().findings == ()
    catalog.drop_database("db", cascade=True)
    assert catalog.list_databases() == ()
