"""Planning: from a location to the list of files, in a fresh process."""

from __future__ import annotations

import shutil
import tempfile
from typing import TYPE_CHECKING

from bench.fresh_process import ask_fresh
from bench.many_files import make_table, selective_filter
from bench.measure import Series
from bench.result import OURS, Check, Section
from bench.settings import DATA
from bench.spark_job import PLAIN, PeerSet, SparkFailedError, run_spark

if TYPE_CHECKING:
    from bench.settings import Settings

MAX_SECONDS = {10_000: 0.6, 100_000: 5.0}
MAX_MEGABYTES = 1024


def measure(settings: Settings, *, with_spark: bool = True) -> Section:
    """Plan tables of each size, whole and with a selective filter, in turns."""
    DATA.mkdir(parents=True, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="run-", dir=DATA)
    try:
        locations = {files: make_table(f"{folder}/{files}", files).location for files in settings.live_files}
        answers = _ask(settings, locations)
        spark: tuple[Series, ...] = ()
        notes: tuple[str, ...] = ()
        if with_spark:
            smallest = min(locations)
            try:
                work = f"to_spark, {smallest:,} live files, to the physical plan"
                spark = run_spark("plan", PeerSet(name=PLAIN), settings, location=locations[smallest], work=work).series
            except SparkFailedError as error:
                notes = (f"to_spark is left out: {error}",)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return _section(answers, spark, notes)


def _ask(settings: Settings, locations: dict[int, str]) -> dict[tuple[int, str], list[dict[str, float]]]:
    answers: dict[tuple[int, str], list[dict[str, float]]] = {}
    for round_number in range(-settings.warm_ups, settings.rounds):
        for files, location in locations.items():
            for kind, arguments in {"whole": (), "filtered": (selective_filter(files),)}.items():
                answer = ask_fresh("plan", location, *arguments)
                if answer["files"] != (1 if kind == "filtered" else files):
                    message = f"planned {answer['files']} of {files} files ({kind})"
                    raise AssertionError(message)
                if round_number >= 0:
                    answers.setdefault((files, kind), []).append(answer)
    return answers


def _section(
    answers: dict[tuple[int, str], list[dict[str, float]]], spark: tuple[Series, ...], notes: tuple[str, ...]
) -> Section:
    series, checks = [], []
    for (files, kind), given in answers.items():
        work = f"plan {files:,} live files" + (", selective filter" if kind == "filtered" else "")
        seconds = tuple(each["seconds"] for each in given)
        series.append(Series(work=work, contender=OURS, session="fresh process", seconds=seconds))
        checks.append(Check(name=work, values=seconds, unit="s", at_most=MAX_SECONDS.get(files)))
        peaks = tuple(each["peak_bytes"] / 2**20 for each in given)
        checks.append(Check(name=f"{work}: peak memory of the process", values=peaks, unit="MB", at_most=MAX_MEGABYTES))
    checks += [Check(name=each.work, values=each.seconds, unit="s") for each in spark]
    return Section(name="plan", title="Planning", series=(*series, *spark), checks=tuple(checks), notes=notes)
