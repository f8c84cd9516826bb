"""Options for marking partitions as done: when, and how.

Source:
    Paimon ``api:CoreOptions.java``, ``flink:FlinkConnectorOptions.java``; docs/spec/commit.md section 7.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from penstock.options.choices import MarkDoneAction, MarkDoneMode
from penstock.options.group import Key
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

    idle_time_ms: Annotated[
        int | None,
        Key(
            "partition.idle-time-to-done",
            parse_duration_ms,
            "time without rows, after the partition's end, until the partition is done",
            honoured=True,
        ),
    ] = None
    time_interval_ms: Annotated[
        int | None,
        Key("partition.time-interval", parse_duration_ms, "period of time that a partition covers", honoured=True),
    ] = None
    mode: Annotated[
        MarkDoneMode,
        Key("partition.mark-done-action.mode", MarkDoneMode, "clock of the idle time", honoured=True),
    ] = MarkDoneMode.PROCESS_TIME
    at_end_of_input: Annotated[
        bool,
        Key("partition.end-input-to-done", parse_bool, "a batch marks the partitions that it wrote to", honoured=True),
    ] = False
    actions: Annotated[
        tuple[MarkDoneAction, ...],
        Key(
            "partition.mark-done-action",
            _parse_actions,
            "how a partition is marked: 'success-file' here",
            honoured=True,
        ),
    ] = (MarkDoneAction.SUCCESS_FILE,)
    recover: Annotated[
        bool,
        Key(
            "partition.mark-done.recover-from-state",
            parse_bool,
            "at the start of a job, also mark partitions that earlier jobs left unmarked",
            honoured=True,
        ),
    ] = True

    @property
    def is_by_time(self) -> bool:
        """Whether partitions become done by time."""
        return self.idle_time_ms is not None and self.time_interval_ms is not None
