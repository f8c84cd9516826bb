"""Options for marking partitions as done: when, and how.

Source:
    Paimon ``api:CoreOptions.java``, ``flink:FlinkConnectorOptions.java``; docs/spec/commit.md section 7.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from penstock.options.choices import MarkDoneAction, MarkDoneMode
from penstock.options.group import option
from penstock.options.partition_time import PartitionTimeOptions
from penstock.options.values import ValueKind, choice, parse_bool, parse_duration_ms

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
