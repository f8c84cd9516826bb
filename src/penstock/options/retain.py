"""Options for expiration: which snapshots, partitions and tags are kept.

Source:
    Paimon ``api:CoreOptions.java``; docs/spec/commit.md sections 7 and 8.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from penstock.options.choices import ExpireMode, PartitionExpireStrategy, TagCreation, TagFormatter, TagPeriod
from penstock.options.group import Key, OptionGroup
from penstock.options.partition_time import PartitionTimeOptions
from penstock.options.values import MAX_INT, at_least, parse_bool, parse_duration_ms, parse_int, parse_text


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionOptions(OptionGroup):
    """Which snapshots expire."""

    num_retained_min: Annotated[
        int,
        Key(
            "snapshot.num-retained.min",
            at_least(1, parse_int),
            "minimum number of snapshots that are retained",
            honoured=True,
        ),
    ] = 10
    num_retained_max: Annotated[
        int,
        Key(
            "snapshot.num-retained.max",
            at_least(1, parse_int),
            "maximum number of snapshots; the oldest expire",
            honoured=True,
        ),
    ] = MAX_INT
    time_retained_ms: Annotated[
        int, Key("snapshot.time-retained", parse_duration_ms, "age at which a snapshot expires", honoured=True)
    ] = 3_600_000
    expire_limit: Annotated[
        int,
        Key(
            "snapshot.expire.limit",
            at_least(1, parse_int),
            "maximum number of snapshots that one expiration removes",
            honoured=True,
        ),
    ] = 50
    expire_mode: Annotated[
        ExpireMode,
        Key("snapshot.expire.execution-mode", ExpireMode, "whether a commit waits for the expiration", honoured=True),
    ] = ExpireMode.SYNC
    clean_empty_directories: Annotated[
        bool,
        Key(
            "snapshot.clean-empty-directories",
            parse_bool,
            "remove directories that an expiration leaves empty",
            ("snapshot.expire.clean-empty-directories",),
            honoured=True,
        ),
    ] = False
    file_operation_threads: Annotated[
        int | None,
        Key(
            "file-operation.thread-num",
            at_least(1, parse_int),
            "number of threads that delete files",
            ("delete-file.thread-num",),
            honoured=True,
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionExpireOptions(PartitionTimeOptions):
    """Which partitions expire; none if no expiration time is set."""

    expiration_time_ms: Annotated[
        int | None,
        Key("partition.expiration-time", parse_duration_ms, "age at which a partition is dropped", honoured=True),
    ] = None
    check_interval_ms: Annotated[
        int, Key("partition.expiration-check-interval", parse_duration_ms, "wait between checks", honoured=True)
    ] = 3_600_000
    strategy: Annotated[
        PartitionExpireStrategy,
        Key(
            "partition.expiration-strategy",
            PartitionExpireStrategy,
            "what determines the age of a partition",
            honoured=True,
        ),
    ] = PartitionExpireStrategy.VALUES_TIME
    max_num: Annotated[
        int,
        Key(
            "partition.expiration-max-num",
            at_least(1, parse_int),
            "maximum number of partitions that one check drops",
            honoured=True,
        ),
    ] = 100
    batch_size: Annotated[
        int | None,
        Key(
            "partition.expiration-batch-size",
            at_least(1, parse_int),
            "maximum number of partitions that one commit drops",
            honoured=True,
        ),
    ] = None
    end_input_check: Annotated[
        bool, Key("end-input.check-partition-expire", parse_bool, "check when a bounded input ends", honoured=True)
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TagOptions(OptionGroup):
    """Tags that commits create and delete.

    Attributes:
        watermark_zone: name of the time zone in which the day or hour of a watermark is determined.
        process_zone: name of the time zone for the time of a commit; None for the zone of this machine.
    """

    automatic_creation: Annotated[
        TagCreation, Key("tag.automatic-creation", TagCreation, "which time creates tags", honoured=True)
    ] = TagCreation.NONE
    creation_period: Annotated[
        TagPeriod, Key("tag.creation-period", TagPeriod, "how often tags are created", honoured=True)
    ] = TagPeriod.DAILY
    creation_period_duration_ms: Annotated[
        int | None, Key("tag.creation-period-duration", parse_duration_ms, "the same, as a duration", honoured=True)
    ] = None
    creation_delay_ms: Annotated[
        int,
        Key("tag.creation-delay", parse_duration_ms, "wait after a period before its tag is created", honoured=True),
    ] = 0
    period_formatter: Annotated[
        TagFormatter, Key("tag.period-formatter", TagFormatter, "format of the period in a tag's name", honoured=True)
    ] = TagFormatter.WITH_DASHES
    num_retained_max: Annotated[
        int | None,
        Key(
            "tag.num-retained-max",
            at_least(1, parse_int),
            "maximum number of automatic tags; the oldest are deleted",
            honoured=True,
        ),
    ] = None
    default_time_retained_ms: Annotated[
        int | None,
        Key(
            "tag.default-time-retained",
            parse_duration_ms,
            "age at which a tag without its own retention time is deleted",
            honoured=True,
        ),
    ] = None
    time_expire_enabled: Annotated[
        bool, Key("tag.time-expire-enabled", parse_bool, "delete tags by age", honoured=True)
    ] = True
    automatic_completion: Annotated[
        bool, Key("tag.automatic-completion", parse_bool, "create tags for missed periods", honoured=True)
    ] = False
    batch_customized_name: Annotated[
        str | None, Key("tag.batch.customized-name", parse_text, "name of the tag that a batch creates", honoured=True)
    ] = None
    create_success_file: Annotated[
        bool, Key("tag.create-success-file", parse_bool, "write a success file for each new tag", honoured=True)
    ] = False
    watermark_zone: Annotated[
        str, Key("sink.watermark-time-zone", parse_text, "time zone of tags by watermark", honoured=True)
    ] = "UTC"
    process_zone: Annotated[
        str | None, Key("sink.process-time-zone", parse_text, "time zone of tags by clock", honoured=True)
    ] = None
