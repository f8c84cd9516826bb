"""Waiting until a table is complete up to a point in event time.

A snapshot's watermark says that the rows of all earlier event times are in it or before it, but for those that come
late (docs/spec/streaming.md section 6). So whoever needs a day whole waits for the watermark of its end.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from penstock.errors import InvalidOptionError, TimedOutError
from penstock.table.read.travel import utc_text, watermark_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.format.snapshot import Snapshot
    from penstock.table.store import MetadataStore


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitPolicy:
    """How long to wait, and how often to look.

    Attributes:
        timeout: seconds; None for as long as it takes, 0 to look once.
        interval: seconds between looks; each asks the storage three things.
        clock: seconds that only grow.
    """

    timeout: float | None = None
    interval: float = 1.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def wait_for_watermark(
    store: MetadataStore,
    watermark: int,
    patience: WaitPolicy,
    *,
    on_look: Callable[[Snapshot | None], None] = lambda _latest: None,
) -> Snapshot:
    """Wait until the latest snapshot's watermark has reached a point in event time, and return that snapshot.

    Args:
        watermark: ms of event time.
        on_look: told of the latest snapshot whenever that has not reached it.

    Raises:
        InvalidOptionError: an interval that is not positive, or a timeout below zero.
        TimedOutError: it did not in time; the message says how far the table is.
        NotFoundError: there is no table any more.
    """
    if patience.interval <= 0 or (patience.timeout is not None and patience.timeout < 0):
        raise InvalidOptionError(
            f"table {store.name}: cannot wait with timeout {patience.timeout} and interval {patience.interval}: give "
            "seconds, of the interval more than 0"
        )
    started = patience.clock()
    while True:
        latest = store.load_latest_snapshot()
        if latest is None:
            store.latest_schema_id()  # where the table was dropped, nothing will ever come
        else:
            reached = watermark_of(latest)
            if reached is not None and reached >= watermark:
                return latest
        on_look(latest)
        waited = patience.clock() - started
        left = patience.interval if patience.timeout is None else patience.timeout - waited
        if left <= 0:
            raise TimedOutError(_text(store.name, watermark, latest, waited))
        patience.sleep(min(patience.interval, left))


def shortfall(watermark: int, latest: Snapshot | None) -> str:
    """Say how far a table is from a watermark that it has not reached.

    Args:
        watermark: ms of event time.
        latest: snapshot; None where nothing was ever committed.
    """
    if latest is None:
        return "nothing was committed to it yet"
    reached = watermark_of(latest)
    if reached is None:
        return f"its latest snapshot, {latest.id}, has no watermark, as no writer has ever given it one"
    behind = _duration(watermark - reached)
    return f"its latest snapshot, {latest.id}, has {utc_text(reached)} ({reached}), {behind} behind"


def _duration(millis: int) -> str:
    try:
        return str(timedelta(milliseconds=millis))
    except OverflowError:
        return f"{millis} ms"


def _text(table: str, watermark: int, latest: Snapshot | None, waited: float) -> str:
    has_none = latest is not None and watermark_of(latest) is None
    cure = (
        "a stream gives one where its source declares WATERMARK FOR a column"
        if has_none
        else "look whether its writer runs, or wait longer"
    )
    return (
        f"table {table}: waited {waited:.1f} s for watermark {utc_text(watermark)} ({watermark}); "
        f"{shortfall(watermark, latest)}; {cure}"
    )
