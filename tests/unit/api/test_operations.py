"""Compaction on demand, through the handle on a table."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.support.garbage import needed_files, stored_files

import penstock
from penstock.catalog.changes import AddColumn
from penstock.errors import InvalidFilterError, InvalidOptionError, OptionWarning, UnsupportedFeatureError
from penstock.format.snapshot import CommitKind

if TYPE_CHECKING:
    from penstock.table.compact.job import CompactionResult
    from penstock.table.compact.task import MergedFiles

NUMBERS = itertools.count()
QUEUE = {"bucket": "1", "bucket-key": "k"}


def catalog_of() -> penstock.Catalog:
    catalog = penstock.Catalog(f"memory://compact-api-{next(NUMBERS)}")
    catalog.create_database("db")
    return catalog


def filled(catalog: penstock.Catalog, options: dict[str, str], **counts: int) -> penstock.Table:
    """A commit of one row for each file."""
    table = catalog.create_table("db.t", "k BIGINT, p STRING", partition_by=["p"], options=options)
    writer = table.with_options({"compaction.min.file-num": "1000"})  # appends that merge nothing
    for p, count in counts.items():
        for number in range(count):
            writer.append(rows(number, p))
    return table


def rows(k: int, p: str) -> pa.Table:
    return pa.table({"k": pa.array([k], pa.int64()), "p": [p]})


def moved(result: CompactionResult) -> dict[str, tuple[int, int]]:
    return {row.partition: (row.files_in, row.files_out) for row in result.partitions}


@pytest.mark.parametrize("options", [{}, QUEUE], ids=["scalable", "queue"])
def test_small_files_become_one_and_the_rows_stay(options: dict[str, str]) -> None:
    table = filled(catalog_of(), options, a=7, b=1)
    before = table.to_arrow()
    done: list[MergedFiles] = []
    result = table.compact(on_done=done.append)
    assert moved(result) == {"p=a": (7, 1), "p=b": (0, 0)}
    assert [row.skipped for row in result.partitions] == [None, "too few small files"]
    assert [snapshot.commit_kind for snapshot in result.snapshots] == [CommitKind.COMPACT]
    assert len(done) == 1
    assert table.to_arrow().sort_by([("p", "ascending")]).equals(before.sort_by([("p", "ascending")]))
    assert table.compact().snapshots == ()
    assert stored_files(table._ref) == needed_files(table._ref)
    assert table.inspect.fsck(all_snapshots=True).findings == ()


def test_compaction_of_a_write_only_table_also_expires_snapshots() -> None:
    options = {"write-only": "true", "snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2"}
    table = filled(catalog_of(), options, a=7)
    assert table.snapshots().num_rows == 7
    assert moved(table.compact()) == {"p=a": (7, 1)}
    assert table.snapshots().num_rows == 2


def test_minor_compaction_merges_what_a_stream_would_have_merged() -> None:
    table = filled(catalog_of(), {}, a=6, b=3)
    assert moved(table.compact(strategy="MINOR")) == {"p=a": (6, 1), "p=b": (0, 0)}
    assert moved(table.compact(strategy="full")) == {"p=a": (0, 0), "p=b": (3, 1)}


def test_partitions_are_named_or_found_by_a_condition() -> None:
    table = filled(catalog_of(), {}, a=2, b=2, c=2, d=2)
    assert moved(table.compact(partitions=[{"p": "a"}, {"p": "b"}])) == {"p=a": (2, 1), "p=b": (2, 1)}
    assert moved(table.compact(where="p = 'c'")) == {"p=c": (2, 1)}
    assert moved(table.compact(where=pc.field("p") == "d", dry_run=True)) == {"p=d": (2, 0)}
    assert moved(table.compact(idle_time="1 h"))["p=d"] == (0, 0)
    assert moved(table.compact(idle_time="0 s"))["p=d"] == (2, 1)


def test_a_dry_run_changes_nothing() -> None:
    table = filled(catalog_of(), {}, a=4)
    before = stored_files(table._ref)
    (row,) = table.compact(dry_run=True).partitions
    assert (row.files_in, row.files_out, row.skipped) == (4, 0, None)
    assert stored_files(table._ref) == before


def test_options_of_the_job_hold_for_the_job() -> None:
    table = filled(catalog_of(), {}, a=4)
    assert moved(table.compact(options={"compaction.min.file-num": "4"}, strategy="minor")) == {"p=a": (4, 1)}
    assert "compaction.min.file-num" not in table.options
    with pytest.warns(OptionWarning, match=r"compaction\.min\.file-nums"):
        table.compact(options={"compaction.min.file-nums": "4"})


def test_arguments_that_cannot_be_are_refused() -> None:
    table = filled(catalog_of(), {}, a=4)
    with pytest.raises(InvalidOptionError, match="not by both"):
        table.compact(partitions=[{"p": "a"}], where="p = 'a'")
    with pytest.raises(InvalidOptionError, match="no partition is named"):
        table.compact(partitions=[])
    with pytest.raises(InvalidOptionError, match="expected 'minor' or 'full'"):
        table.compact(strategy="some")
    with pytest.raises(InvalidOptionError, match="a duration"):
        table.compact(idle_time="a while")
    with pytest.raises(InvalidOptionError, match="'k' is not a partition column"):
        table.compact(partitions=[{"k": 1}])
    with pytest.raises(InvalidFilterError, match="partition columns alone"):
        table.compact(where="k = 1")
    assert table.files().num_rows == 4


def test_what_a_merge_would_break_is_refused() -> None:
    table = filled(catalog_of(), {}, a=4).with_options({"clustering.incremental": "true"})
    with pytest.raises(UnsupportedFeatureError, match=r"clustering\.incremental"):
        table.compact(order_by=["k"])
    with pytest.raises(UnsupportedFeatureError, match=r"clustering\.incremental"):
        table.maintenance.compact_in_background()


def test_levels_are_planned_without_spark_and_sorted_on_it() -> None:
    options = {"clustering.incremental": "true", "clustering.columns": "k"}
    table = filled(catalog_of(), options, a=4, b=5)
    assert moved(table.compact(dry_run=True)) == {"p=a": (0, 0), "p=b": (5, 0)}
    assert moved(table.compact(dry_run=True, strategy="full")) == {"p=a": (4, 0), "p=b": (5, 0)}
    assert moved(table.compact(where="p = 'a'")) == {"p=a": (0, 0)}
    with pytest.raises(UnsupportedFeatureError, match="sorts rows on Spark"):
        table.compact()
    with pytest.raises(UnsupportedFeatureError, match=r"'clustering\.columns' names 'x'"):
        table.with_options({"clustering.columns": "x"}).compact(dry_run=True)
    with pytest.raises(UnsupportedFeatureError, match="'num-levels' = '1' leaves no level"):
        table.compact(dry_run=True, options={"num-levels": "1"})


def test_a_handle_that_does_not_know_the_newest_columns_keeps_their_values() -> None:
    catalog = catalog_of()
    table = filled(catalog, QUEUE, a=3)
    catalog.alter_table("db.t", AddColumn(column="n", type="INT"))
    catalog.load_table("db.t").append(rows(3, "a").append_column("n", pa.array([7], pa.int32())))
    assert moved(table.compact()) == {"p=a": (4, 1)}
    assert catalog.load_table("db.t").to_arrow()["n"].to_pylist() == [None, None, None, 7]


def test_partitions_that_are_to_be_dropped_for_their_age_can_be_left_out() -> None:
    options = {"partition.expiration-time": "7 d", "write-only": "true"}
    table = filled(catalog_of(), options, **{"2001-01-01": 3, "2999-01-01": 3})
    result = table.compact(options={"compaction.skip-expired-partitions": "true"})
    assert [(row.partition, row.files_in, row.skipped) for row in result.partitions] == [
        ("p=2001-01-01", 0, "expired, to be dropped"),
        ("p=2999-01-01", 3, None),
    ]
    skip = {"compaction.skip-expired-partitions": "true"}
    sorting = filled(catalog_of(), options, **{"2001-01-01": 3, "2999-01-01": 3}).compact(
        options=skip, order_by=["k"], dry_run=True
    )
    assert [(row.partition, row.files_in) for row in sorting.partitions] == [("p=2001-01-01", 0), ("p=2999-01-01", 3)]


@pytest.mark.filterwarnings("ignore::penstock.OptionWarning")  # options of other engines are among them
def test_tables_of_a_database_are_compacted_by_their_names() -> None:
    catalog = catalog_of()
    filled(catalog, {}, a=3)
    catalog.create_table(
        "db.leveled", "k BIGINT", options={"clustering.incremental": "true", "clustering.columns": "k"}
    )
    for k in range(5):
        catalog.load_table("db.leveled").append(pa.table({"k": [k]}))
    done = {each.table: each for each in catalog.compact_database("d.", including="db.*|leveled|t")}
    assert set(done) == {"db.t", "db.leveled"}
    result, error = done["db.t"].result, done["db.leveled"].error
    assert result is not None
    assert moved(result) == {"p=a": (3, 1)}
    assert isinstance(error, UnsupportedFeatureError)
    assert catalog.compact_database(excluding="db[.].*") == ()


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_rows_that_are_null_with_fields_that_must_not_be_are_rewritten(file_format: str) -> None:
    columns = (
        "id INT, a ROW<x INT NOT NULL, y ROW<z STRING NOT NULL> NOT NULL, l ARRAY<INT NOT NULL> NOT NULL, "
        "m MAP<STRING, ROW<x VARCHAR(3) NOT NULL>> NOT NULL>"
    )
    table = catalog_of().create_table("db.t", columns, options={"file.format": file_format})
    full = {"x": 1, "y": {"z": "s"}, "l": [1, 2], "m": [("k", None), ("l", {"x": "abc"})]}
    given = [{"id": 1, "a": None}, {"id": 2, "a": full}, {"id": 3, "a": None}, {"id": 4, "a": {**full, "x": 7}}]
    table.append(given[:3])
    table.append(given[3:])
    table.append(table.to_arrow(filter="id >= 3"))
    table.delete("id = 2")
    table.compact()
    found = table.to_arrow().to_pylist()
    assert sorted(found, key=lambda row: row["id"]) == [given[0], given[2], given[2], given[3], given[3]]
