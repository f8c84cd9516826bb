"""Growth with the number of live files: plans and commits, metadata only, each in a fresh process."""

from __future__ import annotations

import shutil
import tempfile
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bench.fresh_process import ask_fresh
from bench.many_files import FILE_ROWS, make_files, make_table, partition_value
from bench.many_manifests import make_large_table
from bench.result import Check, Section
from bench.settings import DATA

if TYPE_CHECKING:
    from bench.settings import Settings
    from penstock.table.ref import TableRef

_BUCKETS: Final = 8
_MILLION: Final = 1_000_000
_FEW: Final = 100
_MAX_PEAK_MB: Final = {_MILLION: 300, 10 * _MILLION: 4096}
_ALL: Final = "plan of all files"
_BY_KEY: Final = "plan by key"
_ONE_PARTITION: Final = "plan of one partition of 100"
_MAX_SECONDS: Final = {
    (_ALL, _MILLION): 2,
    (_BY_KEY, _MILLION): 1,
    (_BY_KEY, 10 * _MILLION): 10,
    (_ONE_PARTITION, _MILLION): 0.1,
}
"""Through a catalog, by the title of the work and the number of files."""


_RUNS: Final = {
    "cold": "",
    "warm": ", warm",
    "parquet": ", as many files by Spark's Parquet source",
    "parquet again": ", as many files by Spark's Parquet source again",
}


class Work(NamedTuple):
    """A work, and its maximum of processor time for a million files, in seconds."""

    title: str
    name: str
    at_most: float


_OF_PARTITION: Final = Work(_ONE_PARTITION, "plan", 0.1)
WORKS: Final = (
    Work(_ALL, "plan", 4),
    Work(_BY_KEY, "plan", 2),
    _OF_PARTITION,
    Work("drop of one partition", "drop", 0.5),
    Work("overwrite of one partition", "overwrite", 0.5),
    Work("commit of 1,000 new partitions to a queue", "append", 0.5),
)


def measure(settings: Settings, *, with_spark: bool = True) -> Section:
    """Measure all works, in turns, on tables of each size; with Spark also plans through a catalog."""
    DATA.mkdir(parents=True, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="run-", dir=DATA)
    figures: dict[tuple[int, Work], list[dict[str, float]]] = {}
    by_catalog: dict[tuple[int, Work], list[dict[str, Any]]] = {}
    try:
        small = make_table(f"{folder}/small", _FEW)
        tables = {files: _make_tables(f"{folder}/{files}", files) for files in settings.scale_files}
        directories = {files: make_files(ref, _partition_filter(files)) for files, (ref, _) in tables.items()}
        for number in range(-settings.warm_ups, settings.rounds):
            if with_spark and number >= 0:
                # One file: what Spark takes by itself.
                answer = ask_fresh("catalog", small.location, small.location, _partition_filter(_FEW))
                by_catalog.setdefault((_FEW, _OF_PARTITION), []).append(answer)
            for files, (scalable, queue) in tables.items():
                for work in WORKS:
                    ref = queue if work.name == "append" else scalable
                    answer = ask_fresh("scale", ref.location, work.name, *_arguments(work, files, 50 + number))
                    if number >= 0:
                        figures.setdefault((files, work), []).append(answer)
                    if with_spark and number >= 0 and _is_by_catalog(work, files):
                        beside = (directories[files],) if work.title == _ONE_PARTITION else ()
                        filters = _arguments(work, files, number) or ("true",)
                        answer = ask_fresh("catalog", ref.location, small.location, *filters, *beside)
                        by_catalog.setdefault((files, work), []).append(answer)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    checks = [check for (files, work), answers in figures.items() for check in _checks(files, work, answers)]
    checks += [
        check for (files, work), answers in by_catalog.items() for check in _catalog_checks(files, work, answers)
    ]
    note = "processor seconds of a fresh process, without its imports; warm: the same plan again, with a filled cache"
    catalog = "through a catalog: seconds that pass in a Spark session that runs already; memory of Python and the JVM"
    return Section(name="scale", title="Growth with the number of files", checks=tuple(checks), notes=(note, catalog))


def _make_tables(folder: str, files: int) -> tuple[TableRef, TableRef]:
    return make_large_table(f"{folder}/scalable", files), make_large_table(f"{folder}/queue", files, _BUCKETS)


def _arguments(work: Work, files: int, number: int) -> tuple[str, ...]:
    # Commits of earlier rounds have changed partitions from the 49th on.
    if work.name != "plan":
        return str(files), str(number)
    if work.title == _ALL:
        return ()
    if work.title == _BY_KEY:
        return (_key_filter(files),)
    return (_partition_filter(files),)


def _is_by_catalog(work: Work, files: int) -> bool:
    # Spark's partitions of ten million files would need more memory than the driver has.
    return work.title in {_BY_KEY, _ONE_PARTITION} or (work.title == _ALL and files <= _MILLION)


def _partition_filter(files: int) -> str:
    return f"dt = '{partition_value(files // 4, files)}'"


def _key_filter(files: int) -> str:
    return f"order_id = {files // 4 * FILE_ROWS + 7}"


def _checks(files: int, work: Work, answers: list[dict[str, float]]) -> list[Check]:
    title = f"{files:,} files, {work.title}"
    cold = tuple(each["cold"] for each in answers)
    checks = [Check(name=title, values=cold, unit="s", at_most=work.at_most if files == _MILLION else None)]
    if work.name == "plan":
        checks.append(Check(name=f"{title}, warm", values=tuple(each["warm"] for each in answers), unit="s"))
    return [*checks, _peak_check(f"{title}: peak memory of the process", answers, _MAX_PEAK_MB.get(files))]


def _catalog_checks(files: int, work: Work, answers: list[dict[str, Any]]) -> list[Check]:
    title = f"{files:,} files, {work.title} through a catalog"
    checks = [
        Check(
            name=f"{title}{again}{what}",
            values=tuple(each[run][figure] for each in answers),
            unit="s",
            at_most=_MAX_SECONDS.get((work.title, files)) if (run, figure) == ("cold", "seconds") else None,
        )
        for run, again in _RUNS.items()
        if run in answers[0]
        for figure, what in (
            ("seconds", ""),
            ("python", ": processor time of Python"),
            ("jvm", ": processor time of the JVM"),
        )
        if figure == "seconds" or run in {"cold", "warm"}
    ]
    return [*checks, _peak_check(f"{title}: peak memory", answers)]


def _peak_check(name: str, answers: list[dict[str, Any]], at_most: float | None = None) -> Check:
    peaks = tuple(each["peak_bytes"] / 2**20 for each in answers)
    return Check(name=name, values=peaks, unit="MB", at_most=at_most)
