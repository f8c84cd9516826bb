"""Health checks of a table: whether rows arrive, how complete it is, whether compaction or readers lag.

The limit is specific to the table: ten times its usual pause between commits with rows, and at least a minute.
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
_MIN_THRESHOLD_MS: Final = 60_000
# Fewer pauses have no typical length; more than a hundred may reflect an earlier load.
_MIN_COMMITS: Final = 4
_MAX_COMMITS: Final = 101


class HealthStatus(StrEnum):
    """The result of a health check."""

    GOOD = "good"
    LOOK = "look"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthReport:
    """The results of the health checks; UNKNOWN if there is not enough data.

    Attributes:
        usual_pause_ms: median time between commits that added rows; None if there are too few.
        staleness_threshold_ms: a longer time without progress needs attention; None likewise.
        flow: rows were added within the staleness threshold.
        watermark: it advances, or no rows were added that could advance it.
        files: there are no more small files than a compaction that keeps up leaves.
        readers: none has lost snapshots, or has unread rows older than the staleness threshold.
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
    """Evaluate the health checks of a table."""
    pause = _usual_pause_ms(history)
    threshold = None if pause is None else max(_PAUSES * pause, _MIN_THRESHOLD_MS)
    return HealthReport(
        usual_pause_ms=pause,
        staleness_threshold_ms=threshold,
        flow=_flow(history, threshold),
        watermark=_watermark(history, threshold),
        files=_files(history),
        readers=_readers(history, threshold),
        order=HealthStatus.UNKNOWN
        if history.order is None or not history.order.files
        else _of(history.order.overlaps == 0),
    )


def _usual_pause_ms(history: TableHistory) -> int | None:
    times = [commit.snapshot.time_millis for commit in history.commits if commit.change.brings_rows][-_MAX_COMMITS:]
    if len(times) < _MIN_COMMITS:
        return None
    # The clocks of several committers may differ, so times may decrease.
    return int(median(max(0, after - before) for before, after in pairwise(times)))


def _flow(history: TableHistory, threshold: int | None) -> HealthStatus:
    last = history.last_rows
    if last is None or threshold is None:
        return HealthStatus.UNKNOWN
    return _of(history.seen_millis - last.snapshot.time_millis <= threshold)


def _watermark(history: TableHistory, threshold: int | None) -> HealthStatus:
    latest = history.latest
    if latest is None or latest.watermark is None:
        return HealthStatus.UNKNOWN
    last = history.standstills[-1] if history.standstills else None
    if last is None or not last.is_open:
        return HealthStatus.GOOD
    return HealthStatus.UNKNOWN if threshold is None else _of(last.duration_ms <= threshold)


def _files(history: TableHistory) -> HealthStatus:
    if history.debt is None or history.latest is None:
        return HealthStatus.UNKNOWN
    return _of(history.debt.small_files <= history.debt.usual_small_files)


def _readers(history: TableHistory, threshold: int | None) -> HealthStatus:
    if not history.readers:
        return HealthStatus.UNKNOWN
    if any(reader.expired_snapshots for reader in history.readers):
        return HealthStatus.LOOK
    unread = [reader.unread_since_millis for reader in history.readers if reader.unread_since_millis is not None]
    if not unread:
        return HealthStatus.GOOD
    return HealthStatus.UNKNOWN if threshold is None else _of(history.seen_millis - min(unread) <= threshold)


def _of(is_good: bool) -> HealthStatus:  # noqa: FBT001 - it is what is judged
    return HealthStatus.GOOD if is_good else HealthStatus.LOOK
