"""Options for writing rows and committing them.

Source:
    Paimon ``api:CoreOptions.java``; docs/spec/commit.md sections 8.2 and 8.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from penstock.options.choices import SinkStrategy
from penstock.options.group import Key, OptionGroup
from penstock.options.values import (
    KIB,
    MAX_LONG,
    MIB,
    at_least,
    parse_bool,
    parse_bytes,
    parse_duration_ms,
    parse_int,
    parse_long,
    parse_lower,
    parse_text,
)

DURABLE_KEY: Final = "penstock.durable"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions(OptionGroup):
    """Settings of a writer other than layout and format."""

    target_file_bytes: Annotated[
        int, Key("target-file-size", at_least(1, parse_bytes), "size at which a data file is closed", honoured=True)
    ] = 256 * MIB
    target_file_rows: Annotated[
        int, Key("target-file-row-num", at_least(1, parse_long), "rows at which a data file is closed", honoured=True)
    ] = MAX_LONG
    write_only: Annotated[
        bool,
        Key(
            "write-only",
            parse_bool,
            "no compaction and no maintenance by writers",
            ("write.compaction-skip",),
            honoured=True,
        ),
    ] = False
    write_buffer_for_append: Annotated[
        bool, Key("write-buffer-for-append", parse_bool, "buffer rows from the start of a task", honoured=True)
    ] = False
    write_buffer_bytes: Annotated[
        int, Key("write-buffer-size", at_least(1, parse_bytes), "memory for buffered rows of a task", honoured=True)
    ] = 256 * MIB
    write_buffer_spillable: Annotated[
        bool, Key("write-buffer-spillable", parse_bool, "spill the buffer to local disk when it is full", honoured=True)
    ] = True
    write_buffer_spill_max_disk_bytes: Annotated[
        int,
        Key("write-buffer-spill.max-disk-size", parse_bytes, "local disk for spilled rows of a task", honoured=True),
    ] = MAX_LONG
    write_max_writers_to_spill: Annotated[
        int,
        Key(
            "write-max-writers-to-spill",
            at_least(0, parse_int),
            "open files of a task above which rows are buffered",
            honoured=True,
        ),
    ] = 10
    page_bytes: Annotated[int, Key("page-size", at_least(1, parse_bytes), "page size of the write buffer")] = 64 * KIB
    spill_compression: Annotated[str, Key("spill-compression", parse_lower, "codec of spilled rows", honoured=True)] = (
        "zstd"
    )
    spill_compression_zstd_level: Annotated[
        int, Key("spill-compression.zstd-level", parse_int, "zstd level of spilled rows", honoured=True)
    ] = 1
    ignore_delete: Annotated[bool, Key("ignore-delete", parse_bool, "ignore retractions instead of refusing them")] = (
        False
    )
    dynamic_partition_overwrite: Annotated[
        bool,
        Key(
            "dynamic-partition-overwrite",
            parse_bool,
            "an overwrite replaces only partitions that receive rows",
            honoured=True,
        ),
    ] = True
    sink_strategy: Annotated[
        SinkStrategy,
        Key(
            "partition.sink-strategy",
            SinkStrategy,
            "shuffle rows by partition and bucket before a Spark write",
            honoured=True,
        ),
    ] = SinkStrategy.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOptions(OptionGroup):
    """How a commit is retried, and how an empty commit is handled.

    Attributes:
        max_retries: maximal number of retries; None if only the time is limited.
        timeout_ms: time for all attempts; None if only the number is limited, or for two minutes if neither is set.
        max_retry_wait_ms: longest wait between attempts; None for a value that suits a commit of about 10 ms.
        ignore_empty_commit: None for the default of the caller: batches skip empty commits, streams commit them.
        durable: flush files to disk; for local storage only, other storage is inherently durable or not at all.
        accept_unknown_batch: write a micro-batch even if it is unknown whether the table already contains it.
        allow_other_engines: on an object store, commit although another engine created the latest snapshot.
        last_safe_snapshot: snapshot id; a COMPACT or OVERWRITE of another writer after it aborts the commit; None for
            no check.
    """

    max_retries: Annotated[
        int | None,
        Key(
            "commit.max-retries",
            at_least(0, parse_int),
            "attempts after other writers committed first; without this and a timeout, for two minutes",
            honoured=True,
        ),
    ] = None
    timeout_ms: Annotated[
        int | None, Key("commit.timeout", parse_duration_ms, "time for all attempts together", honoured=True)
    ] = None
    min_retry_wait_ms: Annotated[
        int, Key("commit.min-retry-wait", parse_duration_ms, "wait before the first retry", honoured=True)
    ] = 10
    max_retry_wait_ms: Annotated[
        int | None,
        Key("commit.max-retry-wait", parse_duration_ms, "longest wait between retries; default: 250 ms", honoured=True),
    ] = None
    user_prefix: Annotated[
        str | None, Key("commit.user-prefix", parse_text, "prefix of generated commit users", honoured=True)
    ] = None
    force_create_snapshot: Annotated[
        bool, Key("commit.force-create-snapshot", parse_bool, "streams commit even without data", honoured=True)
    ] = False
    allow_other_engines: Annotated[
        bool,
        Key(
            "penstock.object-store.allow-other-engines",
            parse_bool,
            "commit on an object store although another engine created the latest snapshot, and must not write now",
            honoured=True,
        ),
    ] = False
    ignore_empty_commit: Annotated[
        bool | None,
        Key("snapshot.ignore-empty-commit", parse_bool, "create no snapshot when nothing changed", honoured=True),
    ] = None
    force_compact: Annotated[
        bool, Key("commit.force-compact", parse_bool, "wait for the running compaction before a commit")
    ] = False
    last_safe_snapshot: Annotated[
        int | None,
        Key(
            "commit.strict-mode.last-safe-snapshot",
            parse_long,
            "fail if another commit changed the same partitions after this snapshot",
        ),
    ] = None
    durable: Annotated[
        bool,
        Key(
            DURABLE_KEY,
            parse_bool,
            "wait at each commit until its files are on the disk, so that a power cut does not undo it",
            honoured=True,
        ),
    ] = True
    accept_unknown_batch: Annotated[
        bool,
        Key(
            "penstock.accept-unknown-batch",
            parse_bool,
            "a stream writes a batch even if it is unknown whether the table already has it",
            honoured=True,
        ),
    ] = False
    discard_duplicate_files: Annotated[
        bool, Key("commit.discard-duplicate-files", parse_bool, "omit files of an append that are already live")
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestOptions(OptionGroup):
    """How manifests are written and merged."""

    manifest_target_file_bytes: Annotated[
        int,
        Key("manifest.target-file-size", at_least(1, parse_bytes), "size at which a manifest is closed", honoured=True),
    ] = 8 * MIB
    manifest_merge_min_count: Annotated[
        int,
        Key(
            "manifest.merge-min-count",
            at_least(1, parse_int),
            "number of small manifests at which they are merged",
            honoured=True,
        ),
    ] = 30
    manifest_full_compaction_threshold_bytes: Annotated[
        int,
        Key(
            "manifest.full-compaction-threshold-size",
            parse_bytes,
            "size of changed manifests at which all are rewritten",
            honoured=True,
        ),
    ] = 16 * MIB
    manifest_compression: Annotated[
        str, Key("manifest.compression", parse_lower, "codec of manifests and manifest lists", honoured=True)
    ] = "zstd"
    compression_zstd_level: Annotated[
        int, Key("file.compression.zstd-level", parse_int, "zstd level of data files and manifests", honoured=True)
    ] = 1
    manifest_format: Annotated[str, Key("manifest.format", parse_lower, "format of manifests; only avro")] = "avro"
    delete_file_drops_stats: Annotated[
        bool, Key("manifest.delete-file-drop-stats", parse_bool, "no statistics in entries that delete a file")
    ] = False
