"""Options for writing rows and committing them.

Source:
    Paimon ``api:CoreOptions.java``; docs/spec/commit.md sections 8.2 and 8.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from penstock.options.choices import SinkStrategy
from penstock.options.group import (
    KIB,
    MAX_LONG,
    MIB,
    OptionGroup,
    at_least,
    option,
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

    target_file_bytes: int = option(
        "target-file-size", at_least(1, parse_bytes), 256 * MIB, "size at which a data file is closed"
    )
    target_file_rows: int = option(
        "target-file-row-num", at_least(1, parse_long), MAX_LONG, "rows at which a data file is closed"
    )
    write_only: bool = option(
        "write-only", parse_bool, False, "no compaction and no maintenance by writers", ("write.compaction-skip",)
    )
    write_buffer_for_append: bool = option(
        "write-buffer-for-append", parse_bool, False, "buffer rows from the start of a task"
    )
    write_buffer_bytes: int = option(
        "write-buffer-size", at_least(1, parse_bytes), 256 * MIB, "memory for buffered rows of a task"
    )
    write_buffer_spillable: bool = option(
        "write-buffer-spillable", parse_bool, True, "spill the buffer to local disk when it is full"
    )
    write_buffer_spill_max_disk_bytes: int = option(
        "write-buffer-spill.max-disk-size", parse_bytes, MAX_LONG, "local disk for spilled rows of a task"
    )
    write_max_writers_to_spill: int = option(
        "write-max-writers-to-spill", at_least(0, parse_int), 10, "open files of a task above which rows are buffered"
    )
    page_bytes: int = option(
        "page-size", at_least(1, parse_bytes), 64 * KIB, "page size of the write buffer", honoured=False
    )
    spill_compression: str = option("spill-compression", parse_lower, "zstd", "codec of spilled rows")
    spill_compression_zstd_level: int = option(
        "spill-compression.zstd-level", parse_int, 1, "zstd level of spilled rows"
    )
    ignore_delete: bool = option(
        "ignore-delete", parse_bool, False, "ignore retractions instead of refusing them", honoured=False
    )
    dynamic_partition_overwrite: bool = option(
        "dynamic-partition-overwrite", parse_bool, True, "an overwrite replaces only partitions that receive rows"
    )
    sink_strategy: SinkStrategy = option(
        "partition.sink-strategy",
        SinkStrategy,
        SinkStrategy.NONE,
        "shuffle rows by partition and bucket before a Spark write",
    )


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

    max_retries: int | None = option(
        "commit.max-retries",
        at_least(0, parse_int),
        None,
        "attempts after other writers committed first; without this and a timeout, for two minutes",
    )
    timeout_ms: int | None = option("commit.timeout", parse_duration_ms, None, "time for all attempts together")
    min_retry_wait_ms: int = option("commit.min-retry-wait", parse_duration_ms, 10, "wait before the first retry")
    max_retry_wait_ms: int | None = option(
        "commit.max-retry-wait", parse_duration_ms, None, "longest wait between retries; default: 250 ms"
    )
    user_prefix: str | None = option("commit.user-prefix", parse_text, None, "prefix of generated commit users")
    force_create_snapshot: bool = option(
        "commit.force-create-snapshot", parse_bool, False, "streams commit even without data"
    )
    allow_other_engines: bool = option(
        "penstock.object-store.allow-other-engines",
        parse_bool,
        False,
        "commit on an object store although another engine created the latest snapshot, and must not write now",
    )
    ignore_empty_commit: bool | None = option(
        "snapshot.ignore-empty-commit", parse_bool, None, "create no snapshot when nothing changed"
    )
    force_compact: bool = option(
        "commit.force-compact", parse_bool, False, "wait for the running compaction before a commit", honoured=False
    )
    last_safe_snapshot: int | None = option(
        "commit.strict-mode.last-safe-snapshot",
        parse_long,
        None,
        "fail if another commit changed the same partitions after this snapshot",
        honoured=False,
    )
    durable: bool = option(
        DURABLE_KEY,
        parse_bool,
        True,
        "wait at each commit until its files are on the disk, so that a power cut does not undo it",
    )
    accept_unknown_batch: bool = option(
        "penstock.accept-unknown-batch",
        parse_bool,
        False,
        "a stream writes a batch even if it is unknown whether the table already has it",
    )
    discard_duplicate_files: bool = option(
        "commit.discard-duplicate-files",
        parse_bool,
        False,
        "omit files of an append that are already live",
        honoured=False,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionVectorOptions(OptionGroup):
    """Whether and how row changes delete rows by deletion vectors."""

    is_enabled: bool = option(
        "deletion-vectors.enabled",
        parse_bool,
        False,
        "row changes delete rows by deletion vectors instead of rewriting their files",
    )
    is_64: bool = option("deletion-vectors.bitmap64", parse_bool, False, "new deletion vectors have 64 bits")
    target_file_bytes: int = option(
        "deletion-vector.index-file.target-size",
        at_least(1, parse_bytes),
        2 * MIB,
        "size at which an index file of deletion vectors is closed, in tables without buckets",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestOptions(OptionGroup):
    """How manifests are written and merged."""

    manifest_target_file_bytes: int = option(
        "manifest.target-file-size", at_least(1, parse_bytes), 8 * MIB, "size at which a manifest is closed"
    )
    manifest_merge_min_count: int = option(
        "manifest.merge-min-count", at_least(1, parse_int), 30, "number of small manifests at which they are merged"
    )
    manifest_full_compaction_threshold_bytes: int = option(
        "manifest.full-compaction-threshold-size",
        parse_bytes,
        16 * MIB,
        "size of changed manifests at which all are rewritten",
    )
    manifest_sort: bool = option(
        "manifest-sort.enabled", parse_bool, False, "sort manifest entries by partition when all are rewritten"
    )
    manifest_sort_column: str | None = option(
        "manifest-sort.partition-field", parse_text, None, "the partition column to sort by; by default, the first"
    )
    manifest_sort_max_rewrite_bytes: int = option(
        "manifest-sort.max-rewrite-size",
        parse_bytes,
        256 * MIB,
        "maximum size of manifests with overlapping ranges that are sorted together",
    )
    manifest_compression: str = option(
        "manifest.compression", parse_lower, "zstd", "codec of manifests and manifest lists"
    )
    compression_zstd_level: int = option(
        "file.compression.zstd-level", parse_int, 1, "zstd level of data files and manifests"
    )
    manifest_format: str = option(
        "manifest.format", parse_lower, "avro", "format of manifests; only avro", honoured=False
    )
    delete_file_drops_stats: bool = option(
        "manifest.delete-file-drop-stats",
        parse_bool,
        False,
        "no statistics in entries that delete a file",
        honoured=False,
    )
