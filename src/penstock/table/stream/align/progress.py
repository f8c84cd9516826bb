"""Decides which source of a group may continue: no source may be ahead of the slowest one by more than the drift.

A source plans the next snapshot if its watermark is at most the minimum of the other live sources plus the drift. The
slowest source always continues; otherwise a snapshot that spans more than the drift would block the group forever. So
the group stays within the drift, or within the time span of one snapshot if that is longer. A source may have outdated
watermarks of the others: since watermarks only increase, it never goes too far.

Source:
    Flink ``flink:FlinkConnectorOptions.java``; docs/spec/streaming.md section 4. Groups that span queries, and holding
    back snapshots instead of records, are specific to Penstock.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Self

from penstock.errors import InvalidOptionError
from penstock.options import WatermarkOptions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.table.process import Process
    from penstock.table.ref import TableRef
    from penstock.table.stream.offset import BucketWatermarks

IDLE_MS: Final = 60_000
"""A source without rows for this long is idle, if ``scan.watermark.idle-timeout`` is not set."""

_GROUP_KEY: Final = "scan.watermark.alignment.group"
_DRIFT_KEY: Final = "scan.watermark.alignment.max-drift"
# Two heartbeats in a row may fail or be late before a source counts as dead; by default there is one every 3.3 s.
_DEAD_INTERVALS: Final = 10
_NAME_CHARS: Final = 100


class MemberState(StrEnum):
    """Whether the other members of its group wait for a source; the value is the text on disk."""

    LIVE = "live"
    IDLE = "idle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A running source in its group.

    Attributes:
        id: random, new at each start.
        table: for messages.
        process: the process in which it runs.
        state: its last reported state.
        watermark: ms of event time after the rows that it has planned, or before its first plan, of its next rows; None
            while it is unknown.
        moves: number of micro-batches that it has planned.
        beat: grows with each heartbeat.
        dead_ms: it counts as dead after this long without a heartbeat.
    """

    id: str
    table: str
    process: Process
    state: MemberState = MemberState.LIVE
    watermark: int | None = None
    moves: int = 0
    beat: int = 0
    dead_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """How far a source may go, given its knowledge of the group.

    Attributes:
        slowest: the slowest of the other live members; a member without a known watermark is slower than all others.
            None where there are no others.
        max_drift_ms: how far ahead of the slowest the source may be.
    """

    slowest: Member | None
    max_drift_ms: int

    def allows(self, own: int | None, following: int | None) -> bool:
        """Whether the source may plan a snapshot.

        Args:
            own: watermark after the rows planned before; None where there is none.
            following: watermark after the snapshot; None where it has none, which is always allowed.
        """
        if self.slowest is None or following is None:
            return True
        least = self.slowest.watermark
        if least is None:
            return False
        return (following if own is None else own) <= least or following <= least + self.max_drift_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentRule:
    """The options of a source's group.

    Attributes:
        group: name of the group, also of its directory.
        max_drift_ms: how far a source may be ahead of the slowest one.
        update_interval_ms: between reads of the group's files.
        idle_ms: a source without rows for this long holds back no other source.
        dead_ms: a source without a heartbeat for this long holds back no other source.
        path: directory used in place of the table's warehouse; None for the warehouse.
    """

    group: str
    max_drift_ms: int
    update_interval_ms: int
    idle_ms: int
    dead_ms: int
    path: str | None

    @classmethod
    def of(cls, ref: TableRef) -> Self | None:
        """Read the rule from the options of a stream; None where they name no group."""
        options = ref.parsed(WatermarkOptions)
        if options.alignment_group is None and options.alignment_max_drift_ms is None:
            return None
        if options.alignment_group is None or options.alignment_max_drift_ms is None:
            given, missing = (
                (_GROUP_KEY, _DRIFT_KEY) if options.alignment_group is not None else (_DRIFT_KEY, _GROUP_KEY)
            )
            raise InvalidOptionError(
                f"table {ref.name}: option '{given}' is set and '{missing}' is not: the group names the sources that "
                "wait for each other, the drift is the distance allowed; set both or neither"
            )
        _check_name(options.alignment_group, ref.name)
        idle_ms = IDLE_MS if options.source_idle_timeout_ms is None else options.source_idle_timeout_ms
        return cls(
            group=options.alignment_group,
            max_drift_ms=options.alignment_max_drift_ms,
            update_interval_ms=options.alignment_update_interval_ms,
            idle_ms=idle_ms,
            # A dead source has no rows, so it must not hold back others longer than an idle one.
            dead_ms=max(1, min(_DEAD_INTERVALS * options.alignment_update_interval_ms, idle_ms)),
            path=options.alignment_path,
        )


def allowance_of(others: Iterable[Member], rule: AlignmentRule) -> Allowance:
    """Return how far a source may go.

    Args:
        others: the other members of its group that are not dead.
    """
    live = [member for member in others if member.state is MemberState.LIVE]
    slowest = min(live, key=lambda each: (each.watermark is not None, each.watermark or 0, each.id), default=None)
    return Allowance(slowest=slowest, max_drift_ms=rule.max_drift_ms)


def _check_name(group: str, table: str) -> None:
    is_plain = all(letter.isalnum() or letter in "._-" for letter in group)
    if not group or not group[0].isalnum() or not is_plain or len(group) > _NAME_CHARS:
        raise InvalidOptionError(
            f"table {table}: option '{_GROUP_KEY}' = '{group}': expected a name of letters, digits, '.', '_' and '-' "
            f"that begins with a letter or digit and has {_NAME_CHARS} characters at most, such as 'orders'"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WatermarkLimit:
    """How far the group allows one micro-batch to go.

    Attributes:
        allowance: how far it may go.
        own: the stream's watermark that the group knows, ms of event time; None for none.
    """

    allowance: Allowance
    own: int | None

    def allows(self, watermark: int | None, following: int | None) -> bool:
        """Whether the next files may be planned.

        Args:
            watermark: after the rows planned before.
            following: watermark after the next files.
        """
        return self.allowance.allows(latest_of(watermark, self.own), following)


def least_of(watermarks: BucketWatermarks | None) -> int | None:
    """Return the minimum of the buckets' watermarks; None where no bucket has one."""
    return min((millis for _, millis in watermarks or ()), default=None)


def latest_of(*watermarks: int | None) -> int | None:
    """Return the latest known watermark; None where none is known."""
    return max((each for each in watermarks if each is not None), default=None)
