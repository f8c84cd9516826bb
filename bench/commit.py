"""Commit: an append to a table with a short and with a long history, metadata only."""

from __future__ import annotations

import shutil
import tempfile
import time
from typing import TYPE_CHECKING

from bench.fresh_process import ask_fresh
from bench.history import append_once, make_history, open_recorded
from bench.measure import Series
from bench.result import OURS, Check, Section
from bench.settings import DATA

if TYPE_CHECKING:
    from bench.history import Recorded
    from bench.settings import Settings
    from penstock.table.ref import TableRef

MAX_GROWTH = 1.3
COMMITS_A_ROUND = 30
"""With the default options about every 25th commit merges manifests: the mean holds its share of that."""
KINDS = {"scalable": False, "queue of 8 buckets": True}


def measure(settings: Settings) -> Section:
    """Commit in turns to tables that differ only in the length of their history."""
    DATA.mkdir(parents=True, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="run-", dir=DATA)
    try:
        series: list[Series] = []
        checks: list[Check] = []
        for number, (kind, is_queue) in enumerate(KINDS.items()):
            tables = {
                snapshots: make_history(folder, f"t{number}_{snapshots}", snapshots, is_queue=is_queue)
                for snapshots in settings.snapshots
            }
            times, manifests = _time_commits(tables, settings)
            series += _series(kind, times)
            checks += _checks(kind, times, manifests)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Section(
        name="commit", title="Commit of an append, metadata only", series=tuple(series), checks=tuple(checks)
    )


Figures = dict[tuple[str, int], list[float]]


def _time_commits(tables: dict[int, TableRef], settings: Settings) -> tuple[Figures, Figures]:
    living = {snapshots: open_recorded(ref) for snapshots, ref in tables.items()}
    times: Figures = {}
    manifests: Figures = {}
    for round_number in range(-settings.warm_ups, settings.rounds):
        for snapshots, ref in tables.items():
            fresh = ask_fresh("commit", ref.location)
            seconds, count = _living(living[snapshots])
            if round_number >= 0:
                times.setdefault(("fresh process", snapshots), []).append(fresh["seconds"])
                manifests.setdefault(("fresh process", snapshots), []).append(fresh["manifests"])
                times.setdefault(("living committer", snapshots), []).append(seconds)
                manifests.setdefault(("living committer", snapshots), []).append(count)
    return times, manifests


def _living(recorded: Recorded) -> tuple[float, float]:
    """Return the mean time of some commits, and the number of manifests that one of them read."""
    append_once(recorded.committer)  # loads what the fresh process has committed
    recorded.manifests_read()
    started = time.perf_counter()
    for _ in range(COMMITS_A_ROUND):
        append_once(recorded.committer)
    seconds = (time.perf_counter() - started) / COMMITS_A_ROUND
    return seconds, recorded.manifests_read() / COMMITS_A_ROUND


def _series(kind: str, times: Figures) -> list[Series]:
    return [
        Series(
            work=f"{kind}, {snapshots:,} snapshots",
            contender=OURS,
            session=committer,
            seconds=tuple(seconds),
        )
        for (committer, snapshots), seconds in times.items()
    ]


def _checks(kind: str, times: Figures, manifests: Figures) -> list[Check]:
    checks = []
    shortest = min(snapshots for _, snapshots in times)
    for (committer, snapshots), seconds in times.items():
        name = f"{kind}, {committer}, {snapshots:,} snapshots"
        checks.append(
            Check(name=f"{name}: manifests read", values=tuple(manifests[committer, snapshots]), unit="files")
        )
        if snapshots != shortest:
            growth = tuple(long / short for long, short in zip(seconds, times[committer, shortest], strict=True))
            label = f"{name}: time next to {shortest:,} snapshots"
            checks.append(Check(name=label, values=growth, unit="x", at_most=MAX_GROWTH))
    return checks
