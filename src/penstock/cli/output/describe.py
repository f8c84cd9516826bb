"""A table's description as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.cli.times import instant_text
from penstock.errors import UnsupportedFeatureError
from penstock.format.types.text import format_sql_type
from penstock.options import BucketOptions
from penstock.printable import mask_options
from penstock.table.compact.debt import measure_debt
from penstock.table.inspect.system import load_system_table
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.cli.output.plain import Plain
    from penstock.format.schema import TableSchema
    from penstock.format.snapshot import Snapshot
    from penstock.table.ref import TableRef


def table_columns(schema: TableSchema) -> list[dict[str, Plain]]:
    """Return one record per column."""
    return [
        {
            "id": field.id,
            "column": field.name,
            "type": format_sql_type(field.type),
            "partition_key": field.name in schema.partition_keys,
            "default": field.default_value,
            "comment": field.description,
        }
        for field in schema.fields
    ]


def describe_table(ref: TableRef) -> dict[str, Plain]:
    """Return what ``show`` prints besides the columns; reads metadata of the latest snapshot only."""
    store = MetadataStore(ref)
    bucket = ref.parsed(BucketOptions)
    partitions = load_system_table("partitions", ref, store)
    return {
        "table": ref.name,
        "location": ref.location,
        "comment": ref.schema.comment,
        "schema_id": ref.schema.id,
        "partition_keys": list(ref.schema.partition_keys),
        "bucket": bucket.bucket,
        "bucket_key": list(bucket.bucket_key),
        "options": dict(mask_options(ref.schema.options)),
        **describe_snapshot(store.load_latest_snapshot()),
        "snapshots": len(store.list_snapshot_ids()),
        "partitions": partitions.num_rows,
        "rows": _sum(partitions, "record_count"),
        "files": _sum(partitions, "file_count"),
        "bytes": _sum(partitions, "file_size_in_bytes"),
        **_debt(ref, store),
        "tags": list(store.list_tags()),
        "consumers": list(store.list_consumers()),
    }


def _debt(ref: TableRef, store: MetadataStore) -> dict[str, Plain]:
    """Return the compaction debt; nulls for a table that Penstock does not compact."""
    try:
        debts = measure_debt(ref, store, store.load_latest_snapshot(), with_history=False)
    except UnsupportedFeatureError:
        return dict.fromkeys(("small_files", "waiting_files", "waiting_bytes"))
    return {
        "small_files": sum(debt.small_files for debt in debts),
        "waiting_files": sum(debt.waiting_files for debt in debts),
        "waiting_bytes": sum(debt.waiting_bytes for debt in debts),
    }


def _sum(rows: pa.Table, column: str) -> int:
    return sum(value or 0 for value in rows.column(column).to_pylist())


def describe_snapshot(snapshot: Snapshot | None) -> dict[str, Plain]:
    """Return the main properties of a snapshot; all null without one."""
    if snapshot is None:
        return dict.fromkeys(("snapshot_id", "commit_kind", "commit_time", "commit_user", "watermark"))
    return {
        "snapshot_id": snapshot.id,
        "commit_kind": snapshot.commit_kind.value,
        "commit_time": instant_text(snapshot.time_millis),
        "commit_user": snapshot.commit_user,
        "watermark": snapshot.watermark,
    }
