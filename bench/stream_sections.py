"""The streaming benchmarks on Spark, with the targets for the figures of a session."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bench import spark_stream_compact as beside
from bench import spark_stream_windows as windows
from bench import spark_stream_write as write
from bench.data import FILES, make_batches, make_orders, make_uneven_batches
from bench.result import (
    DELTA,
    ICEBERG,
    OURS,
    PARQUET,
    PARQUET_PARTITIONS,
    Check,
    Section,
    find_series,
    time_next_to,
)
from bench.spark_job import PLAIN, PeerSet, SparkFailedError, run_spark
from bench.spark_sections import PLAIN_TABLE, QUEUE, compare, in_every_session
from bench.spark_stream_read import BATCHES_WORK, CPU_WORK, WORK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bench.measure import Series
    from bench.settings import Settings

SOURCE_QUEUE = f'{QUEUE} format("penstock")'
SOURCE_PLAIN = f'{PLAIN_TABLE} format("penstock")'
READ_TARGETS: Mapping[tuple[str, str], float | None] = {
    (PLAIN_TABLE, PARQUET): 0.9,
    (PLAIN_TABLE, DELTA): 1.15,
    (PLAIN_TABLE, ICEBERG): 1.45,
    (QUEUE, PARQUET): 0.9,
    # Eight buckets have eight times as many files, and each costs the JVM's collector as much as a large one.
    (QUEUE, PARQUET_PARTITIONS): 1.0,
    (QUEUE, DELTA): 1.15,
    (QUEUE, ICEBERG): 1.45,
    (SOURCE_QUEUE, PARQUET): None,
}
TARGET_ROWS = 1_000
WRITE_TARGETS: Mapping[tuple[str, str], float | None] = {
    (ours, peer): at_most
    for ours in (PLAIN_TABLE, QUEUE)
    for peer, at_most in ((PARQUET, 1.5), (DELTA, 0.7), (ICEBERG, 0.9))
} | {(QUEUE, f"{ICEBERG} bucket(8)"): None, (SOURCE_PLAIN, PARQUET): None}
WINDOW_TARGETS: Mapping[tuple[str, str], float | None] = {
    (f"{ours} with a watermark", peer): at_least
    for ours in (PLAIN_TABLE, QUEUE)
    for peer, at_least in ((PARQUET, 1.0), (DELTA, 1.2), (ICEBERG, None))
} | {
    # Where rows are distributed by a key, each task has a partial result for most windows and categories. So the
    # eight buckets are also compared with Spark's files of eight hash partitions.
    (f"{QUEUE} with a watermark", PARQUET_PARTITIONS): 1.0,
}
WATERMARK_TARGETS: Mapping[tuple[str, str], float | None] = {
    (f"{ours} with a watermark", f"{ours} without a watermark"): 1.03 for ours in (PLAIN_TABLE, QUEUE)
}
DURABLE_TARGETS: Mapping[tuple[str, str], float | None] = {
    (f"{ours} durable", f"{ours} not durable"): 1.15 for ours in (PLAIN_TABLE, QUEUE)
}
SLOPE_ROWS = 100


def measure_read(settings: Settings) -> Section:
    """Stream the seven-column table from its first row to its last."""
    series, notes = in_every_session("stream-read", settings, path=str(make_orders(settings.rows)))
    checks = compare(WORK, series, READ_TARGETS)
    for work in (BATCHES_WORK, CPU_WORK):
        checks += compare(work, series, dict.fromkeys(READ_TARGETS))
    return Section(name="stream-read", title="Stream read", series=series, checks=tuple(checks), notes=notes)


def measure_windows(settings: Settings) -> Section:
    """Compute windows of the seven-column table from its first row to its last."""
    series, notes = in_every_session("stream-windows", settings, path=str(make_orders(settings.rows)))
    checks = compare(windows.WORK, series, WINDOW_TARGETS)
    for work in (windows.BATCHES_WORK, windows.CPU_WORK):
        checks += compare(work, series, dict.fromkeys(WINDOW_TARGETS))
    return Section(
        name="stream-windows", title="Windows over a stream", series=series, checks=tuple(checks), notes=notes
    )


def measure_watermark(settings: Settings) -> Section:
    """Stream micro-batches of every size into our tables, with and without a declared watermark."""
    return _measure_pairs("stream-watermark", "Watermarks in snapshots", settings, WATERMARK_TARGETS)


def measure_durable(settings: Settings) -> Section:
    """Stream micro-batches of every size into our tables, with and without durable commits."""
    return _measure_pairs("stream-durable", "Flushed commits", settings, DURABLE_TARGETS)


def measure_write(settings: Settings) -> Section:
    """Stream micro-batches of every size into new tables."""
    sources = [
        {"rows": rows, "batches": batches, "path": str(make_batches(batches + write.SKIPPED, rows, FILES))}
        for rows, batches in zip(settings.batch_rows, settings.batches, strict=True)
    ]
    series, notes = in_every_session("stream-write", settings, sources=sources)
    checks = []
    for rows in settings.batch_rows:
        for figure in (write.P50, write.P95, write.SINK_P50, write.CPU):
            has_target = figure == write.P50 and rows == TARGET_ROWS
            targets = WRITE_TARGETS if has_target else dict.fromkeys(WRITE_TARGETS)
            checks += compare_times(write.work_name(rows, figure), series, targets)
    return Section(name="stream-write", title="Stream write", series=series, checks=tuple(checks), notes=notes)


def measure_beside(settings: Settings) -> Section:
    """Stream micro-batches into tables with and without concurrent compaction, under each scheduler."""
    sizes = [settings.beside_rows[0]] * write.SKIPPED
    for rows, batches in zip(settings.beside_rows, settings.beside_batches, strict=True):
        sizes += [rows] * batches
    # At least two tasks on any machine; a micro-batch has at least as many tasks as there are cores.
    files = {beside.FREE: 1, beside.TAKEN: max(settings.cores, 2)}
    cases = [
        {"name": name, "files": count, "path": str(make_uneven_batches(sizes, count)), "sizes": sizes}
        for name, count in files.items()
    ]
    found, notes = [], []
    for scheduler in beside.SCHEDULERS:
        try:
            found.append(run_spark("stream-compact", PeerSet(name=PLAIN), settings, scheduler=scheduler, cases=cases))
        except SparkFailedError as error:
            notes.append(f"{scheduler} is left out: {error}")
    return Section(
        name="stream-compact",
        title="Compaction beside a stream",
        series=tuple(series for section in found for series in section.series),
        checks=tuple(check for section in found for check in section.checks),
        notes=tuple(notes),
    )


def measure_slope(settings: Settings) -> Section:
    """Stream many small micro-batches into one table."""
    path = str(make_batches(settings.slope_batches, SLOPE_ROWS, files=1))
    try:
        return run_spark("slope", PeerSet(name=PLAIN), settings, path=path)
    except SparkFailedError as error:
        return Section(name="slope", title="Slope", notes=(f"{OURS} is left out: {error}",))


def _measure_pairs(
    kind: str, title: str, settings: Settings, targets: Mapping[tuple[str, str], float | None]
) -> Section:
    sources = [
        {"rows": rows, "batches": batches, "path": str(make_batches(batches + write.SKIPPED, rows, FILES))}
        for rows, batches in zip(settings.batch_rows, settings.batches, strict=True)
    ]
    try:
        found = run_spark(kind, PeerSet(name=PLAIN), settings, sources=sources)
    except SparkFailedError as error:
        return Section(name=kind, title=title, notes=(f"{OURS} is left out: {error}",))
    checks = []
    for rows in settings.batch_rows:
        for figure in (write.P50, write.P95, write.CPU):
            checks += compare_times(
                write.work_name(rows, figure),
                found.series,
                targets if figure == write.P50 else dict.fromkeys(targets),
            )
    return replace(found, checks=tuple(checks))


def compare_times(work: str, series: Sequence[Series], targets: Mapping[tuple[str, str], float | None]) -> list[Check]:
    """Return our time as a multiple of each named peer's, in every session with both."""
    checks = []
    for (our_name, peer_name), at_most in targets.items():
        for session in dict.fromkeys(each.session for each in series):
            ours = find_series(series, work, our_name, session)
            peer = find_series(series, work, peer_name, session)
            if ours and peer:
                checks.append(time_next_to(ours, peer, at_most=at_most))
    return checks
