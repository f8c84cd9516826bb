"""CPU time of this process and all its descendants: Spark's JVM and its Python workers."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")
SET_CHILD_SUBREAPER = 36
"""Of Linux's ``prctl``."""


def adopt_orphans() -> None:
    """Keep the CPU time of processes whose parent was killed: they become our children instead of init's.

    Spark kills the parents of its Python workers when a query ends.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def cpu_seconds() -> float:
    """Return user and system time so far, including that of reaped children; 0 without /proc."""
    processes, spent = _read()
    while True:
        # A process that ends between the reading of its parent and its own would be missing in both.
        after, spent_after = _read()
        if processes <= after:
            return spent / TICKS
        processes, spent = after, spent_after


def _read() -> tuple[set[int], int]:
    """Return this process and its descendants, and their time in ticks."""
    spent: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for stat in PROC.glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue  # it has ended meanwhile
        # After the name, which may contain any character: state, parent, ...; times of the process and its children
        # from the 12th field on.
        fields = text[text.rindex(")") + 2 :].split()
        process = int(stat.parent.name)
        spent[process] = sum(map(int, fields[11:15]))
        children.setdefault(int(fields[1]), []).append(process)
    found: set[int] = set()
    below = [os.getpid()]
    while below:
        process = below.pop()
        found.add(process)
        below += children.get(process, [])
    return found, sum(spent.get(process, 0) for process in found)
