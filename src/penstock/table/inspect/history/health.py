"""What one look at a table should tell: whether rows come, how complete it is, whether files or readers lag.

Every limit is the table's own: ten times its usual pause between commits with rows, and never less than a minute.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from penstock.table.inspect.history.history import TableHistory

_PAUSES: Final = 10
_LEAST_PATIENCE_MS: Final = 60_000
# Fewer pauses tell nothing usual; more than a hundred are another day's.
_LEAST_COMMITS: Final = 4
_MOST_COMMITS: Final = 101


class HealthStatus(StrEnum):
    """How something is."""

    GOOD = "good"
    LOOK = "look"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthReport:
    """How a table is, thing by thing; UNKNOWN where there is nothing to judge, or no measure.

    Attributes:
        usual_pause_ms: median time between commits that brought rows; None where they are too few.
        staleness_threshold_ms: what may take so long without being worth a look; None likewise.
        flow: rows came within the table's patience.
        watermark: it moves, or nothing came that could move it.
        files: small ones are no more than a compaction that keeps up leaves.
        readers: none has lost snapshots, or has unread rows that are older than the table's patience.
        order: no file of a queue's bucket begins within another.
    """

    usual_pause_ms: int | None
    staleness_threshold_ms: int | None
    flow: HealthStatus
    watermark: HealthStatus
    files: HealthStatus
    readers: HealthStatus
    order: HealthStatus


def evaluate(history: TableHistory) -> HealthReport:
    """Judge a table by what was seen of it."""
    pause = _usual_pause_ms(history)
    patience = None if pause is None else max(_PAUSES * pause, _LEAST_PATIENCE_MS)
    return HealthReport(
        usual_pause_ms=pause,
        staleness_threshold_ms=patience,
        flow=_flow(history, patience),
        watermark=_watermark(history, patience),
        files=_files(history),
        readers=_readers(history, patience),
        order=HealthStatus.UNKNOWN
        if history.order is None or not history.order.files
        else _of(history.order.overlaps == 0),
    )


def _usual_pause_ms(history: TableHistory) -> int | None:
    times = [commit.snapshot.time_millis for commit in history.commits if commit.change.brings_rows][-_MOST_COMMITS:]
    if len(times) < _LEAST_COMMITS:
        return None
    # Clocks of several committers may go back.
    return int(median(max(0, after - before) for before, after in pairwise(times)))


def _flow(history: TableHistory, patience: int | None) -> HealthStatus:
    last = history.last_rows
    if last is None or patience is None:
        return HealthStatus.UNKNOWN
    return _of(history.seen_millis - last.snapshot.time_millis <= patience)


def _watermark(history: TableHistory, patience: int | None) -> HealthStatus:
    latest = history.latest
    if latest is None or latest.watermark is None:
        return HealthStatus.UNKNOWN
    last = history.standstills[-1] if history.standstills else None
    if last is None or not last.is_open:
        return HealthStatus.GOOD
    return HealthStatus.UNKNOWN if patience is None else _of(last.duration_ms <= patience)


def _files(history: TableHistory) -> HealthStatus:
    if history.debt is None or history.latest is None:
        return HealthStatus.UNKNOWN
    return _of(history.debt.small_files <= history.debt.usual_small_files)


def _readers(history: TableHistory, patience: int | None) -> HealthStatus:
    if not history.readers:
        return HealthStatus.UNKNOWN
    if any(reader.expired_snapshots for reader in history.readers):
        return HealthStatus.LOOK
    unread = [reader.unread_since_millis for reader in history.readers if reader.unread_since_millis is not None]
    if not unread:
        return HealthStatus.GOOD
    return HealthStatus.UNKNOWN if patience is None else _of(history.seen_millis - min(unread) <= patience)


def _of(is_good: bool) -> HealthStatus:  # noqa: FBT001 - it is what is judged
    return HealthStatus.GOOD if is_good else HealthStatus.LOOK
