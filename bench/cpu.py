"""CPU time of this process and all its descendants: Spark's JVM and its Python workers."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
TICKS: Final = os.sysconf("SC_CLK_TCK")
SET_CHILD_SUBREAPER: Final = 36
"""Of Linux's ``prctl``."""


def adopt_orphans() -> None:
    """Keep the CPU time of processes whose parent was killed: they become our children instead of init's.

    Spark kills the parents of its Python workers when a query ends.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class CpuClock:
    """Measures from its creation on.

    The time of processes that end meanwhile and that nobody waits for is missing: Spark's Python daemon ignores
    SIGCHLD, so the kernel adds the time of its workers to no other process.
    """

    def __init__(self) -> None:
        self._before = _read()

    def seconds(self) -> float:
        """Return user and system time so far, including that of reaped children; 0 without /proc."""
        return sum(spent - self._before.get(process, 0) for process, spent in _read().items()) / TICKS


def _read() -> dict[tuple[int, int], int]:
    """Return the time in ticks of this process and its descendants, each by its id and the time of its start."""
    found = _read_once()
    while True:
        # A process that ended between the reading of its parent and its own would be missing in both.
        again = _read_once()
        if found.keys() == again.keys():
            return again
        found = again


def _read_once() -> dict[tuple[int, int], int]:
    spent: dict[int, tuple[int, int]] = {}
    children: dict[int, list[int]] = {}
    for stat in PROC.glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue  # it has ended meanwhile
        # After the name, which may contain any character: state, parent, ...; times of the process and its children
        # from the 12th field on, its start in the 20th.
        fields = text[text.rindex(")") + 2 :].split()
        process = int(stat.parent.name)
        spent[process] = int(fields[19]), sum(map(int, fields[11:15]))
        children.setdefault(int(fields[1]), []).append(process)
    found: dict[tuple[int, int], int] = {}
    below = [os.getpid()]
    while below:
        process = below.pop()
        if process in spent:
            start, ticks = spent[process]
            found[process, start] = ticks
        below += children.get(process, [])
    return found
