"""Following a table in step with the other sources of a group."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from penstock.table.stream.align.limit import WatermarkLimit

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.table.stream.align.membership import Membership
    from penstock.table.stream.align.progress import Member
    from penstock.table.stream.limits import ReadLimits
    from penstock.table.stream.offset import StreamOffset
    from penstock.table.stream.scanner import StreamScanner

# Other sources of the same query are not asked meanwhile.
_LONGEST_WAIT_SECONDS: Final = 10


class AlignedScanner:
    """A follower that goes no further than its group allows. Not for several threads.

    Args:
        membership: None to wait for nobody.
        clock: seconds that only grow.
        sleep: seconds.

    Attributes:
        held_by: who held the last call back, though there was more; None when nobody did.
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
        """How long to wait where others hold it back."""
        return 0 if self._membership is None else self._membership.rule.update_interval_ms

    def join(self) -> None:
        """Let the group know before the first call, so that nobody runs away until then. Raises ``StorageError``."""
        if self._membership is not None:
            self._membership.join()

    def advance(self, offset: StreamOffset, limits: ReadLimits, *, until: int | None = None) -> StreamOffset:
        """Go one micro-batch further, as ``StreamScanner.advance``.

        Who has come to the end, or to ``until``, leaves the group.

        Raises:
            StorageError: nobody can say how far the others are.
        """
        self.held_by = None
        membership = self._membership
        if membership is None:
            return self._follower.advance(offset, limits, until=until)
        if offset.ended:
            membership.leave()
            return offset
        # Who ends by itself goes on or waits by what the others have just done.
        limit_by_watermark = WatermarkLimit(
            allowance=membership.look(is_fresh=until is not None), own=membership.watermark
        )
        end = self._follower.advance(offset, limits, until=until, limit_by_watermark=limit_by_watermark)
        is_over = end.ended or (
            until is not None and not limit_by_watermark.has_rows and not limit_by_watermark.is_held
        )
        if is_over:
            membership.leave()
            return end
        membership.stand(
            limit_by_watermark.stands, has_rows=limit_by_watermark.has_rows, is_held=limit_by_watermark.is_held
        )
        if limit_by_watermark.is_held:
            self.held_by = limit_by_watermark.allowance.slowest
        return end

    def advance_or_wait(self, offset: StreamOffset, limits: ReadLimits, *, until: int | None) -> StreamOffset:
        """Do the same, but stay here for a while where others hold it back: who calls again at once gains nothing.

        It does not wait for one that has planned something since the last call: that may be a source of the same
        query, which is asked after this one.
        """
        end = self.advance(offset, limits, until=until)
        first = slowest = self.held_by
        if first is not None and self._waited_for is not None and _stands_still(self._waited_for, first):
            give_up = self._clock() + _LONGEST_WAIT_SECONDS
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
