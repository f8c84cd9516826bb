"""History: do live files, metadata and the time of a micro-batch stay constant over ten thousand micro-batches?"""

from __future__ import annotations

import math
import statistics
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from bench.flat_history import Course, run_course
from bench.measure import Series
from bench.paimon_rule import rewritten_bytes
from bench.result import OURS, Check, Section

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bench.flat_history import History, Step
    from bench.settings import Settings

IN_TURN: Final = "history-flat"
BESIDE: Final = "history-beside"
MIN_FILES: Final = 5
"""``compaction.min.file-num``, as it is by default."""
RETAINED: Final = 100
MAX_GROWTH: Final = 1.2
MAX_METADATA_CHANGE: Final = 0.1
TRACE_POINTS: Final = 200
BATCH_TIME: Final = "trace: time of a micro-batch, median"
LIVE_FILES: Final = "trace: live files, most"
METADATA: Final = "trace: metadata, mean"
MIB: Final = 1024 * 1024

_RETAIN: Final = {"snapshot.num-retained.max": str(RETAINED)}
_PAUSE_SECONDS: Final = 0.02
COURSES: Final = {
    "scalable": Course(batches=0, partitions=4, buckets=-1, options=_RETAIN),
    "queue": Course(batches=0, partitions=2, buckets=2, options=_RETAIN),
    "scalable, on a thread": Course(
        batches=0, partitions=4, buckets=-1, options=_RETAIN, is_beside=True, pause_seconds=_PAUSE_SECONDS
    ),
    "queue, on a thread": Course(
        batches=0, partitions=2, buckets=2, options=_RETAIN, is_beside=True, pause_seconds=_PAUSE_SECONDS
    ),
}
"""By name, each to be given a number of batches. Four partitions or buckets get rows with every batch."""
TARGET_SIZES: Final = {"1 mb": MIB, "256 mb": 256 * MIB}


def measure(settings: Settings) -> Section:
    """Run the workloads with compaction between batches; then measure how much merges rewrite."""
    courses = {kind: course for kind, course in COURSES.items() if not course.is_beside}
    series, checks = _run_all(courses, settings.history_batches)
    for target in TARGET_SIZES:
        history = _in_memory(amplification_course(settings.history_batches // 10, target))
        checks += amplification_checks(target, history)
    return Section(name=IN_TURN, title="History", series=tuple(series), checks=tuple(checks))


def measure_beside(settings: Settings) -> Section:
    """Run the workloads with compaction on a thread, with a fifth of the batches."""
    courses = {kind: course for kind, course in COURSES.items() if course.is_beside}
    series, checks = _run_all(courses, settings.history_batches // 5)
    title = "History, with compaction on a thread"
    return Section(name=BESIDE, title=title, series=tuple(series), checks=tuple(checks))


def _run_all(courses: Mapping[str, Course], batches: int) -> tuple[list[Series], list[Check]]:
    series: list[Series] = []
    checks: list[Check] = []
    for kind, course in courses.items():
        history = _in_memory(replace(course, batches=batches))
        series += _series(kind, history.steps)
        checks += [*flat_checks(kind, history), *_traces(kind, history.steps)]
    return series, checks


def flat_checks(kind: str, history: History, *, is_timed: bool = True) -> list[Check]:
    """Compare a history with its targets.

    Args:
        is_timed: its times were measured on an otherwise idle machine.
    """
    steps = history.steps
    early, late = early_and_late(steps)
    before, last = _tenths(steps)
    change = statistics.mean(each.metadata_bytes for each in last) / statistics.mean(
        each.metadata_bytes for each in before
    )
    return [
        Check(
            name=f"{kind}: median time of micro-batches {_span(steps, late)} next to {_span(steps, early)}",
            values=(_median_seconds(late) / _median_seconds(early),),
            unit="x",
            at_most=MAX_GROWTH if is_timed else None,
        ),
        Check(
            name=f"{kind}: the same, processor time",
            values=(
                statistics.median(each.cpu_seconds for each in late)
                / statistics.median(each.cpu_seconds for each in early),
            ),
            unit="x",
            at_most=MAX_GROWTH if is_timed else None,
        ),
        Check(
            name=f"{kind}: calls to storage, {_span(steps, late)} next to {_span(steps, early)}",
            values=(statistics.mean(each.calls for each in late) / statistics.mean(each.calls for each in early),),
            unit="x",
            at_most=MAX_GROWTH,
        ),
        Check(
            name=f"{kind}: manifests read a micro-batch, {_span(steps, late)}",
            values=(statistics.mean(each.manifests_read for each in late),),
            unit="files",
        ),
        Check(
            name=f"{kind}: live files, most",
            values=(max(each.live_files for each in steps),),
            unit="files",
            at_most=history.course.groups * 2 * MIN_FILES,
        ),
        Check(
            name=f"{kind}: metadata bytes of {_span(steps, last)} next to {_span(steps, before)}, change",
            values=(abs(change - 1),),
            unit="x",
            at_most=MAX_METADATA_CHANGE,
        ),
        Check(
            name=f"{kind}: every row once, every file there", values=(float(history.is_whole),), unit="x", at_least=1
        ),
    ]


def amplification_course(batches: int, target: str) -> Course:
    """Return a course of commits of 9 kB to one bucket of a queue."""
    return Course(
        batches=batches,
        partitions=1,
        buckets=1,
        rows=64,
        payload_bytes=128,
        options={**_RETAIN, "target-file-size": target},
    )


def amplification_checks(target: str, history: History) -> list[Check]:
    """Return how often a byte is rewritten, compared with Paimon's rule for the same files."""
    target_bytes = TARGET_SIZES[target]
    appended = sum(history.appended)
    most = 1 + math.log(target_bytes * len(history.appended) / appended, MIN_FILES)
    theirs = rewritten_bytes(
        history.appended, target_bytes=target_bytes, small_bytes=target_bytes * 7 // 10, min_files=MIN_FILES
    )
    name = f"queue, {len(history.steps):,} commits, target {target}: bytes rewritten for each appended"
    return [
        Check(name=name, values=(history.rewritten_share,), unit="x", at_most=most),
        Check(name=f"{name}, by Paimon's rule", values=(theirs / appended,), unit="x"),
    ]


def early_and_late(steps: Sequence[Step]) -> tuple[Sequence[Step], Sequence[Step]]:
    """Return the second and the last twentieth: of 10,000 the 501st to 1,000th, and the last 500."""
    part = max(len(steps) // 20, 1)
    return steps[part : 2 * part], steps[-part:]


def _tenths(steps: Sequence[Step]) -> tuple[Sequence[Step], Sequence[Step]]:
    part = max(len(steps) // 10, 1)
    return steps[-2 * part : -part], steps[-part:]


def _span(steps: Sequence[Step], part: Sequence[Step]) -> str:
    first = next(number for number, step in enumerate(steps) if step is part[0])
    return f"{first + 1:,} to {first + len(part):,}"


def _median_seconds(steps: Sequence[Step]) -> float:
    return statistics.median(each.seconds for each in steps)


def _series(kind: str, steps: Sequence[Step]) -> list[Series]:
    return [
        Series(
            work=f"{kind}, micro-batches {_span(steps, part)}",
            contender=OURS,
            session="",
            seconds=tuple(each.seconds for each in part),
        )
        for part in early_and_late(steps)
    ]


def _traces(kind: str, steps: Sequence[Step]) -> list[Check]:
    size = max(len(steps) // TRACE_POINTS, 1)
    parts = [steps[first : first + size] for first in range(0, len(steps), size)]
    traces = {
        (BATCH_TIME, "s"): tuple(_median_seconds(part) for part in parts),
        (LIVE_FILES, "files"): tuple(max(each.live_files for each in part) for part in parts),
        (METADATA, "kB"): tuple(statistics.mean(each.metadata_bytes for each in part) / 1000 for part in parts),
    }
    return [Check(name=f"{kind}: {name}", values=values, unit=unit) for (name, unit), values in traces.items()]


def _in_memory(course: Course) -> History:
    """Run a workload in memory, where the disk traffic of others does not affect its times."""
    return run_course(f"memory://history-{uuid.uuid4()}", course)
