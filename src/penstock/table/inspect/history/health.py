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
    from penstock.table.inspect.history.history import Story

_PAUSES: Final = 10
_LEAST_PATIENCE_MS: Final = 60_000
# Fewer pauses tell nothing usual; more than a hundred are another day's.
_LEAST_COMMITS: Final = 4
_MOST_COMMITS: Final = 101


class Verdict(StrEnum):
    """How something is."""

    GOOD = "good"
    LOOK = "look"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """How a table is, thing by thing; UNKNOWN where there is nothing to judge, or no measure.

    Attributes:
        usual_pause_ms: median time between commits that brought rows; None where they are too few.
        patience_ms: what may take so long without being worth a look; None likewise.
        flow: rows came within the table's patience.
        watermark: it moves, or nothing came that could move it.
        files: small ones are no more than a compaction that keeps up leaves.
        readers: none has lost snapshots, or has unread rows that are older than the table's patience.
        order: no file of a queue's bucket begins within another.
    """

    usual_pause_ms: int | None
    patience_ms: int | None
    flow: Verdict
    watermark: Verdict
    files: Verdict
    readers: Verdict
    order: Verdict


def judge(story: Story) -> Verdicts:
    """Judge a table by what was seen of it."""
    pause = _usual_pause_ms(story)
    patience = None if pause is None else max(_PAUSES * pause, _LEAST_PATIENCE_MS)
    return Verdicts(
        usual_pause_ms=pause,
        patience_ms=patience,
        flow=_flow(story, patience),
        watermark=_watermark(story, patience),
        files=_files(story),
        readers=_readers(story, patience),
        order=Verdict.UNKNOWN if story.order is None or not story.order.files else _of(story.order.overlaps == 0),
    )


def _usual_pause_ms(story: Story) -> int | None:
    times = [commit.snapshot.time_millis for commit in story.commits if commit.change.brings_rows][-_MOST_COMMITS:]
    if len(times) < _LEAST_COMMITS:
        return None
    # Clocks of several committers may go back.
    return int(median(max(0, after - before) for before, after in pairwise(times)))


def _flow(story: Story, patience: int | None) -> Verdict:
    last = story.last_rows
    if last is None or patience is None:
        return Verdict.UNKNOWN
    return _of(story.seen_millis - last.snapshot.time_millis <= patience)


def _watermark(story: Story, patience: int | None) -> Verdict:
    latest = story.latest
    if latest is None or latest.watermark is None:
        return Verdict.UNKNOWN
    last = story.standstills[-1] if story.standstills else None
    if last is None or not last.is_open:
        return Verdict.GOOD
    return Verdict.UNKNOWN if patience is None else _of(last.duration_ms <= patience)


def _files(story: Story) -> Verdict:
    if story.debt is None or story.latest is None:
        return Verdict.UNKNOWN
    return _of(story.debt.small_files <= story.debt.usual_small_files)


def _readers(story: Story, patience: int | None) -> Verdict:
    if not story.readers:
        return Verdict.UNKNOWN
    if any(reader.expired_snapshots for reader in story.readers):
        return Verdict.LOOK
    unread = [reader.unread_since_millis for reader in story.readers if reader.unread_since_millis is not None]
    if not unread:
        return Verdict.GOOD
    return Verdict.UNKNOWN if patience is None else _of(story.seen_millis - min(unread) <= patience)


def _of(is_good: bool) -> Verdict:  # noqa: FBT001 - it is what is judged
    return Verdict.GOOD if is_good else Verdict.LOOK
