"""The bounds at which a stream ends.

Source:
    Paimon ``core:table/source/snapshot/BoundedChecker.java``;
    docs/spec/streaming.md section 2.3. Bounds by snapshot and by time are specific to Penstock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from penstock.table.read.travel import watermark_of

if TYPE_CHECKING:
    from penstock.format.snapshot import Snapshot
    from penstock.options import StreamOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The bounds of a stream; None for no such bound.

    Attributes:
        watermark: last watermark of a snapshot to deliver, ms of event time.
        time_millis: last commit time of a snapshot to deliver, ms since 1970-01-01 UTC.
        last_id: the last snapshot to deliver.
    """

    watermark: int | None
    time_millis: int | None
    last_id: int | None

    @classmethod
    def of(cls, options: StreamOptions, last_id: int | None) -> Self:
        """Return the bounds of the options, and of the last snapshot id that ``scan.bounded`` fixed at the start."""
        ids = [each for each in (options.bounded_snapshot_id, last_id) if each is not None]
        return cls(
            watermark=options.bounded_watermark,
            time_millis=options.bounded_timestamp_millis,
            last_id=min(ids, default=None),
        )

    @staticmethod
    def describe(options: StreamOptions) -> str:
        """Return the bounds in the options as text; empty if there are none."""
        given = {
            "scan.bounded": None if options.bounded is None else str(options.bounded).lower(),
            "scan.bounded.watermark": options.bounded_watermark,
            "penstock.scan.bounded.snapshot-id": options.bounded_snapshot_id,
            "penstock.scan.bounded.timestamp-millis": options.bounded_timestamp_millis,
        }
        return ", ".join(f"'{key}' = '{value}'" for key, value in given.items() if value is not None)

    def is_beyond(self, snapshot: Snapshot) -> bool:
        """Whether the snapshot's watermark or commit time is beyond a bound."""
        watermark = watermark_of(snapshot)
        return (self.watermark is not None and watermark is not None and watermark > self.watermark) or (
            self.time_millis is not None and snapshot.time_millis > self.time_millis
        )

    def is_beyond_id(self, snapshot_id: int) -> bool:
        """Whether a snapshot id is beyond the last one to deliver; the snapshot need not exist."""
        return self.last_id is not None and snapshot_id > self.last_id
