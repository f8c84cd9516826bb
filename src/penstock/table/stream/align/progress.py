"""Which source of a group may go on: none runs further ahead of the slowest than it may drift.

A source plans the next snapshot when that one's watermark is not beyond the least of the other live sources' and the
drift. The slowest one always goes on, else a snapshot that spans more than the drift would stop the group for ever; so
the group keeps together within the drift, or within one snapshot's span where that is more. What is known of the others
may be old: watermarks only grow, so it lets nobody go too far.

Source:
    Flink ``flink:FlinkConnectorOptions.java``; docs/spec/streaming.md section 4. That groups span queries, and that
    snapshots rather than records are held back, are Penstock's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Self

from penstock.errors import InvalidOptionError
from penstock.options import WatermarkOptions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.table.lease.process import Process
    from penstock.table.ref import TableRef

IDLE_MS: Final = 60_000
"""After how long without rows a source is idle where ``scan.watermark.idle-timeout`` is not set."""

_GROUP_KEY: Final = "scan.watermark.alignment.group"
_DRIFT_KEY: Final = "scan.watermark.alignment.max-drift"
# A heartbeat may come late, or fail, twice before its source counts as dead; with the default, each comes after 3.3 s.
_DEAD_INTERVALS: Final = 10
_NAME_CHARS: Final = 100


class MemberState(StrEnum):
    """Whether the others of its group wait for a source; the value is the text on disk."""

    LIVE = "live"
    IDLE = "idle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One start of a source, as its group knows it.

    Attributes:
        id: drawn at each start.
        table: for messages.
        process: that answers for it.
        state: as it last said.
        watermark: ms of event time behind what it has planned, before its first rows that of those; None while it
            cannot tell.
        moves: micro-batches that it has planned.
        beat: grows with each sign of life.
        dead_ms: it is dead when it was silent for longer.
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
    """How far a source may go, by what it knows of its group.

    Attributes:
        slowest: of the other live members; one that cannot tell yet stands before all. None where there are none.
        max_drift_ms: how far ahead of it is allowed.
    """

    slowest: Member | None
    max_drift_ms: int

    def allows(self, own: int | None, following: int | None) -> bool:
        """Whether to plan a snapshot.

        Args:
            own: watermark behind what was planned before; None where that has none.
            following: watermark behind the snapshot; None where it has none, which is beyond nothing.
        """
        if self.slowest is None or following is None:
            return True
        least = self.slowest.watermark
        if least is None:
            return False
        return (following if own is None else own) <= least or following <= least + self.max_drift_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentRule:
    """What the options say of a source's group.

    Attributes:
        group: its name, which becomes one of a directory.
        update_interval_ms: between looks at the group.
        idle_ms: without rows for so long, a source holds nobody back.
        dead_ms: after so long without a heartbeat the others go on.
        path: directory that stands for the table's warehouse; None for that one.
    """

    group: str
    max_drift_ms: int
    update_interval_ms: int
    idle_ms: int
    dead_ms: int
    path: str | None

    @classmethod
    def of(cls, ref: TableRef) -> Self | None:
        """Read the options of a stream; None where they name no group.

        Raises:
            InvalidOptionError: a group without a drift, a drift without a group, or what cannot be a group's name.
        """
        options = ref.parsed(WatermarkOptions)
        if options.alignment_group is None and options.alignment_max_drift_ms is None:
            return None
        if options.alignment_group is None or options.alignment_max_drift_ms is None:
            given, missing = (
                (_GROUP_KEY, _DRIFT_KEY) if options.alignment_group is not None else (_DRIFT_KEY, _GROUP_KEY)
            )
            raise InvalidOptionError(
                f"table {ref.name}: option '{given}' is set and '{missing}' is not: the one says which sources wait "
                "for each other, the other how far they may be apart; set both or neither"
            )
        _check_name(options.alignment_group, ref.name)
        idle_ms = IDLE_MS if options.source_idle_timeout_ms is None else options.source_idle_timeout_ms
        return cls(
            group=options.alignment_group,
            max_drift_ms=options.alignment_max_drift_ms,
            update_interval_ms=options.alignment_update_interval_ms,
            idle_ms=idle_ms,
            # Who is dead has no rows either.
            dead_ms=max(1, min(_DEAD_INTERVALS * options.alignment_update_interval_ms, idle_ms)),
            path=options.alignment_path,
        )


def allowance_of(others: Iterable[Member], rule: AlignmentRule) -> Allowance:
    """Return how far a source may go that the others do not include.

    Args:
        others: those that are not dead.
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
