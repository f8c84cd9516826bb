"""Tags that commits create automatically: one per period, of the first snapshot after it.

Which snapshot gets a tag depends only on the existing snapshots and tags, not on the process or the time: all
committing jobs create the same tags, and a late one finds them already created.

Source:
    Paimon ``core:tag/TagAutoCreation.java``, ``TagTimeExtractor.java``.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from penstock.clocks import local_now
from penstock.errors import NotFoundError
from penstock.options import TagCreation
from penstock.table.expire.tags import delete_tag
from penstock.table.read.travel import watermark_of
from penstock.table.tags import TagReader, new_tag, put_tag, tag_periods
from penstock.table.times import parse_zone, wall_clock

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from penstock.format.snapshot import Snapshot
    from penstock.options import TagOptions
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore


class TagMaker:
    """Creates the tags of one table while a job commits to it; caches what it read, so that most commits cost nothing.

    Args:
        options: of the table, with ``process-time`` or ``watermark``.
        now: local wall clock as if it were UTC.
    """

    def __init__(
        self,
        ref: TableRef,
        store: MetadataStore,
        options: TagOptions,
        *,
        now: Callable[[], datetime] = local_now,
    ) -> None:
        self._ref = ref
        self._store = store
        self._options = options
        self._now = now
        self._periods = tag_periods(options, ref.name)
        self._delay = timedelta(milliseconds=options.creation_delay_ms)
        self._by_watermark = options.automatic_creation is TagCreation.WATERMARK
        key, zone = ("sink.watermark-time-zone", options.watermark_zone)
        if not self._by_watermark:
            key, zone = ("sink.process-time-zone", options.process_zone or "")
        self._zone = parse_zone(zone or None, key, ref.name)
        self._reader = TagReader(ref.file_io, ref.location)
        # The beginning of the period of the next tag; None if there is no tag yet.
        self._next_period: datetime | None = None
        self._next_id: int | None = None
        self._seen: Snapshot | None = None

    def run(self, latest: Snapshot) -> tuple[str, ...]:
        """Create the tags that are due with the snapshots up to a given one; returns their names in order.

        Reads earlier snapshots only if the given one is due: commit times and watermarks do not decrease.
        """
        is_rolled_back = self._seen is not None and latest.id <= self._seen.id and latest != self._seen
        if self._next_id is None or is_rolled_back:
            self._next_period, self._next_id = self._find_next()
        self._seen = latest
        made: list[str] = []
        snapshot_id = self._next_id
        while snapshot_id <= latest.id and self._due_time(latest) is not None:
            snapshot = latest if snapshot_id == latest.id else self._store.find_snapshot(snapshot_id)
            if snapshot is None:  # expired
                snapshot_id = max(self._store.earliest_snapshot_id() or latest.id, snapshot_id + 1)
                continue
            time = self._due_time(snapshot)
            if time is not None:
                made += self._make(snapshot, time)
            snapshot_id += 1
        # A snapshot of another job without a time may come before it.
        self._next_id = snapshot_id if self._time_of(latest) is None else max(snapshot_id, latest.id + 1)
        return tuple(made)

    def _time_of(self, snapshot: Snapshot) -> datetime | None:
        millis = watermark_of(snapshot) if self._by_watermark else snapshot.time_millis
        return None if millis is None else wall_clock(millis, self._zone)

    def _due_time(self, snapshot: Snapshot) -> datetime | None:
        """Return the time of a snapshot if it is due for a tag, else None."""
        time = self._time_of(snapshot)
        if time is None or self._next_period is None:
            return time
        return time if time - self._delay >= self._next_period + self._periods.length else None

    def _make(self, snapshot: Snapshot, time: datetime) -> tuple[str, ...]:
        period = self._periods.last_ended(time)
        if self._options.automatic_completion and self._next_period is not None:
            period = self._next_period
        name = self._periods.name_of(period)
        tag = new_tag(snapshot, self._options.default_time_retained_ms, now=self._now)
        is_made = put_tag(self._store, name, tag, self._options)
        self._next_period = period + self._periods.length
        self._drop_oldest()
        return (name,) if is_made else ()

    def _drop_oldest(self) -> None:
        if self._options.num_retained_max is None:
            return
        names: dict[int, list[str]] = {}
        for name, tag in self._reader.load().items():
            if self._periods.beginning_of(name) is not None:
                names.setdefault(tag.snapshot.id, []).append(name)
        for snapshot_id in sorted(names)[: max(0, len(names) - self._options.num_retained_max)]:
            for name in names[snapshot_id]:
                with suppress(NotFoundError):  # another job was faster
                    delete_tag(self._ref, self._store, name)

    def _find_next(self) -> tuple[datetime | None, int]:
        """Return the next period to tag, and the first snapshot that may get the tag."""
        last = self._last_tag()
        if last is None:
            return None, self._store.earliest_snapshot_id() or 1
        beginning, snapshot_id = last
        return beginning + self._periods.length, snapshot_id + 1

    def _last_tag(self) -> tuple[datetime, int] | None:
        """Return the period and the snapshot id of the tag with the newest snapshot; None without any.

        Only two are read: if the last one by name has a newer snapshot than the one before it, they were created in
        order.
        """
        named = [
            (beginning, name) for name in self._store.list_tags() if (beginning := self._periods.beginning_of(name))
        ]
        newest = sorted(named, reverse=True)
        found = [(beginning, self._store.load_tag(name).snapshot.id) for beginning, name in newest[:2]]
        if len(found) == 2 and found[0][1] <= found[1][1]:
            found = [(beginning, self._store.load_tag(name).snapshot.id) for beginning, name in newest]
        return max(found, key=lambda each: each[1], default=None)
