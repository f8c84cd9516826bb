"""Limits how far a micro-batch of an aligned stream may go in event time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.table.stream.align.progress import Allowance
    from penstock.table.stream.offset import BucketWatermarks


@dataclass(slots=True, kw_only=True)
class WatermarkLimit:
    """Keeps one micro-batch within what the group allows, and records how far it goes.

    Attributes:
        allowance: how far it may go.
        own: the stream's watermark that the group knows, ms of event time; None for none.
        stands: watermark after the planned rows; where these have none, after the next rows. None where it is unknown.
        is_held: the micro-batch ended because the others lag too far; there are more rows.
        has_rows: rows are planned.
    """

    allowance: Allowance
    own: int | None
    stands: int | None = None
    is_held: bool = False
    has_rows: bool = False

    def allows(self, stands: int | None, following: int | None) -> bool:
        """Whether the next files may be planned; sets ``is_held`` accordingly.

        Args:
            stands: watermark after the rows planned before.
            following: watermark after the next files.
        """
        self.is_held = not self.allowance.allows(latest_of(stands, self.own), following)
        if stands is None:
            self.stands = following
        return not self.is_held


def least_of(watermarks: BucketWatermarks | None) -> int | None:
    """Return the minimum of the buckets' watermarks; None where no bucket has one."""
    return min((millis for _, millis in watermarks or ()), default=None)


def latest_of(*watermarks: int | None) -> int | None:
    """Return the latest known watermark; None where none is known."""
    return max((each for each in watermarks if each is not None), default=None)
