"""The snapshot of a tag that is created for a point in time or event time.

Source:
    Paimon ``flink:procedure/CreateTagFromTimestampProcedure.java``, ``CreateTagFromWatermarkProcedure.java``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.clocks import utc_text
from penstock.errors import NotFoundError
from penstock.table.read.travel import find_at_or_after, newest_by_time, resolve_snapshot, watermark_of
from penstock.table.tags.store import tagged_snapshots

if TYPE_CHECKING:
    from penstock.format.snapshot import Snapshot
    from penstock.table.store import MetadataStore


def first_since(store: MetadataStore, millis: int) -> Snapshot:
    """Return the first snapshot that was committed at or after a time; an expired one if it has a tag.

    Args:
        millis: since 1970-01-01 UTC.

    Raises:
        NotFoundError: there is no such snapshot.
    """
    found, latest = None, store.load_latest_snapshot()
    if latest is not None and latest.time_millis >= millis:
        before = newest_by_time(store, latest, millis)
        found = store.load_earliest_snapshot() if before is None else find_at_or_after(store, before.id + 1)
    tagged = next((each for each in tagged_snapshots(store) if each.time_millis >= millis), None)
    if tagged is not None and (found is None or tagged.time_millis < found.time_millis):
        found = tagged
    if found is None:
        last = "nothing was committed yet" if latest is None else f"the latest is of {utc_text(latest.time_millis)}"
        raise NotFoundError(
            f"table {store.name}: no snapshot was committed at {utc_text(millis)} ({millis}) or later; {last}"
        )
    return found


def first_with_watermark(store: MetadataStore, watermark: int) -> Snapshot:
    """Return the first snapshot whose watermark has reached a point in event time; an expired one if it has a tag.

    Args:
        watermark: ms of event time.

    Raises:
        NotFoundError: there is no such snapshot.
    """
    tagged = next((each for each in tagged_snapshots(store) if (watermark_of(each) or -1) >= watermark), None)
    try:
        found = resolve_snapshot(store, watermark=watermark)
    except NotFoundError:
        if tagged is None:
            raise
        return tagged
    if found is None or (tagged is not None and (watermark_of(tagged) or 0) < (watermark_of(found) or 0)):
        found = tagged or found
    if found is None:
        raise NotFoundError(f"table {store.name}: nothing was committed yet")
    return found
