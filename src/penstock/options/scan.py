"""Options for reading a table: which snapshot, which splits.

Source:
    Paimon ``api:CoreOptions.java``; docs/spec/commit.md section 8.5, docs/spec/streaming.md section 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from penstock.options.choices import IncrementalScanMode, ScanMode
from penstock.options.group import Key, OptionGroup
from penstock.options.values import (
    MIB,
    at_least,
    choice,
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

    scan_mode: Annotated[
        ScanMode, Key("scan.mode", _SCAN_MODE, "where the read starts", ("log.scan",), honoured=True)
    ] = ScanMode.DEFAULT
    snapshot_id: Annotated[int | None, Key("scan.snapshot-id", parse_long, "read this snapshot", honoured=True)] = None
    timestamp_millis: Annotated[
        int | None,
        Key(
            "scan.timestamp-millis",
            parse_millis,
            "read the newest snapshot committed at or before this time",
            ("log.scan.timestamp-millis",),
            honoured=True,
        ),
    ] = None
    timestamp: Annotated[
        str | None,
        Key("scan.timestamp", parse_text, "the same, as local time yyyy-MM-dd HH:mm:ss[.SSS]", honoured=True),
    ] = None
    tag_name: Annotated[str | None, Key("scan.tag-name", parse_text, "read this tag's snapshot", honoured=True)] = None
    watermark: Annotated[
        int | None,
        Key("scan.watermark", parse_millis, "read the first snapshot whose watermark reaches this", honoured=True),
    ] = None
    version: Annotated[
        str | None, Key("scan.version", parse_text, "a tag, watermark-<n> or snapshot id", honoured=True)
    ] = None
    file_creation_time_millis: Annotated[
        int | None,
        Key(
            "scan.file-creation-time-millis",
            parse_millis,
            "read only files created at or after this time",
            honoured=True,
        ),
    ] = None
    creation_time_millis: Annotated[
        int | None,
        Key("scan.creation-time-millis", parse_millis, "read from the snapshot after this time", honoured=True),
    ] = None
    incremental_between: Annotated[
        str | None,
        Key("incremental-between", parse_text, "two tags or snapshot ids, the first exclusive", honoured=True),
    ] = None
    incremental_between_timestamp: Annotated[
        str | None,
        Key("incremental-between-timestamp", parse_text, "two times in ms, the first exclusive", honoured=True),
    ] = None
    incremental_scan_mode: Annotated[
        IncrementalScanMode,
        Key("incremental-between-scan-mode", IncrementalScanMode, "what is read between two snapshots", honoured=True),
    ] = IncrementalScanMode.AUTO
    incremental_to_auto_tag: Annotated[
        str | None, Key("incremental-to-auto-tag", parse_text, "read from the automatic tag before this one")
    ] = None
    incremental_tags_as_snapshots: Annotated[
        bool,
        Key(
            "incremental-between-tag-to-snapshot",
            parse_bool,
            "two tags mean their snapshots, not a difference",
            honoured=True,
        ),
    ] = False
    file_index_enabled: Annotated[
        bool, Key("file-index.read.enabled", parse_bool, "skip files by their indexes", honoured=True)
    ] = True
    file_index_max_bytes: Annotated[
        int,
        Key("penstock.file-index.read.max-size", parse_bytes, "read by one plan from index files", honoured=True),
    ] = 256 * MIB
    split_target_bytes: Annotated[
        int, Key("source.split.target-size", at_least(1, parse_bytes), "bytes of files in one split", honoured=True)
    ] = 128 * MIB
    split_open_file_cost_bytes: Annotated[
        int, Key("source.split.open-file-cost", parse_bytes, "minimum weight of a file in a split", honoured=True)
    ] = 4 * MIB
    plan_sort_partition: Annotated[
        bool,
        Key("scan.plan-sort-partition", parse_bool, "deliver partitions in the order of their values", honoured=True),
    ] = False
    bucket: Annotated[int | None, Key("scan.bucket", parse_int, "read only this bucket")] = None
    manifest_parallelism: Annotated[
        int | None, Key("scan.manifest.parallelism", at_least(1, parse_int), "manifests read in parallel")
    ] = None
    ignore_corrupt_files: Annotated[
        bool, Key("scan.ignore-corrupt-files", parse_bool, "skip data files that cannot be read")
    ] = False
    ignore_lost_files: Annotated[
        bool, Key("scan.ignore-lost-files", parse_bool, "skip data files that are missing")
    ] = False
