"""How far a micro-batch may go in event time, for a stream that keeps pace with others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.table.stream.align.progress import Allowance
    from penstock.table.stream.offset import BucketWatermarks


@dataclass(slots=True, kw_only=True)
class WatermarkLimit:
    """Keeps one micro-batch within what the group allows, and learns how far it comes.

    Attributes:
        allowance: how far it may go.
        own: watermark that the group knows of this stream, ms of event time; None for none.
        stands: watermark behind what is planned; where that has none, behind what comes first. None where nothing
            tells.
        is_held: it ended because the others are too far behind; there is more.
        has_rows: something is planned.
    """

    allowance: Allowance
    own: int | None
    stands: int | None = None
    is_held: bool = False
    has_rows: bool = False

    def allows(self, stands: int | None, following: int | None) -> bool:
        """Whether to go on with what has that watermark; notes it when not.

        Args:
            stands: watermark behind what was planned before.
            following: behind what would come next.
        """
        self.is_held = not self.allowance.allows(latest_of(stands, self.own), following)
        if stands is None:
            self.stands = following
        return not self.is_held


def least_of(watermarks: BucketWatermarks | None) -> int | None:
    """Return the watermark of buckets together; None where none has one."""
    return min((millis for _, millis in watermarks or ()), default=None)


def latest_of(*watermarks: int | None) -> int | None:
    """Return the latest of those that are known."""
    return max((each for each in watermarks if each is not None), default=None)
