"""Latest offset: the request of a query to its source before every micro-batch; metadata only, without a JVM."""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from bench.history import append_once
from bench.many_files import make_table
from bench.measure import Series
from bench.result import OURS, Check, Section
from bench.settings import DATA
from penstock.table.actions.changes import open_committer
from penstock.table.store import MetadataStore
from penstock.table.stream.limits import NO_LIMITS, ReadLimits
from penstock.table.stream.offset import UNRESOLVED
from penstock.table.stream.scanner import StreamScanner
from penstock.testing.file_io import RecordingFileIO

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.settings import Settings
    from penstock.table.ref import TableRef
    from penstock.table.stream.offset import StreamOffset

KINDS: Final = {"scalable": -1, "queue of 8 buckets": 8}
DAYS: Final = ("day-050", "day-051")
CUT: Final = 5
"""Files that a limited micro-batch takes."""
FIRST, FIRST_CUT, NEXT_CUT = "first look", f"first look, cut after {CUT} files", f"next {CUT} files"
DROPPED = "nothing new for the first time"
"""The files of the first look are no longer needed, and their memory is freed."""
NOTHING, RESTART, ONE_MORE = "nothing new", "after a restart at the end", "one snapshot more"
FIRST_ORDERED, NEXT_ORDERED = "first snapshot of two partitions", "next snapshot of two partitions"
"""Partitions come in the order of their creation, which takes a look at all files once."""
STEADY: Final = (NOTHING, RESTART, ONE_MORE, NEXT_ORDERED)
"""What a query that has caught up asks; this need not take longer when the table grows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One call of ``latestOffset``.

    Attributes:
        calls: to the storage.
    """

    seconds: float
    calls: int


def measure(settings: Settings) -> Section:
    """Request the latest offset of tables of each size and kind, in turns."""
    DATA.mkdir(parents=True, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="run-", dir=DATA)
    series: list[Series] = []
    checks: list[Check] = []
    try:
        for kind, buckets in KINDS.items():
            tables = {
                files: make_table(f"{folder}/{buckets}-{files}", files, buckets) for files in settings.offset_files
            }
            looks: dict[tuple[str, int], list[Look]] = {}
            for round_number in range(-settings.warm_ups, settings.rounds):
                for files, ref in tables.items():
                    taken = look_around(ref)
                    if round_number >= 0:
                        for name, look in taken.items():
                            looks.setdefault((name, files), []).append(look)
            series += _series(kind, looks)
            checks += _checks(kind, looks)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Section(name="latest-offset", title="Latest offset", series=tuple(series), checks=tuple(checks))


def look_around(ref: TableRef) -> dict[str, Look]:
    """Request it as a new query, a running query and a restarted query do; adds snapshots to the table."""
    file_io = RecordingFileIO(ref.file_io)
    recorded = replace(ref, file_io=file_io)
    looks: dict[str, Look] = {}

    def ask(name: str, advance: Callable[[], StreamOffset]) -> StreamOffset:
        file_io.forget()
        started = time.perf_counter()
        offset = advance()
        looks[name] = Look(seconds=time.perf_counter() - started, calls=len(file_io.calls))
        return offset

    def new_follower() -> StreamScanner:
        return StreamScanner(recorded, MetadataStore(recorded))

    few = ReadLimits(max_files=CUT)
    cutting = new_follower()
    cut = ask(FIRST_CUT, lambda: cutting.advance(UNRESOLVED, few))
    _moved(ask(NEXT_CUT, lambda: cutting.advance(cut, few)), cut)
    living = new_follower()
    end = ask(FIRST, lambda: living.advance(UNRESOLVED, NO_LIMITS))
    for name in (DROPPED, NOTHING):
        _stayed(ask(name, lambda: living.advance(end, NO_LIMITS)), end)
    _stayed(ask(RESTART, lambda: new_follower().advance(end, NO_LIMITS)), end)
    committer = open_committer(ref)
    append_once(committer, DAYS[:1])
    end = living.advance(end, NO_LIMITS)
    for name, days in {ONE_MORE: DAYS[:1], FIRST_ORDERED: DAYS, NEXT_ORDERED: DAYS}.items():
        append_once(committer, days)
        before, end = end, ask(name, lambda end=end: living.advance(end, NO_LIMITS))
        _moved(end, before)
    return looks


def _moved(offset: StreamOffset, before: StreamOffset) -> None:
    if offset == before:
        message = f"the stream did not go on behind {before}"
        raise AssertionError(message)


def _stayed(offset: StreamOffset, before: StreamOffset) -> None:
    if offset != before:
        message = f"the stream went from {before} to {offset} without a new snapshot"
        raise AssertionError(message)


def _series(kind: str, looks: dict[tuple[str, int], list[Look]]) -> list[Series]:
    return [
        Series(
            work=f"{kind}, {files:,} files, {name}",
            contender=OURS,
            session="",
            seconds=tuple(look.seconds for look in taken),
        )
        for (name, files), taken in looks.items()
    ]


def _checks(kind: str, looks: dict[tuple[str, int], list[Look]]) -> list[Check]:
    checks = []
    smallest = min(files for _, files in looks)
    for (name, files), taken in looks.items():
        if name not in STEADY:
            continue
        label = f"{kind}, {files:,} files, {name}"
        calls = tuple(float(look.calls) for look in taken)
        checks.append(Check(name=f"{label}: calls to storage", values=calls, unit="calls"))
        if files != smallest:
            pairs = zip(taken, looks[name, smallest], strict=True)
            growth = tuple(large.seconds / small.seconds for large, small in pairs)
            checks.append(Check(name=f"{label}: time next to {smallest:,} files", values=growth, unit="x"))
    return checks
