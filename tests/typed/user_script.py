"""What a user with a type checker writes; ``make check-pyright`` checks it strictly, and it runs."""

import datetime as dt
import tempfile

import pyarrow as pa

import penstock


def total_of(table: penstock.Table, day: str) -> float:
    """Return the sum of a column."""
    rows = table.to_arrow(columns=["price"], filter=penstock.col("dt") == day)
    return sum(row["price"] or 0.0 for row in rows.to_pylist())


def main() -> float:
    """Use most of what plain Python has."""
    catalog = penstock.Catalog(tempfile.mkdtemp(), options={"table-default.file.compression": "zstd"})
    catalog.create_database("shop", if_not_exists=True)
    orders = catalog.create_table(
        "shop.orders",
        "id BIGINT, price DOUBLE, at TIMESTAMP(3), dt STRING",
        partition_by="dt",
        options={"bucket": 2, "bucket-key": "id"},
        watermark=("at", "INTERVAL '5' SECOND"),
    )
    snapshot = orders.append([{"id": 1, "price": 9.5, "at": None, "dt": "2026-01-01"}])
    if snapshot is not None:
        identity: int = snapshot.id
        print(identity, snapshot.commit_kind is penstock.CommitKind.APPEND)
    orders.append(pa.table({"id": [2], "price": [3.0], "at": [dt.datetime(2026, 1, 1)], "dt": ["2026-01-01"]}))
    for batch in orders.to_batches(limit=10):
        print(batch.num_rows)
    for batch in orders.follow(once=True):
        print(batch.num_rows)
    result: penstock.CompactionResult = orders.compact(strategy="full")
    print(len(result.snapshots), orders.explain(filter="id = 1"), orders.inspect.lag().num_rows)
    changed = catalog.alter_table("shop.orders", penstock.AddColumn(column=("note",), type="STRING"))
    orders.create_tag("first")
    expired: penstock.Expiration = changed.expire_snapshots(retain_max=2, retain_min=1, dry_run=True)
    print(expired.snapshot_ids, [field.name for field in changed.schema.fields])
    try:
        catalog.load_table("shop.none")
    except penstock.NotFoundError as error:
        print(error)
    return total_of(changed, "2026-01-01")


if __name__ == "__main__":
    print(main())
