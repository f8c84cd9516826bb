"""Waiting until a table is complete up to a point in event time.

A snapshot's watermark means that this snapshot or an earlier one contains all rows with earlier event times, except
late ones (docs/spec/streaming.md section 6). So a reader of a complete day waits for the watermark of the day's end.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from penstock.clocks import utc_text
from penstock.errors import InvalidOptionError, TimedOutError
from penstock.table.read.travel import watermark_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.format.snapshot import Snapshot
    from penstock.table.store import MetadataStore


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitPolicy:
    """How long to wait, and how often to check.

    Attributes:
        timeout: seconds; None for no limit, 0 to check once.
        interval: seconds between checks; each makes three requests to the storage.
        clock: returns monotonic seconds.
        sleep: called with seconds.
    """

    timeout: float | None = None
    interval: float = 1.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def wait_for_watermark(
    store: MetadataStore,
    watermark: int,
    policy: WaitPolicy,
    *,
    on_poll: Callable[[Snapshot | None], None] = lambda _latest: None,
) -> Snapshot:
    """Wait until the latest snapshot's watermark has reached a point in event time, and return that snapshot.

    Args:
        watermark: ms of event time.
        on_poll: called with the latest snapshot after each check that finds its watermark too low.
    """
    if policy.interval <= 0 or (policy.timeout is not None and policy.timeout < 0):
        raise InvalidOptionError(
            f"table {store.name}: cannot wait with timeout {policy.timeout} and interval {policy.interval}: give "
            "seconds, of the interval more than 0"
        )
    started = policy.clock()
    while True:
        latest = store.load_latest_snapshot()
        if latest is None:
            store.latest_schema_id()  # raises if the table was dropped; otherwise the wait would never end
        else:
            reached = watermark_of(latest)
            if reached is not None and reached >= watermark:
                return latest
        on_poll(latest)
        waited = policy.clock() - started
        left = policy.interval if policy.timeout is None else policy.timeout - waited
        if left <= 0:
            raise TimedOutError(_text(store.name, watermark, latest, waited))
        policy.sleep(min(policy.interval, left))


def shortfall(watermark: int, latest: Snapshot | None) -> str:
    """Return a message about the current watermark of a table that has not reached the requested one.

    Args:
        watermark: ms of event time.
        latest: the latest snapshot; None if nothing was ever committed.
    """
    if latest is None:
        return "nothing was committed to it yet"
    reached = watermark_of(latest)
    if reached is None:
        return f"its latest snapshot, {latest.id}, has no watermark, as no writer has ever given it one"
    lag = _duration(watermark - reached)
    return f"its latest snapshot, {latest.id}, has {utc_text(reached)} ({reached}), {lag} behind"


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
        else "check that its writer runs, or wait longer"
    )
    return (
        f"table {table}: waited {waited:.1f} s for watermark {utc_text(watermark)} ({watermark}); "
        f"{shortfall(watermark, latest)}; {cure}"
    )
