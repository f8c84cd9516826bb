"""Requests of operations to an object store: how many are sequential, and the time with a delay for each."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from tests.support.counted_requests import counted_requests, memory_store

from bench.measure import Series
from bench.result import OURS, Check, Section
from penstock import Catalog
from penstock.table.metadata_cache import clear_metadata_cache

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.settings import Settings
    from penstock import Table

DELAY_SECONDS = 0.03
FILES = 105


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation on a table of 105 files, with the maximum number of sequential requests."""

    name: str
    most: int
    run: Callable[[Table], object]
    is_fresh: bool = True
    buckets: int | None = None
    files: int = FILES


OPERATIONS = (
    Operation("append, handle in use", 5, lambda table: table.append(rows(0)), is_fresh=False, files=5),
    Operation("append, fresh handle", 11, lambda table: table.append(rows(0)), files=5),
    Operation("append to 8 buckets", 6, lambda table: table.append(rows(0)), is_fresh=False, buckets=8, files=5),
    Operation("plan a read", 5, lambda table: table.explain()),
    Operation("read", 12, lambda table: table.to_arrow()),
    Operation("snapshots()", 8, lambda table: table.snapshots()),
    Operation("compact", 20, lambda table: table.compact()),
    Operation(
        "expire 100 snapshots", 40, lambda table: table.expire_snapshots(retain_max=5, retain_min=1, older_than=0)
    ),
    Operation("find orphans, 3 snapshots", 5, lambda table: table.remove_orphan_files(), buckets=35, files=3),
)


def rows(first: int, count: int = 1000) -> pa.Table:
    """Return some rows."""
    return pa.table({"id": pa.array(range(first, first + count), pa.int64()), "name": ["x"] * count})


def measure(_settings: Settings) -> Section:
    """Count the requests of each operation in memory, and time it with a delay for each request."""
    checks, series = [], []
    for operation in OPERATIONS:
        total, serial, _ = run(operation, 0.0)
        checks.append(
            Check(name=f"{operation.name}, in turn", values=(serial,), unit="requests", at_most=operation.most)
        )
        checks.append(Check(name=f"{operation.name}, all", values=(total,), unit="requests"))
        *_, seconds = run(operation, DELAY_SECONDS)
        series.append(Series(work=operation.name, contender=OURS, session="", seconds=(seconds,)))
    title = f"Requests to an object store; times where each takes {DELAY_SECONDS * 1000:.0f} ms"
    return Section(name="requests", title=title, series=tuple(series), checks=tuple(checks))


def run(operation: Operation, delay_seconds: float) -> tuple[int, int, float]:
    """Return the number of requests of an operation, how many of them are sequential, and its time in seconds."""
    file_io = memory_store(f"bench-{uuid.uuid4()}")
    catalog = Catalog(f"{file_io.settings.address.root}/warehouse", dict(file_io.settings.options))
    catalog.create_database("db")
    options = {"snapshot.num-retained.max": "1000"}
    if operation.buckets is not None:
        options |= {"bucket": str(operation.buckets), "bucket-key": "id"}
    table = catalog.create_table("db.t", "id BIGINT, name STRING", options=options)
    for number in range(operation.files):
        table.append(rows(number * 1000))
    if operation.is_fresh:
        clear_metadata_cache()
        table = catalog.load_table("db.t")
    started = time.perf_counter()
    with counted_requests(file_io, delay_seconds=delay_seconds) as counts:
        operation.run(table)
    return counts.total, counts.serial, time.perf_counter() - started
