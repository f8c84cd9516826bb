"""Which runs of files are clustered, and the level of the result, by examples that Java Paimon 1.4.2 decides alike."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock.api.catalog import Catalog
from penstock.errors import InvalidOptionError, UnsupportedFeatureError
from penstock.format.manifest.entry import DataFileMeta
from penstock.format.snapshot import CommitKind
from penstock.options import ClusteringOptions
from penstock.table.actions.changes import open_committer
from penstock.table.commit.delta import CommitRequest
from penstock.table.compact.cluster import order_of, pick, runs_of
from penstock.table.message import CommitMessage
from penstock.table.read.live import load_live_entries

if TYPE_CHECKING:
    from penstock.api.table import Table

_NUMBERS = itertools.count()


def file(level: int, size: int, first: int = 0) -> DataFileMeta:
    return DataFileMeta(
        file_name=f"data-{next(_NUMBERS)}.parquet",
        file_size=size,
        row_count=1,
        min_sequence_number=first,
        max_sequence_number=first,
        schema_id=0,
        level=level,
    )


def test_a_level_is_one_run_and_each_new_file_another_in_the_order_of_numbers() -> None:
    files = [file(5, 10), file(0, 1, first=3), file(2, 4), file(0, 2, first=1), file(5, 11)]
    assert runs_of(files) == [(files[3],), (files[1],), (files[2],), (files[0], files[4])]


@pytest.mark.parametrize(
    ("sizes", "picked"),
    [
        ({0: [1, 1, 1, 1]}, None),  # fewer runs than the trigger
        ({0: [1, 1, 1, 1, 1]}, (5, 5)),  # rule 1: four times as large as the last
        ({0: [10, 10, 10, 10], 5: [1_000]}, (4, 4)),  # rule 2 stops before the large one, whose level is 5
        ({0: [10, 10, 10, 10], 5: [20, 19]}, (5, 5)),  # rule 1: more than twice as large as the last
        ({0: [10, 10, 10, 10], 5: [20, 20]}, (5, 5)),  # rule 2 reaches the last
        ({0: [10, 20, 500], 3: [900], 5: [5_000]}, None),  # each is larger than those before, and five are allowed
        ({0: [10, 20, 500, 900], 3: [4_000], 5: [9_000]}, (5, 3)),  # rule 3, and none is left at level 0
        ({0: [10, 10, 10, 10], 1: [1_000], 5: [9_000]}, (5, 1)),  # no output at level 0
    ],
)
def test_the_first_rule_that_applies_decides(sizes: dict[int, list[int]], picked: tuple[int, int] | None) -> None:
    runs = runs_of([file(level, size) for level, each in sizes.items() for size in each])
    assert pick(runs, ClusteringOptions()) == picked


def test_auto_chooses_the_order_by_the_number_of_columns() -> None:
    catalog = Catalog(f"memory://clusters-{next(_NUMBERS)}")
    catalog.create_database("db")
    table = catalog.create_table("db.t", "a INT, b INT, c INT, d INT, e INT, p INT", partition_by=["p"])

    def chosen(columns: str, strategy: str = "auto") -> tuple[str, int]:
        options = {"clustering.columns": columns, "clustering.strategy": strategy}
        order = order_of(table._ref.with_options(options))
        return str(order.strategy), len(order.columns)

    assert [chosen(names) for names in ("a", "a, b", "a,b,c,d", "a,b,c,d,e")] == [
        ("order", 1),
        ("zorder", 2),
        ("zorder", 4),
        ("hilbert", 5),
    ]
    # Java counts the partition columns, too; of one column, any curve is the order.
    assert [chosen(names) for names in ("a,p", "a,b,p", "a,b,c,d,p")] == [("order", 1), ("zorder", 2), ("hilbert", 4)]
    assert chosen("a,p", "hilbert") == ("order", 1)
    assert chosen("a,b", "hilbert") == ("hilbert", 2)


def test_partitions_without_rows_for_long_are_added_to_those_that_are_named() -> None:
    catalog = Catalog(f"memory://clusters-{next(_NUMBERS)}")
    catalog.create_database("db")
    options = {"clustering.incremental": "true", "clustering.columns": "k"}
    table = catalog.create_table("db.t", "k INT, p STRING", partition_by=["p"], options=options)
    for p in "abc":
        table.append(pa.table({"k": pa.array([1], pa.int32()), "p": [p]}))

    def planned(**more: str) -> dict[str, int]:
        result = table.compact(dry_run=True, partitions=[{"p": "c"}], options=more)
        return {row.partition: row.files_in for row in result.partitions}

    idle = {"clustering.history-partition.idle-to-full-sort": "0 s"}
    assert planned() == {"p=c": 0}
    assert planned(**{"clustering.history-partition.idle-to-full-sort": "1 h"}) == {"p=c": 0}
    assert planned(**idle) == {"p=c": 0, "p=a": 1, "p=b": 1}
    assert planned(**idle, **{"clustering.history-partition.limit": "1"}) == {"p=c": 0, "p=a": 1}


def clustered(columns: str = "k INT, p STRING", **options: str) -> Table:
    catalog = Catalog(f"memory://clusters-{next(_NUMBERS)}")
    catalog.create_database("db")
    stored = {"clustering.incremental": "true", "clustering.columns": "k", **options}
    return catalog.create_table("db.t", columns, partition_by=["p"], options=stored)


def append(table: Table, p: str, *values: int) -> None:
    table.append(pa.table({"k": pa.array(values, pa.int32()), "p": [p] * len(values)}))


def move_files(table: Table, **changes: Any) -> None:
    """Replace every file by itself with changes, in one COMPACT commit."""
    committer = open_committer(table._ref)
    snapshot = committer.store.load_latest_snapshot()
    assert snapshot is not None
    messages = tuple(
        CommitMessage(
            partition=entry.partition,
            bucket=entry.bucket,
            total_buckets=entry.total_buckets,
            compact_before=(entry.file,),
            compact_after=(replace(entry.file, **changes),),
        )
        for entry in load_live_entries(committer.store, snapshot).values()
    )
    committer.commit(
        CommitRequest(commit_user="made up", kind=CommitKind.COMPACT, commit_identifier=1, messages=messages)
    )


def test_a_partition_that_was_just_clustered_is_no_history() -> None:
    table = clustered()
    for p in "ab":
        append(table, p, 1)
    move_files(table, level=3, creation_millis=0)  # that of the oldest input
    idle = {"clustering.history-partition.idle-to-full-sort": "1 h"}
    result = table.compact(dry_run=True, partitions=[{"p": "b"}], options=idle)
    assert [(row.partition, row.files_in) for row in result.partitions] == [("p=b", 0)]


def test_buckets_are_clustered_one_by_one_and_without_history() -> None:
    buckets = {"bucket": "2", "bucket-key": "k", "bucket-append-ordered": "false"}
    table = clustered(**buckets, **{"num-sorted-run.compaction-trigger": "3"})
    for p, values in (("a", (1, 2, 3, 4)), ("a", (1,)), ("a", (1,)), ("a", (1,)), ("b", (1, 2, 3, 4))):
        append(table, p, *values)

    def planned(**request: Any) -> dict[str, int]:
        return {row.partition: row.files_in for row in table.compact(dry_run=True, **request).partitions}

    # One bucket has four files, the other one.
    assert planned() == {"p=a": 4, "p=b": 0}
    assert planned(strategy="full") == {"p=a": 5, "p=b": 2}
    idle = {"clustering.history-partition.idle-to-full-sort": "0 s"}
    assert planned(partitions=[{"p": "a"}], options=idle) == {"p=a": 4}
    debt = {row["partition"]: row["waiting_file_count"] for row in table.inspect.compaction_debt().to_pylist()}
    assert sorted(debt.values()) == [0, 4]


def test_full_sorts_files_with_many_deleted_rows_again() -> None:
    table = clustered(**{"deletion-vectors.enabled": "true", "compaction.delete-ratio-threshold": "0"})
    for p in "ab":
        append(table, p, 1, 2, 3)
    move_files(table, level=5)

    def planned(**options: str) -> dict[str, int]:
        result = table.compact(dry_run=True, strategy="full", options=options)
        return {row.partition: row.files_in for row in result.partitions}

    assert planned() == {"p=a": 0, "p=b": 0}
    assert planned(**{"compaction.force-rewrite-all-files": "true"}) == {"p=a": 1, "p=b": 1}
    table.delete("p = 'a' AND k = 1")
    assert planned() == {"p=a": 1, "p=b": 0}
    assert planned(**{"compaction.delete-ratio-threshold": "0.5"}) == {"p=a": 0, "p=b": 0}


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ("k INT, p STRING", {"num-levels": "1"}, "'num-levels' = '1' leaves no level"),
        ("k INT, p STRING", {"clustering.columns": "p"}, "names partition columns alone"),
        (
            "k INT, p STRING",
            {"clustering.strategy": "hilbert"},
            r"'clustering\.columns' names 'k' alone: choose 'order'",
        ),
        ("k INT, m MAP<INT, INT>, p STRING", {"clustering.columns": "m"}, "have no order"),
        ("k INT, t TIMESTAMP(9), p STRING", {}, r"with Paimon on Flink, or set 'clustering\.incremental' = 'false'"),
    ],
)
def test_what_cannot_be_clustered_has_no_debt_either(columns: str, options: dict[str, str], message: str) -> None:
    table = clustered(columns, **options)
    table.append(pa.Table.from_pylist([{"k": 1, "p": "a"}], table.to_arrow().schema))
    with pytest.raises(UnsupportedFeatureError, match=message):
        table.compact(dry_run=True)
    with pytest.raises(UnsupportedFeatureError, match=message):
        table.inspect.compaction_debt()
    assert table.inspect.summary().waiting_files is None


@pytest.mark.parametrize("key", ["clustering.columns", "clustering.strategy", "sink.clustering.by-columns"])
def test_the_order_is_no_option_of_one_job(key: str) -> None:
    table = clustered()
    with pytest.raises(InvalidOptionError, match="set it in the table"):
        table.compact(dry_run=True, strategy="full", options={key: "order"})
