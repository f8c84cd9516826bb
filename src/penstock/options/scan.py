"""Options for reading a table: which snapshot, which splits.

Source:
    Paimon ``api:CoreOptions.java``; docs/spec/commit.md section 8.5, docs/spec/streaming.md section 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from penstock.options.choices import IncrementalScanMode, ScanMode
from penstock.options.group import (
    MIB,
    OptionGroup,
    at_least,
    choice,
    option,
    parse_bool,
    parse_bytes,
    parse_int,
    parse_long,
    parse_millis,
    parse_text,
)

_SCAN_MODE: Final = choice(ScanMode, {"full": ScanMode.LATEST_FULL})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions(OptionGroup):
    """Where a read starts and how files are grouped into splits; times in ms since 1970-01-01 UTC.

    Attributes:
        timestamp: local time ``yyyy-MM-dd HH:mm:ss[.SSS]``; the caller applies the time zone.
        watermark: read the first snapshot whose watermark is at least this value.
        version: a tag, ``watermark-<n>`` or a snapshot id, tried in that order.
        incremental_between: two tags or two snapshot ids, start exclusive: ``3,8``.
        incremental_between_timestamp: two times in ms, or two local times.
        bucket: the only bucket to read; None for all buckets.
    """

    scan_mode: ScanMode = option("scan.mode", _SCAN_MODE, ScanMode.DEFAULT, "where the read starts", ("log.scan",))
    snapshot_id: int | None = option("scan.snapshot-id", parse_long, None, "read this snapshot")
    timestamp_millis: int | None = option(
        "scan.timestamp-millis",
        parse_millis,
        None,
        "read the newest snapshot committed at or before this time",
        ("log.scan.timestamp-millis",),
    )
    timestamp: str | None = option(
        "scan.timestamp", parse_text, None, "the same, as local time yyyy-MM-dd HH:mm:ss[.SSS]"
    )
    tag_name: str | None = option("scan.tag-name", parse_text, None, "read this tag's snapshot")
    watermark: int | None = option(
        "scan.watermark", parse_millis, None, "read the first snapshot whose watermark reaches this"
    )
    version: str | None = option("scan.version", parse_text, None, "a tag, watermark-<n> or snapshot id")
    file_creation_time_millis: int | None = option(
        "scan.file-creation-time-millis", parse_millis, None, "read only files created at or after this time"
    )
    creation_time_millis: int | None = option(
        "scan.creation-time-millis", parse_millis, None, "read from the snapshot after this time"
    )
    incremental_between: str | None = option(
        "incremental-between", parse_text, None, "two tags or snapshot ids, the first exclusive"
    )
    incremental_between_timestamp: str | None = option(
        "incremental-between-timestamp", parse_text, None, "two times in ms, the first exclusive"
    )
    incremental_scan_mode: IncrementalScanMode = option(
        "incremental-between-scan-mode",
        IncrementalScanMode,
        IncrementalScanMode.AUTO,
        "what is read between two snapshots",
    )
    incremental_to_auto_tag: str | None = option(
        "incremental-to-auto-tag", parse_text, None, "read from the automatic tag before this one", honoured=False
    )
    incremental_tags_as_snapshots: bool = option(
        "incremental-between-tag-to-snapshot", parse_bool, False, "two tags mean their snapshots, not a difference"
    )
    file_index_enabled: bool = option("file-index.read.enabled", parse_bool, True, "skip files by their indexes")
    file_index_max_bytes: int = option(
        "penstock.file-index.read.max-size", parse_bytes, 256 * MIB, "read by one plan from index files"
    )
    split_target_bytes: int = option(
        "source.split.target-size", at_least(1, parse_bytes), 128 * MIB, "bytes of files in one split"
    )
    split_open_file_cost_bytes: int = option(
        "source.split.open-file-cost", parse_bytes, 4 * MIB, "minimum weight of a file in a split"
    )
    plan_sort_partition: bool = option(
        "scan.plan-sort-partition", parse_bool, False, "deliver partitions in the order of their values"
    )
    bucket: int | None = option("scan.bucket", parse_int, None, "read only this bucket", honoured=False)
    manifest_parallelism: int | None = option(
        "scan.manifest.parallelism", at_least(1, parse_int), None, "manifests read in parallel", honoured=False
    )
    ignore_corrupt_files: bool = option(
        "scan.ignore-corrupt-files", parse_bool, False, "skip data files that cannot be read", honoured=False
    )
    ignore_lost_files: bool = option(
        "scan.ignore-lost-files", parse_bool, False, "skip data files that are missing", honoured=False
    )
