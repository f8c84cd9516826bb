"""Enums for option values.

Source:
    Paimon ``api:CoreOptions.java``, ``flink:FlinkConnectorOptions.java``.
"""

from __future__ import annotations

from enum import StrEnum


class SinkStrategy(StrEnum):
    """Shuffle before a write."""

    NONE = "none"
    HASH = "hash"
    PARTITION_DYNAMIC = "partition_dynamic"


class ScanMode(StrEnum):
    """Where a read starts; ``earliest`` is specific to Penstock."""

    DEFAULT = "default"
    LATEST_FULL = "latest-full"
    LATEST = "latest"
    COMPACTED_FULL = "compacted-full"
    FROM_TIMESTAMP = "from-timestamp"
    FROM_FILE_CREATION_TIME = "from-file-creation-time"
    FROM_CREATION_TIMESTAMP = "from-creation-timestamp"
    FROM_SNAPSHOT = "from-snapshot"
    FROM_SNAPSHOT_FULL = "from-snapshot-full"
    INCREMENTAL = "incremental"
    LATEST_DELTA = "latest-delta"
    EARLIEST = "earliest"


class IncrementalScanMode(StrEnum):
    """What a batch read between two snapshots returns."""

    AUTO = "auto"
    DELTA = "delta"
    CHANGELOG = "changelog"
    DIFF = "diff"


class ConsumerMode(StrEnum):
    """When a consumer's position moves."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


class WatermarkEmitStrategy(StrEnum):
    """When a source emits its watermark."""

    ON_EVENT = "on-event"
    ON_PERIODIC = "on-periodic"


class ExpireMode(StrEnum):
    """Whether a commit waits for the expiration after it."""

    SYNC = "sync"
    ASYNC = "async"


class PartitionExpireStrategy(StrEnum):
    """What determines a partition's age."""

    VALUES_TIME = "values-time"
    UPDATE_TIME = "update-time"
    CUSTOM = "custom"


class MarkDoneMode(StrEnum):
    """The clock that determines when a partition is done."""

    PROCESS_TIME = "process-time"
    WATERMARK = "watermark"


class MarkDoneAction(StrEnum):
    """How a partition is marked done."""

    SUCCESS_FILE = "success-file"
    DONE_PARTITION = "done-partition"
    MARK_EVENT = "mark-event"
    HTTP_REPORT = "http-report"
    CUSTOM = "custom"


class TagCreation(StrEnum):
    """What triggers the automatic creation of tags."""

    NONE = "none"
    PROCESS_TIME = "process-time"
    WATERMARK = "watermark"
    BATCH = "batch"


class TagPeriod(StrEnum):
    """How often tags are created."""

    DAILY = "daily"
    HOURLY = "hourly"
    TWO_HOURS = "two-hours"


class TagFormatter(StrEnum):
    """How the period is written in a tag's name."""

    WITH_DASHES = "with_dashes"
    WITHOUT_DASHES = "without_dashes"
    WITHOUT_DASHES_AND_SPACES = "without_dashes_and_spaces"


class RangeStrategy(StrEnum):
    """Whether sort compaction balances its ranges by bytes or by rows."""

    SIZE = "size"
    QUANTITY = "quantity"


class ClusteringStrategy(StrEnum):
    """Order of rows inside sorted files; ``auto`` chooses by the number of columns."""

    AUTO = "auto"
    ORDER = "order"
    ZORDER = "zorder"
    HILBERT = "hilbert"


class ClusteringMode(StrEnum):
    """Whether incremental clustering sorts rows across files, or only within each of them."""

    GLOBAL_SORT = "global-sort"
    LOCAL_SORT = "local-sort"
