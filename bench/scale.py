"""Growth with the number of live files: plans and commits, metadata only, each in a fresh process."""

from __future__ import annotations

import shutil
import tempfile
from typing import TYPE_CHECKING, Final, NamedTuple

from bench.fresh_process import ask_fresh
from bench.many_files import COMMITS, FILE_ROWS, make_table, partition_value
from bench.result import Check, Section
from bench.settings import DATA

if TYPE_CHECKING:
    from bench.settings import Settings
    from penstock.table.ref import TableRef

_COMMIT_FILES: Final = 5_000
_BUCKETS: Final = 8
_MILLION: Final = 1_000_000
_MAX_PEAK_MB: Final = 300


class Work(NamedTuple):
    """A work, and its maximum of processor time for a million files, in seconds."""

    title: str
    name: str
    at_most: float


WORKS: Final = (
    Work("plan of all files", "plan", 4),
    Work("plan by key", "plan", 2),
    Work("plan of one partition of 100", "plan", 0.1),
    Work("drop of one partition", "drop", 0.5),
    Work("overwrite of one partition", "overwrite", 0.5),
    Work("commit of 1,000 new partitions to a queue", "append", 0.5),
)


def measure(settings: Settings) -> Section:
    """Measure all works, in turns, on tables of each size."""
    DATA.mkdir(parents=True, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="run-", dir=DATA)
    figures: dict[tuple[int, Work], list[dict[str, float]]] = {}
    try:
        tables = {files: _make_tables(f"{folder}/{files}", files) for files in settings.scale_files}
        for number in range(-settings.warm_ups, settings.rounds):
            for files, (scalable, queue) in tables.items():
                for work in WORKS:
                    ref = queue if work.name == "append" else scalable
                    answer = ask_fresh("scale", ref.location, work.name, *_arguments(work, files, 50 + number))
                    if number >= 0:
                        figures.setdefault((files, work), []).append(answer)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    checks = [check for (files, work), answers in figures.items() for check in _checks(files, work, answers)]
    note = "processor seconds of a fresh process, without its imports; warm: the same plan again, with a filled cache"
    return Section(name="scale", title="Growth with the number of files", checks=tuple(checks), notes=(note,))


def _make_tables(folder: str, files: int) -> tuple[TableRef, TableRef]:
    commits = max(COMMITS, files // _COMMIT_FILES)
    return (
        make_table(f"{folder}/scalable", files, commits=commits),
        make_table(f"{folder}/queue", files, _BUCKETS, commits=commits),
    )


def _arguments(work: Work, files: int, number: int) -> tuple[str, ...]:
    # Commits of earlier rounds have changed partitions from the 49th on.
    if work.name != "plan":
        return str(files), str(number)
    if work.title == "plan of all files":
        return ()
    file = files // 4
    if work.title == "plan by key":
        return (f"order_id = {file * FILE_ROWS + 7}",)
    return (f"dt = '{partition_value(file, files)}'",)


def _checks(files: int, work: Work, answers: list[dict[str, float]]) -> list[Check]:
    title = f"{files:,} files, {work.title}"
    is_target = files == _MILLION
    cold = tuple(each["cold"] for each in answers)
    checks = [Check(name=title, values=cold, unit="s", at_most=work.at_most if is_target else None)]
    if work.name == "plan":
        checks.append(Check(name=f"{title}, warm", values=tuple(each["warm"] for each in answers), unit="s"))
    peaks = tuple(each["peak_bytes"] / 2**20 for each in answers)
    most = _MAX_PEAK_MB if is_target else None
    checks.append(Check(name=f"{title}: peak memory of the process", values=peaks, unit="MB", at_most=most))
    return checks
