"""Scans of tables that have changed, next to tables of the same rows in as many files that have not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.deletion_vectors import delete_by_vectors

import penstock
from bench.measure import race
from bench.result import OURS, Section
from bench.spark_scan import WORK, sum_two_columns
from penstock.catalog.changes import AddColumn, RenameColumn

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from bench.measure import Series
    from bench.spark_session import SparkJob

TITLE: Final = "Scan of changed tables"
DELETED: Final = f"{WORK}, of 1 % of whose rows vectors say that they are deleted"
RENAMED: Final = f"{WORK}, in files of 5 schemas"
CHANGED: Final = f"{OURS} with changes"
UNCHANGED: Final = f"{OURS} of the same rows"
_FILES: Final = 8
_DELETED_SHARE: Final = 100


def measure(spark: SparkSession, job: SparkJob) -> Section:
    """Scan both kinds of changed tables."""
    rows = pq.read_table(job.arguments["path"])
    catalog = penstock.Catalog(f"{job.folder}/changed")
    catalog.create_database("bench")
    _fill_deleted(catalog, rows)
    _fill_renamed(catalog, rows)
    found: list[Series] = []
    for work, names, columns in (
        (DELETED, ("deleted", "left"), ("price", "sales")),
        (RENAMED, ("renamed", "plain"), ("cost", "sold")),
    ):

        def load(name: str) -> Callable[[], DataFrame]:
            return lambda: catalog.load_table(f"bench.{name}").to_spark(spark)

        contenders = [
            sum_two_columns(contender, load(name), columns)
            for contender, name in zip((CHANGED, UNCHANGED), names, strict=True)
        ]
        rounds, warm_ups = 3 * job.settings.rounds, 2 * job.settings.warm_ups
        found += race(work, contenders, rounds=rounds, warm_ups=warm_ups, session=job.peer)
    return Section(name="changed", title=TITLE, series=tuple(found))


def _parts(rows: pa.Table, count: int) -> list[pa.Table]:
    size = -(-rows.num_rows // count)
    return [rows.slice(start, size) for start in range(0, rows.num_rows, size)]


def _fill_deleted(catalog: penstock.Catalog, rows: pa.Table) -> None:
    table, left = (catalog.create_table(f"bench.{name}", rows.schema) for name in ("deleted", "left"))
    chooser = np.random.default_rng(1)
    deleted: dict[str, list[int]] = {}
    for part in _parts(rows, _FILES):
        table.append(part)
        # One file for each append.
        (path,) = {str(each) for each in table.files()["file_path"].to_pylist()} - set(deleted)
        places = np.sort(chooser.choice(part.num_rows, part.num_rows // _DELETED_SHARE, replace=False))
        deleted[path] = places.tolist()
        keep = np.ones(part.num_rows, dtype=bool)
        keep[places] = False
        left.append(part.filter(pa.array(keep)))
    delete_by_vectors(table, {path.rpartition("/")[2]: found for path, found in deleted.items()})


def _fill_renamed(catalog: penstock.Catalog, rows: pa.Table) -> None:
    table = catalog.create_table("bench.renamed", rows.schema)
    changes = (
        AddColumn(column="more", type="INT"),
        RenameColumn(column="price", new_name="cost"),
        RenameColumn(column="sales", new_name="sold"),
        RenameColumn(column="more", new_name="last"),
    )
    parts = _parts(rows, len(changes) + 1)
    names = {"price": "cost", "sales": "sold"}
    for place, part in enumerate(parts):
        if place:
            table = catalog.alter_table("bench.renamed", changes[place - 1])
        known = table.arrow_schema.names
        given = part.rename_columns([names[each] if names.get(each) in known else each for each in part.schema.names])
        if place:
            given = given.append_column(known[-1], pa.nulls(part.num_rows, pa.int32()))
        table.append(given)
    plain = catalog.create_table("bench.plain", table.arrow_schema)
    for part in parts:
        final = part.rename_columns([names.get(each, each) for each in part.schema.names])
        plain.append(final.append_column("last", pa.nulls(part.num_rows, pa.int32())))
