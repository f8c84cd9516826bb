"""Follows a table within the limits of an alignment group."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from penstock.table.stream.align.progress import WatermarkLimit

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.table.stream.align.membership import Membership
    from penstock.table.stream.align.progress import Member
    from penstock.table.stream.limits import ReadLimits
    from penstock.table.stream.offset import StreamOffset
    from penstock.table.stream.scanner import StreamScanner

# Spark does not call the other sources of the same query during the wait.
_MAX_WAIT_SECONDS: Final = 10


class AlignedScanner:
    """A scanner that advances only as far as its group allows. Not for several threads.

    Args:
        membership: in the group; None for a stream that waits for no others.
        clock: seconds that only grow.
        sleep: seconds.

    Attributes:
        held_by: the member that held back the last call although there were more rows; None when there was none.
    """

    def __init__(
        self,
        scanner: StreamScanner,
        membership: Membership | None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.held_by: Member | None = None
        self._follower = scanner
        self._membership = membership
        self._clock = clock
        self._sleep = sleep
        self._waited_for: Member | None = None

    @property
    def update_interval_ms(self) -> int:
        """How long to wait when other members hold this stream back."""
        return 0 if self._membership is None else self._membership.rule.update_interval_ms

    def join(self) -> None:
        """Join the group before the first call, so that the others already wait. Raises ``StorageError``."""
        if self._membership is not None:
            self._membership.join()

    def advance(self, offset: StreamOffset, limits: ReadLimits, *, until: int | None = None) -> StreamOffset:
        """Advance by one micro-batch, as ``StreamScanner.advance``.

        A stream that has reached its end, or ``until``, leaves the group.
        """
        self.held_by = None
        membership = self._membership
        if membership is None:
            return self._follower.advance(offset, limits, until=until)
        if offset.ended:
            membership.leave()
            return offset
        # A stream that ends when there are no more rows needs the current state of the group, not a cached one.
        limit = WatermarkLimit(allowance=membership.look(is_fresh=until is not None), own=membership.watermark)
        end = self._follower.plan_batch(offset, limits, until=until, limit_by_watermark=limit)
        if end.offset.ended or (until is not None and not end.has_rows and not end.is_held):
            membership.leave()
            return end.offset
        membership.report(end.watermark, has_rows=end.has_rows, is_held=end.is_held)
        if end.is_held:
            self.held_by = limit.allowance.slowest
        return end.offset

    def advance_or_wait(self, offset: StreamOffset, limits: ReadLimits, *, until: int | None) -> StreamOffset:
        """Advance as ``advance``, but wait for a while if another member holds this stream back.

        It does not wait for a member that has made progress since the last call: that may be a source of the same
        query, which Spark calls after this one.
        """
        end = self.advance(offset, limits, until=until)
        first = slowest = self.held_by
        if first is not None and self._waited_for is not None and _stands_still(self._waited_for, first):
            give_up = self._clock() + _MAX_WAIT_SECONDS
            while end == offset and slowest is not None and slowest.id == first.id and self._clock() < give_up:
                self._sleep(self.update_interval_ms / 1000)
                end = self.advance(offset, limits, until=until)
                slowest = self.held_by
        self._waited_for = slowest
        return end

    def close(self) -> None:
        """Leave the group."""
        if self._membership is not None:
            self._membership.leave()


def _stands_still(before: Member, now: Member) -> bool:
    return (before.id, before.watermark, before.moves) == (now.id, now.watermark, now.moves)
