"""Append and scan on Spark: one process for each peer, with Penstock and Spark's own Parquet in each of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bench import changed_tables, spark_servers
from bench.data import make_lineitem, make_orders
from bench.result import (
    BY_CONNECT,
    BY_THRIFT,
    DELTA,
    ICEBERG,
    IN_DRIVER,
    OURS,
    PAIMON,
    PARQUET,
    PARQUET_BUCKETS,
    PARQUET_PARTITIONS,
    Check,
    Section,
    faster_than,
    find_series,
    time_next_to,
)
from bench.spark_compact import IN_PROCESS, SCAN_AFTER, SCAN_BEFORE
from bench.spark_compact import WORK as COMPACT
from bench.spark_dml import DELETE, HANDLE, MERGE, UPDATE
from bench.spark_job import PLAIN, PeerSet, SparkFailedError, find_peers, run_spark
from bench.spark_scan import WORK as SCAN
from bench.spark_select import (
    APPEND,
    ATTACHED,
    FIRST_ROW,
    JOIN,
    ONE_BUCKET,
    ONE_KEY,
    ONE_PARTITION,
    ONE_SORTED_KEY,
    TIME_RANGE,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bench.measure import Series
    from bench.settings import Settings

PLAIN_TABLE = f"{OURS} bucket=-1"
QUEUE = f"{OURS} bucket=8"
APPEND_TARGETS: Mapping[tuple[str, str], float | None] = {
    (PLAIN_TABLE, PARQUET): 1.0,
    (PLAIN_TABLE, DELTA): 1.4,
    (PLAIN_TABLE, ICEBERG): 1.15,
    (PLAIN_TABLE, PAIMON): None,
    (QUEUE, PARQUET): 0.9,
    (QUEUE, PARQUET_BUCKETS): 1.0,
    (QUEUE, PARQUET_PARTITIONS): 1.0,
    (QUEUE, f"{ICEBERG} bucket(8)"): 1.5,
}
SMALL_FILE_ROWS = 1_000
COMPACT_TARGETS: Mapping[tuple[str, str], float | None] = {
    (PLAIN_TABLE, DELTA): 1.5,
    (PLAIN_TABLE, ICEBERG): 1.5,
    (f"{PLAIN_TABLE}{IN_PROCESS}", DELTA): None,
    (f"{PLAIN_TABLE}{IN_PROCESS}", ICEBERG): None,
}
_SELECT_TARGETS: Mapping[str, float | None] = {DELTA: 1.0, ICEBERG: 1.0, PARQUET: None, PAIMON: None}
SCAN_TARGETS: Mapping[tuple[str, str], float | None] = {
    (PLAIN_TABLE, PARQUET): 0.95,
    (PLAIN_TABLE, DELTA): 2.0,
    (PLAIN_TABLE, ICEBERG): 1.3,
    (PLAIN_TABLE, PAIMON): None,
    (QUEUE, PARQUET): None,
    (f'{OURS} format("penstock")', PARQUET): None,
    (f'{OURS} format("penstock"), schema given', PARQUET): None,
}


def measure_append(settings: Settings) -> Section:
    """Append the seven-column table and TPC-H's lineitem."""
    sources = [{"name": "orders (7 columns)", "path": str(make_orders(settings.rows)), "key": "product_id"}]
    notes = []
    try:
        lineitem = {"name": "TPC-H lineitem", "path": str(make_lineitem(settings.scale)), "key": "l_orderkey"}
        sources.append(lineitem)
    except OSError as error:
        notes.append(f"TPC-H lineitem is left out: {error}")
    series, left_out = in_every_session("append", settings, sources=sources)
    checks = [check for source in sources for check in compare(f"append {source['name']}", series, APPEND_TARGETS)]
    return Section(
        name="append", title="Append from Spark", series=series, checks=tuple(checks), notes=(*notes, *left_out)
    )


def measure_compact(settings: Settings) -> Section:
    """Merge many small files of a scalable table into one."""
    path = str(make_orders(settings.small_files * SMALL_FILE_ROWS))
    series, notes = in_every_session("compact", settings, path=path)
    checks = compare(COMPACT, series, COMPACT_TARGETS)
    for after in (each for each in series if each.work == SCAN_AFTER):
        before = find_series(series, SCAN_BEFORE, after.contender, after.session)
        if before:
            checks.append(faster_than(after, before, name=f"{SCAN_AFTER} vs before: {after.contender}"))
    return Section(name="compact", title="Compaction", series=series, checks=tuple(checks), notes=notes)


def measure_sort(settings: Settings) -> Section:
    """Sort a table by two columns, and select rows by them."""
    folder = make_orders(settings.sort_rows)
    size = sum(file.stat().st_size for file in folder.glob("*.parquet"))
    # The other peers sort only with a catalog that supports Spark 4.2, of which there is none.
    peers = tuple(peer for peer in settings.peers if peer == "delta")
    series: list[Series] = []
    checks: list[Check] = []
    notes: list[str] = []
    found, left_out = find_peers("sort", replace(settings, peers=peers))
    for peer in found:
        try:
            section = run_spark("sort", peer, settings, path=str(folder), file_bytes=size // settings.sort_files)
        except SparkFailedError as error:
            notes.append(f"{peer.name} is left out: {error}")
        else:
            series += section.series
            checks += section.checks
    return Section(
        name="sort", title="Sorted tables", series=tuple(series), checks=tuple(checks), notes=(*left_out, *notes)
    )


def measure_scan(settings: Settings) -> Section:
    """Sum two columns of the seven-column table."""
    series, notes = in_every_session("scan", settings, path=str(make_orders(settings.rows)))
    checks = tuple(compare(SCAN, series, SCAN_TARGETS))
    return Section(name="scan", title="Scan from Spark", series=series, checks=checks, notes=notes)


def measure_changed(settings: Settings) -> Section:
    """Sum two columns of tables with deletion vectors, and with files of several schemas."""
    section = run_spark("changed", PeerSet(name=PLAIN), settings, path=str(make_orders(settings.rows)))
    checks = []
    for work, at_least in {changed_tables.DELETED: 0.9, changed_tables.RENAMED: 0.95}.items():
        ours, plain = (
            find_series(section.series, work, each, PLAIN)
            for each in (changed_tables.CHANGED, changed_tables.UNCHANGED)
        )
        if ours and plain:
            checks.append(faster_than(ours, plain, at_least=at_least))
    return replace(section, checks=tuple(checks))


def measure_select(settings: Settings) -> Section:
    """Select a few rows of tables with a suitable layout."""
    series, notes = in_every_session("select", settings)
    targets = {(ATTACHED, peer): at_least for peer, at_least in _SELECT_TARGETS.items()}
    works = (ONE_PARTITION, ONE_KEY, ONE_SORTED_KEY, ONE_BUCKET, TIME_RANGE, JOIN)
    checks = tuple(check for work in works for check in compare(work, series, targets))
    return Section(name="select", title="Selective scans from Spark", series=series, checks=checks, notes=notes)


def measure_dml(settings: Settings) -> Section:
    """Delete, update and merge a few rows, which rewrites their files."""
    series, notes = in_every_session("dml", settings)
    targets = {(ATTACHED, DELTA): 1.2, (ATTACHED, ICEBERG): 1.2, (HANDLE, DELTA): None, (HANDLE, ICEBERG): None}
    checks = tuple(check for work in (DELETE, UPDATE, MERGE) for check in compare(work, series, targets))
    return Section(name="dml", title="DELETE, UPDATE and MERGE", series=series, checks=checks, notes=notes)


def measure_first_row(settings: Settings) -> Section:
    """Select one row of a table of many files."""
    series, notes = in_every_session("first-row", settings)
    targets = {(ATTACHED, DELTA): 2.0, (ATTACHED, ICEBERG): None, (ATTACHED, PARQUET): None}
    checks = tuple(compare(FIRST_ROW, series, targets))
    return Section(name="first-row", title="First row of many files", series=series, checks=checks, notes=notes)


def measure_append_partitioned(settings: Settings) -> Section:
    """Append the seven-column table to 30 partitions."""
    series, notes = in_every_session("append-partitioned", settings, path=str(make_orders(settings.rows)))
    targets = {(ATTACHED, PARQUET): 1.0, (ATTACHED, DELTA): 1.4, (ATTACHED, ICEBERG): None}
    return Section(
        name="append-partitioned",
        title="Append to partitions from Spark",
        series=series,
        checks=tuple(compare(APPEND, series, targets)),
        notes=notes,
    )


def measure_servers(settings: Settings) -> Section:
    """Query in the driver and through its servers; the times of Parquet are what Spark itself takes."""
    section = run_spark("servers", PeerSet(name=PLAIN), settings, conf=spark_servers.find_ports())
    checks = []
    for work in (spark_servers.KEY, spark_servers.SUM):
        for software, at_most in ((OURS, 1.1), (PARQUET, None)):
            driver = find_series(section.series, work, f"{software} {IN_DRIVER}", PLAIN)
            for way in (BY_CONNECT, BY_THRIFT):
                client = find_series(section.series, work, f"{software} {way}", PLAIN)
                if client and driver:
                    checks.append(time_next_to(client, driver, at_most=at_most))
    return replace(section, checks=tuple(checks))


def in_every_session(kind: str, settings: Settings, **arguments: object) -> tuple[tuple[Series, ...], tuple[str, ...]]:
    """Run a job in one process for each peer; return their measurements, and one line for each omitted peer."""
    peers, notes = find_peers(kind, settings)
    series: list[Series] = []
    left_out = list(notes)
    for peer in peers:
        try:
            series += run_spark(kind, peer, settings, **arguments).series
        except SparkFailedError as error:
            left_out.append(f"{peer.name} is left out: {error}")
    return tuple(series), tuple(left_out)


def compare(work: str, series: Sequence[Series], targets: Mapping[tuple[str, str], float | None]) -> list[Check]:
    """Return how many times as fast as each named peer we are, in every session with both."""
    checks = []
    for (our_name, peer_name), at_least in targets.items():
        for session in dict.fromkeys(each.session for each in series):
            ours = find_series(series, work, our_name, session)
            peer = find_series(series, work, peer_name, session)
            if ours and peer:
                checks.append(faster_than(ours, peer, at_least=at_least))
    return checks
