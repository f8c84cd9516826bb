"""Options for streaming reads and writes: discovery, limits, ends, consumers, watermarks.

Source:
    Paimon ``api:CoreOptions.java``, ``flink:FlinkConnectorOptions.java``, ``spark:SparkConnectorOptions.java``;
    docs/spec/commit.md section 8.5, docs/spec/streaming.md. Keys that begin with ``penstock.`` are Penstock's own.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.options.choices import ConsumerMode, WatermarkEmitStrategy
from penstock.options.group import (
    OptionGroup,
    at_least,
    option,
    parse_bool,
    parse_bytes,
    parse_duration_ms,
    parse_int,
    parse_long,
    parse_millis,
    parse_text,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions(OptionGroup):
    """How a streaming read follows snapshots, how much it reads per micro-batch and where it ends.

    Attributes:
        bounded_watermark: watermark in ms; the stream ends before the first snapshot with a greater watermark.
        bounded_snapshot_id: the last snapshot that the stream reads.
        bounded_timestamp_millis: the stream ends before the first snapshot that was committed after this time.
        max_trigger_delay_ms: longest wait for ``min_rows_per_trigger``.
        fail_on_data_loss: fail if snapshots expired before they were read, instead of continuing at the earliest one.
    """

    discovery_interval_ms: int = option(
        "continuous.discovery-interval",
        parse_duration_ms,
        10_000,
        "wait between listings of new snapshots; if unset, every trigger lists them",
    )
    snapshot_delay_ms: int | None = option(
        "streaming.read.snapshot.delay", parse_duration_ms, None, "age of a snapshot before it is read"
    )
    read_append_overwrite: bool = option(
        "streaming-read-append-overwrite", parse_bool, False, "deliver the rows that an overwrite writes"
    )
    read_overwrite: bool = option(
        "streaming-read-overwrite",
        parse_bool,
        False,
        "primary key tables only; use streaming-read-append-overwrite",
        honoured=False,
    )
    bounded: bool | None = option("scan.bounded", parse_bool, None, "read the existing rows, then end")
    bounded_watermark: int | None = option(
        "scan.bounded.watermark", parse_millis, None, "end before a snapshot with a greater watermark"
    )
    bounded_snapshot_id: int | None = option(
        "penstock.scan.bounded.snapshot-id", parse_long, None, "end after this snapshot"
    )
    bounded_timestamp_millis: int | None = option(
        "penstock.scan.bounded.timestamp-millis",
        parse_millis,
        None,
        "end before the first snapshot committed after this time",
    )
    max_files_per_trigger: int | None = option(
        "read.stream.maxFilesPerTrigger",
        at_least(1, parse_int),
        None,
        "maximum number of files of a micro-batch",
        ("maxFilesPerTrigger",),
    )
    max_bytes_per_trigger: int | None = option(
        "read.stream.maxBytesPerTrigger",
        at_least(1, parse_bytes),
        None,
        "maximum number of bytes of a micro-batch",
        ("maxBytesPerTrigger",),
    )
    max_rows_per_trigger: int | None = option(
        "read.stream.maxRowsPerTrigger",
        at_least(1, parse_long),
        None,
        "maximum number of rows of a micro-batch",
        ("maxRowsPerTrigger",),
    )
    min_rows_per_trigger: int | None = option(
        "read.stream.minRowsPerTrigger",
        at_least(1, parse_long),
        None,
        "minimum number of rows of a micro-batch",
        ("minRowsPerTrigger",),
    )
    max_trigger_delay_ms: int | None = option(
        "read.stream.maxTriggerDelayMs",
        at_least(1, parse_long),
        None,
        "longest wait for the minimum number of rows, in ms",
        ("maxTriggerDelayMs",),
    )
    max_snapshot_count: int = option(
        "scan.max-snapshot.count", parse_int, -1, "maximum number of snapshots of a micro-batch; -1 for no limit"
    )
    scan_parallelism: int | None = option(
        "scan.parallelism",
        at_least(1, parse_int),
        None,
        "streams: maximum number of tasks of a queue (if unset, the number of cores, more for a micro-batch that is "
        "large, and never more than buckets); of a scalable table the number of tasks that its files are divided into, "
        "if they suffice (if unset, the number of cores)",
    )
    max_splits_per_task: int = option(
        "scan.max-splits-per-task", at_least(1, parse_int), 10, "splits waiting for each reader", honoured=False
    )
    shuffle_bucket_with_partition: bool = option(
        "read.shuffle-bucket-with-partition",
        parse_bool,
        True,
        "spread the partitions of a bucket number over readers",
        ("streaming-read.shuffle-bucket-with-partition",),
        honoured=False,
    )
    fail_on_data_loss: bool = option(
        "penstock.fail-on-data-loss", parse_bool, True, "fail when unread snapshots have expired"
    )
    align_checkpoints: bool = option(
        "source.checkpoint-align.enabled", parse_bool, False, "micro-batches end at the ends of snapshots"
    )
    align_timeout_ms: int = option(
        "source.checkpoint-align.timeout",
        parse_duration_ms,
        30_000,
        "time to wait for a snapshot to align with",
        honoured=False,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerOptions(OptionGroup):
    """The position that a reader stores in the table; it prevents the expiration of snapshots not yet read."""

    consumer_id: str | None = option(
        "consumer-id", parse_text, None, "name of the consumer whose position the table stores"
    )
    mode: ConsumerMode = option(
        "consumer.mode", ConsumerMode, ConsumerMode.EXACTLY_ONCE, "when the position advances", honoured=False
    )
    ignore_progress: bool = option(
        "consumer.ignore-progress",
        parse_bool,
        False,
        "start at `scan.mode`, not at the stored position, then update the position",
    )
    expiration_time_ms: int | None = option(
        "consumer.expiration-time", parse_duration_ms, None, "time without progress after which a consumer is deleted"
    )
    changelog_only: bool = option(
        "consumer.changelog-only", parse_bool, False, "the position protects changelogs only, not snapshots"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WatermarkOptions(OptionGroup):
    """Event time: watermarks of a streaming read, and watermarks that a streaming write stores in snapshots.

    Attributes:
        source_idle_timeout_ms: idle time after which its group no longer waits for a source; None for one minute.
        end_input_watermark: watermark in ms that is stored when a bounded input ends.
        upstream_idle_timeout_ms: idle time after which an upstream partition no longer holds the watermark back.
    """

    emit_strategy: WatermarkEmitStrategy = option(
        "scan.watermark.emit.strategy",
        WatermarkEmitStrategy,
        WatermarkEmitStrategy.ON_EVENT,
        "both have the same effect: a source's watermark advances at the ends of micro-batches",
    )
    source_idle_timeout_ms: int | None = option(
        "scan.watermark.idle-timeout",
        at_least(1, parse_duration_ms),
        None,
        "time without rows after which the group stops waiting for a source; default: 1 min",
    )
    alignment_group: str | None = option(
        "scan.watermark.alignment.group",
        parse_text,
        None,
        "name of the alignment group; its sources wait for each other",
    )
    alignment_max_drift_ms: int | None = option(
        "scan.watermark.alignment.max-drift",
        parse_duration_ms,
        None,
        "how far a source may be ahead of the slowest source of its group",
    )
    alignment_update_interval_ms: int = option(
        "scan.watermark.alignment.update-interval",
        at_least(1, parse_duration_ms),
        1_000,
        "interval at which members update and read the state of the group",
    )
    alignment_path: str | None = option(
        "penstock.scan.watermark.alignment.path",
        parse_text,
        None,
        "common directory for the state of the group, for tables of several warehouses",
    )
    snapshot_idle_timeout_ms: int | None = option(
        "snapshot.watermark-idle-timeout",
        parse_duration_ms,
        None,
        "time without rows after which a stream creates an empty snapshot, repeated each time it passes",
    )
    end_input_watermark: int | None = option(
        "end-input.watermark", parse_millis, None, "watermark of the last snapshot of a bounded input"
    )
    read_watermark: bool = option(
        "penstock.read.watermark", parse_bool, True, "apply the declared watermark to a read stream"
    )
    upstream_idle_timeout_ms: int | None = option(
        "penstock.sink.watermark-idle-timeout",
        parse_duration_ms,
        None,
        "time without rows after which a source bucket no longer holds the watermark back",
    )
