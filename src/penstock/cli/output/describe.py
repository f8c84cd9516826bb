"""A table's description as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.cli.times import instant_text
from penstock.format.types.text import format_sql_type
from penstock.options import BucketOptions
from penstock.printable import mask_options

if TYPE_CHECKING:
    from penstock.api.table import Table
    from penstock.cli.output.plain import Plain
    from penstock.format.schema import TableSchema
    from penstock.format.snapshot import Snapshot


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


def describe_table(table: Table) -> dict[str, Plain]:
    """Return what ``show`` prints in addition to the columns; reads only metadata of the latest snapshot."""
    summary = table.inspect.summary()
    bucket = BucketOptions.parse(table.options, table=table.name)
    return {
        "table": table.name,
        "location": table.location,
        "comment": table.schema.comment,
        "schema_id": table.schema.id,
        "partition_keys": list(table.schema.partition_keys),
        "bucket": bucket.bucket,
        "bucket_key": list(bucket.bucket_key),
        "options": dict(mask_options(table.schema.options)),
        **describe_snapshot(summary.latest),
        "snapshots": summary.snapshots,
        "partitions": summary.partitions,
        "rows": summary.rows,
        "files": summary.files,
        "bytes": summary.bytes,
        "small_files": summary.small_files,
        "waiting_files": summary.waiting_files,
        "waiting_bytes": summary.waiting_bytes,
        "tags": list(summary.tags),
        "consumers": list(summary.consumers),
    }


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
