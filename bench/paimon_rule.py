"""How much Paimon's rule for the automatic compaction of a queue's bucket would rewrite.

Source:
    Paimon ``core:append/BucketedAppendCompactManager.java``; docs/spec/compaction.md sections 1 and 3.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def rewritten_bytes(appended: Iterable[int], *, target_bytes: int, small_bytes: int, min_files: int) -> int:
    """Return the bytes that merges write while files of these sizes are committed one after another.

    A merged file is as large as its inputs together.
    """
    queue: deque[int] = deque()
    rewritten = 0
    for size in appended:
        queue.append(size)
        picked = _pick(queue, target_bytes=target_bytes, min_files=min_files)
        total = sum(picked)
        rewritten += total
        last = total % target_bytes or total
        if 0 < last < small_bytes:
            queue.appendleft(last)
    return rewritten


def _pick(queue: deque[int], *, target_bytes: int, min_files: int) -> list[int]:
    """Take the files of the next merge out of the queue; none if there are too few."""
    picked: list[int] = []
    while queue:
        picked.append(queue.popleft())
        if len(picked) >= min_files:
            return picked
        if sum(picked) >= 2 * target_bytes:
            picked.pop(0)  # it is not considered again
    queue.extendleft(reversed(picked))
    return []
