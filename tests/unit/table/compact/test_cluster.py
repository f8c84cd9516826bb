"""Which runs of files are clustered, and the level of the result, by examples that Java Paimon 1.4.2 decides alike."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from penstock.api.catalog import Catalog
from penstock.format.manifest.entry import DataFileMeta
from penstock.options import ClusteringOptions
from penstock.table.compact.cluster import order_of, pick, runs_of

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
    assert chosen("a,p") == ("order", 1)
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
