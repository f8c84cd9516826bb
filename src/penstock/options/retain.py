"""Options for expiration and completeness: which snapshots, partitions and tags are kept, which partitions are done.

Source:
    Paimon ``api:CoreOptions.java``; docs/spec/commit.md sections 7 and 8.3; ``flink:FlinkConnectorOptions.java``;
    docs/spec/commit.md section 7.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from penstock.options.choices import (
    ExpireMode,
    MarkDoneAction,
    MarkDoneMode,
    PartitionExpireStrategy,
    TagCreation,
    TagFormatter,
    TagPeriod,
)
from penstock.options.group import (
    MAX_INT,
    OptionGroup,
    ValueKind,
    at_least,
    choice,
    option,
    parse_bool,
    parse_duration_ms,
    parse_int,
    parse_text,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionOptions(OptionGroup):
    """Which snapshots expire."""

    num_retained_min: int = option(
        "snapshot.num-retained.min", at_least(1, parse_int), 10, "minimum number of snapshots that are retained"
    )
    num_retained_max: int = option(
        "snapshot.num-retained.max", at_least(1, parse_int), MAX_INT, "maximum number of snapshots; the oldest expire"
    )
    time_retained_ms: int = option(
        "snapshot.time-retained", parse_duration_ms, 3_600_000, "age at which a snapshot expires"
    )
    expire_limit: int = option(
        "snapshot.expire.limit", at_least(1, parse_int), 50, "maximum number of snapshots that one expiration removes"
    )
    expire_mode: ExpireMode = option(
        "snapshot.expire.execution-mode", ExpireMode, ExpireMode.SYNC, "whether a commit waits for the expiration"
    )
    clean_empty_directories: bool = option(
        "snapshot.clean-empty-directories",
        parse_bool,
        False,
        "remove directories that an expiration leaves empty",
        ("snapshot.expire.clean-empty-directories",),
    )
    file_operation_threads: int | None = option(
        "file-operation.thread-num",
        at_least(1, parse_int),
        None,
        "number of threads that delete files",
        ("delete-file.thread-num",),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTimeOptions(OptionGroup):
    """How the time of a partition is derived from its values.

    Attributes:
        timestamp_pattern: text with partition columns, such as ``$dt $hour:00:00``.
        timestamp_formatter: Java date pattern of that text.
    """

    timestamp_pattern: str | None = option(
        "partition.timestamp-pattern", parse_text, None, "pattern that gives the time of a partition from its values"
    )
    timestamp_formatter: str | None = option("partition.timestamp-formatter", parse_text, None, "format of that time")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionExpireOptions(PartitionTimeOptions):
    """Which partitions expire; none if no expiration time is set."""

    expiration_time_ms: int | None = option(
        "partition.expiration-time", parse_duration_ms, None, "age at which a partition is dropped"
    )
    check_interval_ms: int = option(
        "partition.expiration-check-interval", parse_duration_ms, 3_600_000, "wait between checks"
    )
    strategy: PartitionExpireStrategy = option(
        "partition.expiration-strategy",
        PartitionExpireStrategy,
        PartitionExpireStrategy.VALUES_TIME,
        "what determines the age of a partition",
    )
    max_num: int = option(
        "partition.expiration-max-num", at_least(1, parse_int), 100, "maximum number of partitions that one check drops"
    )
    batch_size: int | None = option(
        "partition.expiration-batch-size",
        at_least(1, parse_int),
        None,
        "maximum number of partitions that one commit drops",
    )
    end_input_check: bool = option(
        "end-input.check-partition-expire", parse_bool, False, "check when a bounded input ends"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TagOptions(OptionGroup):
    """Tags that commits create and delete.

    Attributes:
        watermark_zone: name of the time zone in which the day or hour of a watermark is determined.
        process_zone: name of the time zone for the time of a commit; None for the zone of this machine.
    """

    automatic_creation: TagCreation = option(
        "tag.automatic-creation", TagCreation, TagCreation.NONE, "which time creates tags"
    )
    creation_period: TagPeriod = option("tag.creation-period", TagPeriod, TagPeriod.DAILY, "how often tags are created")
    creation_period_duration_ms: int | None = option(
        "tag.creation-period-duration", parse_duration_ms, None, "the same, as a duration"
    )
    creation_delay_ms: int = option(
        "tag.creation-delay", parse_duration_ms, 0, "wait after a period before its tag is created"
    )
    period_formatter: TagFormatter = option(
        "tag.period-formatter", TagFormatter, TagFormatter.WITH_DASHES, "format of the period in a tag's name"
    )
    num_retained_max: int | None = option(
        "tag.num-retained-max", at_least(1, parse_int), None, "maximum number of automatic tags; the oldest are deleted"
    )
    default_time_retained_ms: int | None = option(
        "tag.default-time-retained",
        parse_duration_ms,
        None,
        "age at which a tag without its own retention time is deleted",
    )
    time_expire_enabled: bool = option("tag.time-expire-enabled", parse_bool, True, "delete tags by age")
    automatic_completion: bool = option("tag.automatic-completion", parse_bool, False, "create tags for missed periods")
    batch_customized_name: str | None = option(
        "tag.batch.customized-name", parse_text, None, "name of the tag that a batch creates"
    )
    create_success_file: bool = option(
        "tag.create-success-file", parse_bool, False, "write a success file for each new tag"
    )
    watermark_zone: str = option("sink.watermark-time-zone", parse_text, "UTC", "time zone of tags by watermark")
    process_zone: str | None = option("sink.process-time-zone", parse_text, None, "time zone of tags by clock")


_ACTION: Final = choice(MarkDoneAction)


def _decode_actions(text: str) -> tuple[MarkDoneAction, ...]:
    try:
        return tuple(dict.fromkeys(_ACTION.decode(part) for part in text.split(",")))
    except ValueError as error:
        raise ValueError(f"{error}, or several of them with commas between") from None


_parse_actions: Final = ValueKind(
    "names", _decode_actions, lambda actions: ",".join(action.value for action in actions)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkDoneOptions(PartitionTimeOptions):
    """When partitions are marked done: after an idle time, or at the end of a batch; by default never.

    Attributes:
        time_interval_ms: length of a partition's period, which begins at the time that its values state.
    """

    idle_time_ms: int | None = option(
        "partition.idle-time-to-done",
        parse_duration_ms,
        None,
        "time without rows, after the partition's end, until the partition is done",
    )
    time_interval_ms: int | None = option(
        "partition.time-interval", parse_duration_ms, None, "period of time that a partition covers"
    )
    mode: MarkDoneMode = option(
        "partition.mark-done-action.mode", MarkDoneMode, MarkDoneMode.PROCESS_TIME, "clock of the idle time"
    )
    at_end_of_input: bool = option(
        "partition.end-input-to-done", parse_bool, False, "a batch marks the partitions that it wrote to"
    )
    actions: tuple[MarkDoneAction, ...] = option(
        "partition.mark-done-action",
        _parse_actions,
        (MarkDoneAction.SUCCESS_FILE,),
        "how a partition is marked: 'success-file' here",
    )
    recover: bool = option(
        "partition.mark-done.recover-from-state",
        parse_bool,
        True,
        "at the start of a job, also mark partitions that earlier jobs left unmarked",
    )

    @property
    def is_by_time(self) -> bool:
        """Whether partitions become done by time."""
        return self.idle_time_ms is not None and self.time_interval_ms is not None
