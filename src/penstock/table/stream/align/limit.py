"""Limits how far a micro-batch of an aligned stream may go in event time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.table.stream.align.progress import Allowance
    from penstock.table.stream.offset import BucketWatermarks


@dataclass(frozen=True, slots=True, kw_only=True)
class WatermarkLimit:
    """How far the group allows one micro-batch to go.

    Attributes:
        allowance: how far it may go.
        own: the stream's watermark that the group knows, ms of event time; None for none.
    """

    allowance: Allowance
    own: int | None

    def allows(self, watermark: int | None, following: int | None) -> bool:
        """Whether the next files may be planned.

        Args:
            watermark: after the rows planned before.
            following: watermark after the next files.
        """
        return self.allowance.allows(latest_of(watermark, self.own), following)


def least_of(watermarks: BucketWatermarks | None) -> int | None:
    """Return the minimum of the buckets' watermarks; None where no bucket has one."""
    return min((millis for _, millis in watermarks or ()), default=None)


def latest_of(*watermarks: int | None) -> int | None:
    """Return the latest known watermark; None where none is known."""
    return max((each for each in watermarks if each is not None), default=None)
