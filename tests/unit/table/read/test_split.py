from __future__ import annotations

import math
import pickle

import pytest
from tests.unit.table.metadata_tables import MemoryTable

from penstock.format.manifest.entry import DataFileMeta
from penstock.format.types.data_types import INT, STRING, DataField
from penstock.options import ReadOptions
from penstock.predicate.parse import parse_filter
from penstock.table.read.scan import plan_scan
from penstock.table.read.split import DataSplit, pack_files, plan_splits, value_order
from penstock.table.ref import ExternalPaths


def file(size: int, sequence: int = 0) -> DataFileMeta:
    return DataFileMeta(
        file_name=f"{size}-{sequence}",
        file_size=size,
        row_count=1,
        min_sequence_number=sequence,
        max_sequence_number=sequence,
        schema_id=0,
    )


@pytest.mark.parametrize(
    ("sizes", "packs"),
    [
        ([100, 30, 1, 1, 130, 2], [[100], [30, 1, 1], [130], [2]]),
        ([], []),
        ([500], [[500]]),
        ([1] * 33, [[1] * 32, [1]]),
        ([64, 64, 1], [[64, 64], [1]]),
    ],
)
def test_files_are_packed_in_order_up_to_the_target(sizes: list[int], packs: list[list[int]]) -> None:
    packed = pack_files([file(size) for size in sizes], target_bytes=128, open_file_cost_bytes=4)
    assert [[each.file_size for each in pack] for pack in packed] == packs


def splits_of(table: MemoryTable, **options: str) -> tuple[DataSplit, ...]:
    plan = plan_scan(table.store, table.ref, table.snapshots[-1])
    return plan_splits(table.ref, plan, ReadOptions.parse(options))


def test_files_of_a_bucket_are_read_in_write_order() -> None:
    table = MemoryTable(options={"bucket": "2", "bucket-key": "id"})
    numbers = {"third": 20, "first": 0, "second": 10, "tie": 10}
    table.commit(
        *(
            table.entry(table.file(name, min_sequence_number=number), bucket=1, total_buckets=2)
            for name, number in numbers.items()
        )
    )
    (split,) = splits_of(table)
    names = [each.file_name.partition(".")[0] for each in split.files]
    assert names == ["first", "second", "tie", "third"]
    assert (split.bucket, split.total_buckets, split.snapshot_id, split.row_count) == (1, 2, 1, 40)


def test_splits_never_mix_buckets_or_partitions() -> None:
    table = MemoryTable(partition_keys=("dt",))
    table.commit(*(table.entry(table.file(f"{dt}{b}"), [dt], bucket=b, total_buckets=2) for dt in "xy" for b in (1, 0)))
    found = [(split.values, split.bucket, len(split.files)) for split in splits_of(table)]
    assert found == [(("x",), 0, 1), (("x",), 1, 1), (("y",), 0, 1), (("y",), 1, 1)]


def test_options_of_the_table_cut_the_splits() -> None:
    table = MemoryTable(options={"source.split.target-size": "2 kb", "source.split.open-file-cost": "1 kb"})
    table.commit(*(table.entry(table.file(str(number))) for number in range(4)))
    plan = plan_scan(table.store, table.ref, table.snapshots[-1])
    assert [len(split.files) for split in plan_splits(table.ref, plan)] == [2, 2]


def test_partitions_follow_their_earliest_file_or_their_value() -> None:
    table = MemoryTable(partition_keys=("dt",))
    created = {"b": 2, "a": 3, None: 4, "c": 1}
    table.commit(
        *(table.entry(table.file(str(dt), creation_millis=millis), [dt]) for dt, millis in created.items()),
        table.entry(table.file("late", creation_millis=9), ["c"]),
    )
    assert [split.values[0] for split in splits_of(table)] == ["c", "b", "a", None]
    by_value = splits_of(table, **{"scan.plan-sort-partition": "true"})
    assert [split.values[0] for split in by_value] == [None, "a", "b", "c"]


def test_a_filter_does_not_move_partitions() -> None:
    table = MemoryTable(partition_keys=("dt",))
    early, late = (table.file(name, creation_millis=millis) for name, millis in (("early", 1), ("late", 9)))
    table.commit(table.entry(late, ["x"]), table.entry(table.file("y", creation_millis=5), ["y"]))
    table.commit(table.entry(table.file("empty", row_count=0, creation_millis=1), ["x"]), table.entry(early, ["y"]))
    plan = plan_scan(table.store, table.ref, table.snapshots[-1], parse_filter("id = 5"))
    assert [split.values for split in plan_splits(table.ref, plan)] == [("x",), ("y",)]


def test_values_sort_by_type_with_null_first_and_nan_last() -> None:
    rows = [(math.nan,), (2.0,), (None,), (-1.0,)]
    assert sorted(rows, key=value_order)[:3] == [(None,), (-1.0,), (2.0,)]
    numbers = MemoryTable(fields=(DataField(id=0, name="n", type=INT),), partition_keys=("n",))
    numbers.commit(*(numbers.entry(numbers.file(str(n)), [n]) for n in (10, 9, -1)))
    by_value = splits_of(numbers, **{"scan.plan-sort-partition": "true"})
    assert [split.values for split in by_value] == [(-1,), (9,), (10,)]


def test_a_split_is_a_value_that_knows_its_paths() -> None:
    fields = (DataField(id=0, name="v", type=STRING), DataField(id=1, name="dt", type=STRING))
    table = MemoryTable(
        fields=fields, partition_keys=("dt",), options={"data-file.external-paths": "memory://x/far,memory://x"}
    )
    inside, outside = table.file("a"), table.file("b", external_path="memory://x/b.parquet")
    table.commit(table.entry(inside, ["p/q"], bucket=2), table.entry(outside, ["p/q"], bucket=2))
    (split,) = splits_of(table)
    assert pickle.loads(pickle.dumps(split)) == split
    external = ExternalPaths.of(table.ref.with_options({"penstock.external-paths.read": "memory://x"}))
    assert [split.path_of(each, external) for each in split.files] == [
        f"{table.location}/dt=p%2Fq/bucket-2/a.parquet",
        "memory://x/b.parquet",
    ]


def test_nothing_planned_is_nothing_to_read() -> None:
    table = MemoryTable()
    assert plan_splits(table.ref, plan_scan(table.store, table.ref, None)) == ()
