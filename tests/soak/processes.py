"""What processes hold, from /proc: memory, file descriptors, threads, processor time."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

PROC: Final = Path("/proc")
TICKS: Final = os.sysconf("SC_CLK_TCK")
PAGE: Final = os.sysconf("SC_PAGE_SIZE")
MIB: Final = 2**20
SET_HUGE_PAGES_DISABLED: Final = 41
"""Of Linux's ``prctl``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What one process, or several together, hold.

    Attributes:
        rss_bytes: resident memory.
        own_bytes: of that what belongs to no file: heap and stacks. Pages of libraries come and go with whoever else
            uses them, and so does their share in PSS.
        cpu_seconds: of them and of those of their children that have ended.
    """

    processes: int = 0
    rss_bytes: int = 0
    own_bytes: int = 0
    handles: int = 0
    threads: int = 0
    cpu_seconds: float = 0.0

    def __add__(self, other: Held) -> Held:
        return Held(
            processes=self.processes + other.processes,
            rss_bytes=self.rss_bytes + other.rss_bytes,
            own_bytes=self.own_bytes + other.own_bytes,
            handles=self.handles + other.handles,
            threads=self.threads + other.threads,
            cpu_seconds=self.cpu_seconds + other.cpu_seconds,
        )

    def to_row(self) -> list[float]:
        """Return it as the record has it: MB, MB, descriptors, threads, seconds, processes."""
        rss, own = (round(each / MIB, 2) for each in (self.rss_bytes, self.own_bytes))
        return [rss, own, self.handles, self.threads, round(self.cpu_seconds, 2), self.processes]


def refuse_huge_pages() -> None:
    """Keep the kernel from making one page of 2 MB of a few small ones, here and in what is started from here.

    It does so minutes later, for the pool of pyarrow, and then as much more memory is resident as nobody has asked for.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_HUGE_PAGES_DISABLED, 1, 0, 0, 0)


def release_free_memory() -> None:
    """Give back to the system what this process keeps though nothing uses it, as a collection does in the JVM.

    Else allocators keep what the largest batch has needed, and more with each that falls a little differently.
    """
    gc.collect()
    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)


def keep_released(seconds: float) -> None:
    """Release free memory on a thread of its own, again and again, until the process ends."""

    def run() -> None:
        while True:
            time.sleep(seconds)
            release_free_memory()

    threading.Thread(target=run, name="release", daemon=True).start()


def count_pooled(process: int) -> int:
    """Return how many threads are of Spark's pools for blocks, which grow to 100 each and shrink when they are idle."""
    count = 0
    for comm in (PROC / str(process)).glob("task/*/comm"):
        try:
            count += comm.read_text().startswith("block-manager-")
        except (OSError, ProcessLookupError):
            continue  # it has ended meanwhile
    return count


def held_by(process: int) -> Held:
    """Return what a process holds; nothing where it has ended."""
    folder = PROC / str(process)
    try:
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        rollup = (folder / "smaps_rollup").read_text()
        handles = len(os.listdir(folder / "fd"))  # noqa: PTH208 - counted, not used
    except (OSError, ProcessLookupError):
        return Held()
    own = next((int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Anonymous:")), 0)
    # After the name: state, parent, ..., own and children's times from the 12th on, threads, ..., resident pages.
    return Held(
        processes=1,
        rss_bytes=int(fields[21]) * PAGE,
        own_bytes=own * 1024,
        handles=handles,
        threads=int(fields[17]),
        cpu_seconds=sum(map(int, fields[11:15])) / TICKS,
    )


def children() -> dict[int, list[int]]:
    """Return the processes that run now by their parent."""
    found: dict[int, list[int]] = {}
    for stat in PROC.glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (OSError, ProcessLookupError):
            continue  # it has ended meanwhile
        found.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    return found


def below(process: int, tree: dict[int, list[int]]) -> list[int]:
    """Return all processes that a process has started, directly or not."""
    found, waiting = [], list(tree.get(process, []))
    while waiting:
        found.append(waiting.pop())
        waiting += tree.get(found[-1], [])
    return found
