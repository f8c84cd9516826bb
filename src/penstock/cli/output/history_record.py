"""A table over time as plain values, for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from penstock.api.history import history_table
from penstock.cli.draw.health import checks_of
from penstock.cli.output.plain import to_plain
from penstock.cli.times import instant_text

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.api.history import Reader, StalledWatermark, TableHistory
    from penstock.cli.output.plain import Plain


def history_record(history: TableHistory) -> dict[str, Plain]:
    """Return the whole history; times are text in UTC, watermarks ms of event time as in system tables."""
    return {
        "table": history.name,
        "location": history.location,
        "time": instant_text(history.seen_millis),
        "schema_id": history.schema_id,
        "bucket": history.total_buckets,
        "partition_keys": list(history.partition_keys),
        "event_time_column": history.event_time_column,
        "signs": [
            {"topic": check.topic, "verdict": check.status.value, "text": check.text} for check in checks_of(history)
        ],
        "history": _rows(history_table(history.commits)),
        "left_out_snapshots": history.left_out,
        "standstills": [_stalled_watermark(each) for each in history.standstills],
        "compaction": None if history.debt is None else dict(asdict(history.debt)),
        "readers": [_reader(reader) for reader in history.readers],
        "tags": [
            {"tag_name": tag.name, "snapshot_id": tag.snapshot_id, "commit_time": instant_text(tag.time_millis)}
            for tag in history.tags
        ],
        "buckets": [dict(asdict(each)) for each in history.buckets],
        "order": None
        if history.order is None
        else {"buckets": history.order.buckets, "files": history.order.files, "overlaps": history.order.overlaps},
    }


def _rows(rows: pa.Table) -> list[Plain]:
    columns = [to_plain(column.combine_chunks()) for column in rows.columns]
    return [dict(zip(rows.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]


def _stalled_watermark(each: StalledWatermark) -> dict[str, Plain]:
    return {
        "watermark": each.watermark,
        "from": instant_text(each.from_millis),
        "to": None if each.is_open else instant_text(each.to_millis),
        "duration_ms": each.duration_ms,
        "commits": each.commits,
    }


def _reader(reader: Reader) -> dict[str, Plain]:
    return {
        "reader": reader.name,
        "kind": reader.kind,
        "next_snapshot_id": reader.next_snapshot_id,
        "snapshots_behind": reader.snapshots,
        "files_behind": reader.files,
        "bytes_behind": reader.bytes,
        "rows_behind": reader.rows,
        "event_time_lag_ms": reader.event_time_lag_ms,
        "unread_since": None if reader.unread_since_millis is None else instant_text(reader.unread_since_millis),
        "expired_snapshots": reader.expired_snapshots,
    }
