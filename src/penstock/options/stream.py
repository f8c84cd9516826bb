"""Options for streaming reads and writes: discovery, limits, ends, consumers, watermarks.

Source:
    Paimon ``api:CoreOptions.java``, ``flink:FlinkConnectorOptions.java``, ``spark:SparkConnectorOptions.java``;
    docs/spec/commit.md section 8.5, docs/spec/streaming.md. Keys that begin with ``penstock.`` are Penstock's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from penstock.options.choices import ConsumerMode, WatermarkEmitStrategy
from penstock.options.group import Key, OptionGroup
from penstock.options.values import (
    at_least,
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

    discovery_interval_ms: Annotated[
        int,
        Key(
            "continuous.discovery-interval",
            parse_duration_ms,
            "wait between listings of new snapshots; if unset, every trigger lists them",
            honoured=True,
        ),
    ] = 10_000
    snapshot_delay_ms: Annotated[
        int | None,
        Key("streaming.read.snapshot.delay", parse_duration_ms, "age of a snapshot before it is read", honoured=True),
    ] = None
    read_append_overwrite: Annotated[
        bool,
        Key("streaming-read-append-overwrite", parse_bool, "deliver the rows that an overwrite writes", honoured=True),
    ] = False
    read_overwrite: Annotated[
        bool,
        Key("streaming-read-overwrite", parse_bool, "primary key tables only; use streaming-read-append-overwrite"),
    ] = False
    bounded: Annotated[
        bool | None, Key("scan.bounded", parse_bool, "read the existing rows, then end", honoured=True)
    ] = None
    bounded_watermark: Annotated[
        int | None,
        Key("scan.bounded.watermark", parse_millis, "end before a snapshot with a greater watermark", honoured=True),
    ] = None
    bounded_snapshot_id: Annotated[
        int | None, Key("penstock.scan.bounded.snapshot-id", parse_long, "end after this snapshot", honoured=True)
    ] = None
    bounded_timestamp_millis: Annotated[
        int | None,
        Key(
            "penstock.scan.bounded.timestamp-millis",
            parse_millis,
            "end before the first snapshot committed after this time",
            honoured=True,
        ),
    ] = None
    max_files_per_trigger: Annotated[
        int | None,
        Key(
            "read.stream.maxFilesPerTrigger",
            at_least(1, parse_int),
            "maximum number of files of a micro-batch",
            ("maxFilesPerTrigger",),
            honoured=True,
        ),
    ] = None
    max_bytes_per_trigger: Annotated[
        int | None,
        Key(
            "read.stream.maxBytesPerTrigger",
            at_least(1, parse_bytes),
            "maximum number of bytes of a micro-batch",
            ("maxBytesPerTrigger",),
            honoured=True,
        ),
    ] = None
    max_rows_per_trigger: Annotated[
        int | None,
        Key(
            "read.stream.maxRowsPerTrigger",
            at_least(1, parse_long),
            "maximum number of rows of a micro-batch",
            ("maxRowsPerTrigger",),
            honoured=True,
        ),
    ] = None
    min_rows_per_trigger: Annotated[
        int | None,
        Key(
            "read.stream.minRowsPerTrigger",
            at_least(1, parse_long),
            "minimum number of rows of a micro-batch",
            ("minRowsPerTrigger",),
            honoured=True,
        ),
    ] = None
    max_trigger_delay_ms: Annotated[
        int | None,
        Key(
            "read.stream.maxTriggerDelayMs",
            at_least(1, parse_long),
            "longest wait for the minimum number of rows, in ms",
            ("maxTriggerDelayMs",),
            honoured=True,
        ),
    ] = None
    max_snapshot_count: Annotated[
        int,
        Key(
            "scan.max-snapshot.count",
            parse_int,
            "maximum number of snapshots of a micro-batch; -1 for no limit",
            honoured=True,
        ),
    ] = -1
    scan_parallelism: Annotated[
        int | None,
        Key(
            "scan.parallelism",
            at_least(1, parse_int),
            "streams: maximum number of tasks of a queue (if unset, one for each bucket); of a scalable table the "
            "number of tasks that its files are divided into, if they suffice (if unset, the number of cores)",
            honoured=True,
        ),
    ] = None
    max_splits_per_task: Annotated[
        int, Key("scan.max-splits-per-task", at_least(1, parse_int), "splits waiting for each reader")
    ] = 10
    shuffle_bucket_with_partition: Annotated[
        bool,
        Key(
            "read.shuffle-bucket-with-partition",
            parse_bool,
            "spread the partitions of a bucket number over readers",
            ("streaming-read.shuffle-bucket-with-partition",),
        ),
    ] = True
    fail_on_data_loss: Annotated[
        bool, Key("penstock.fail-on-data-loss", parse_bool, "fail when unread snapshots have expired", honoured=True)
    ] = True
    align_checkpoints: Annotated[
        bool,
        Key("source.checkpoint-align.enabled", parse_bool, "micro-batches end at the ends of snapshots", honoured=True),
    ] = False
    align_timeout_ms: Annotated[
        int, Key("source.checkpoint-align.timeout", parse_duration_ms, "time to wait for a snapshot to align with")
    ] = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerOptions(OptionGroup):
    """The position that a reader stores in the table; it prevents the expiration of snapshots not yet read."""

    consumer_id: Annotated[
        str | None,
        Key("consumer-id", parse_text, "name of the consumer whose position the table stores", honoured=True),
    ] = None
    mode: Annotated[ConsumerMode, Key("consumer.mode", ConsumerMode, "when the position advances")] = (
        ConsumerMode.EXACTLY_ONCE
    )
    ignore_progress: Annotated[
        bool,
        Key(
            "consumer.ignore-progress",
            parse_bool,
            "start at `scan.mode`, not at the stored position, then update the position",
            honoured=True,
        ),
    ] = False
    expiration_time_ms: Annotated[
        int | None,
        Key(
            "consumer.expiration-time",
            parse_duration_ms,
            "time without progress after which a consumer is deleted",
            honoured=True,
        ),
    ] = None
    changelog_only: Annotated[
        bool,
        Key(
            "consumer.changelog-only", parse_bool, "the position protects changelogs only, not snapshots", honoured=True
        ),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WatermarkOptions(OptionGroup):
    """Event time: watermarks of a streaming read, and watermarks that a streaming write stores in snapshots.

    Attributes:
        source_idle_timeout_ms: idle time after which its group no longer waits for a source; None for one minute.
        end_input_watermark: watermark in ms that is stored when a bounded input ends.
        upstream_idle_timeout_ms: idle time after which an upstream partition no longer holds the watermark back.
    """

    emit_strategy: Annotated[
        WatermarkEmitStrategy,
        Key(
            "scan.watermark.emit.strategy",
            WatermarkEmitStrategy,
            "both have the same effect: a source's watermark advances at the ends of micro-batches",
            honoured=True,
        ),
    ] = WatermarkEmitStrategy.ON_EVENT
    source_idle_timeout_ms: Annotated[
        int | None,
        Key(
            "scan.watermark.idle-timeout",
            at_least(1, parse_duration_ms),
            "time without rows after which the group stops waiting for a source; default: 1 min",
            honoured=True,
        ),
    ] = None
    alignment_group: Annotated[
        str | None,
        Key(
            "scan.watermark.alignment.group",
            parse_text,
            "name of the alignment group; its sources wait for each other",
            honoured=True,
        ),
    ] = None
    alignment_max_drift_ms: Annotated[
        int | None,
        Key(
            "scan.watermark.alignment.max-drift",
            parse_duration_ms,
            "how far a source may be ahead of the slowest source of its group",
            honoured=True,
        ),
    ] = None
    alignment_update_interval_ms: Annotated[
        int,
        Key(
            "scan.watermark.alignment.update-interval",
            at_least(1, parse_duration_ms),
            "interval at which members update and read the state of the group",
            honoured=True,
        ),
    ] = 1_000
    alignment_path: Annotated[
        str | None,
        Key(
            "penstock.scan.watermark.alignment.path",
            parse_text,
            "common directory for the state of the group, for tables of several warehouses",
            honoured=True,
        ),
    ] = None
    snapshot_idle_timeout_ms: Annotated[
        int | None,
        Key(
            "snapshot.watermark-idle-timeout",
            parse_duration_ms,
            "time without rows after which a stream creates an empty snapshot, repeated each time it passes",
            honoured=True,
        ),
    ] = None
    end_input_watermark: Annotated[
        int | None,
        Key("end-input.watermark", parse_millis, "watermark of the last snapshot of a bounded input", honoured=True),
    ] = None
    read_watermark: Annotated[
        bool,
        Key("penstock.read.watermark", parse_bool, "apply the declared watermark to a read stream", honoured=True),
    ] = True
    upstream_idle_timeout_ms: Annotated[
        int | None,
        Key(
            "penstock.sink.watermark-idle-timeout",
            parse_duration_ms,
            "time without rows after which a source bucket no longer holds the watermark back",
            honoured=True,
        ),
    ] = None
