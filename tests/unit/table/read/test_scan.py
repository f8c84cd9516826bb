from __future__ import annotations

import time
from dataclasses import replace

import pytest
from tests.unit.table.metadata_tables import FIELDS, MemoryTable

from penstock.errors import FormatError, UnsupportedFeatureError
from penstock.format.layout import TableLayout
from penstock.format.manifest.entry import FileKind
from penstock.format.manifest.stats import ColumnStats
from penstock.format.row.bucket import bucket_of
from penstock.format.types.data_types import BIGINT, DOUBLE, INT, STRING, DataField, time_type, timestamp_type
from penstock.predicate.parse import parse_filter
from penstock.predicate.tree import TRUE, col
from penstock.table.inspect.explain import explain_plan
from penstock.table.read.scan import ScanPlan, live_entries, plan_scan
from penstock.table.ref import FileLocator
from penstock.table.store import MetadataStore
from penstock.testing.file_io import RecordingFileIO


def names(plan: ScanPlan) -> list[str]:
    return [entry.file.file_name.removesuffix(".parquet") for entry in plan.entries]


def scanned(table: MemoryTable, where: str) -> list[str]:
    return names(plan_scan(table.store, table.ref, table.snapshots[-1], parse_filter(where)))


def ids(low: int, high: int) -> dict[str, ColumnStats]:
    return {"id": ColumnStats(min=low, max=high, null_count=0)}


def test_live_files_are_what_was_added_and_not_deleted() -> None:
    table = MemoryTable()
    first, second = table.file("a"), table.file("b")
    table.commit(table.entry(first), table.entry(second))
    table.commit(table.entry(first, kind=FileKind.DELETE), table.entry(table.file("c")))
    plans = [plan_scan(table.store, table.ref, snapshot) for snapshot in table.snapshots]
    assert [names(plan) for plan in plans] == [["a", "b"], ["b", "c"]]
    assert plans[1].funnel.files_total == 2
    assert (plans[1].file_count, plans[1].row_count) == (2, 20)


def test_a_delete_takes_back_its_own_file_only() -> None:
    table = MemoryTable(partition_keys=("dt",))
    file = table.file("a")
    table.commit(table.entry(file, ["x"]), table.entry(file, ["y"]))
    table.commit(table.entry(file, ["x"], kind=FileKind.DELETE))
    plan = plan_scan(table.store, table.ref, table.snapshots[-1])
    assert [partition.values for partition in plan.partitions] == [("y",)]


def test_a_file_that_comes_back_is_live_once() -> None:
    table = MemoryTable()
    entry = table.entry(table.file("a"))
    gone = replace(entry, kind=FileKind.DELETE)
    for again in (replace(entry), entry):
        assert live_entries([entry, gone, again]) == [entry]
    assert live_entries([entry, gone]) == []
    with pytest.raises(FormatError, match="added twice"):
        live_entries([entry, replace(entry)])


def test_without_a_snapshot_there_is_nothing_to_read() -> None:
    table = MemoryTable()
    plan = plan_scan(table.store, table.ref, None)
    assert plan.entries == ()
    assert "nothing was committed" in explain_plan(plan)


def test_partitions_are_pruned_exactly_nulls_included() -> None:
    table = MemoryTable(partition_keys=("dt",))
    table.commit(*(table.entry(table.file(str(value)), [value]) for value in ("a", "b", None)))
    assert scanned(table, "dt = 'a'") == ["a"]
    assert scanned(table, "dt <> 'a'") == ["b"]
    assert scanned(table, "dt IS NULL") == ["None"]
    assert scanned(table, "dt = 'a' OR id = 5") == ["a", "b", "None"]
    assert scanned(table, "dt = 'a' AND id = 5") == ["a"]
    assert scanned(table, "dt = 'zzz'") == []


def test_what_partitions_answer_is_not_asked_of_rows() -> None:
    table = MemoryTable(partition_keys=("dt",))
    table.commit(*(table.entry(table.file(value), [value]) for value in ("a", "b")))
    plan = plan_scan(table.store, table.ref, table.snapshots[-1], parse_filter("dt = 'a' OR id = 5"))
    assert [partition.rest.root for partition in plan.partitions] == [TRUE, col("id") == 5]


def test_manifests_of_other_partitions_are_not_read() -> None:
    table = MemoryTable(partition_keys=("dt",))
    for value in ("a", "b", "c", None):
        table.commit(table.entry(table.file(str(value)), [value]))
    recording = RecordingFileIO(table.file_io)
    store = MetadataStore(replace(table.ref, file_io=recording))
    plan = plan_scan(store, table.ref, table.snapshots[-1], parse_filter("dt >= 'b'"))
    assert names(plan) == ["b", "c"]
    assert (plan.funnel.manifests_read, plan.funnel.manifests_total) == (2, 4)
    assert len(recording.calls) == 4  # two lists, two manifests
    assert plan.funnel.files_total == 4


def test_a_filter_that_is_never_true_reads_no_manifest() -> None:
    table = MemoryTable()
    table.commit(table.entry(table.file("a")))
    plan = plan_scan(table.store, table.ref, table.snapshots[-1], parse_filter("id = 1 AND FALSE"))
    assert plan.entries == ()
    assert plan.funnel.manifests_read == 0


def bucketed(total: int = 4) -> MemoryTable:
    table = MemoryTable(options={"bucket": str(total), "bucket-key": "id,name"})
    entries = (table.entry(table.file(str(bucket)), bucket=bucket, total_buckets=total) for bucket in range(total))
    table.commit(*entries)
    return table


def expected_buckets(keys: list[tuple[object, object]], total: int = 4) -> list[str]:
    return sorted({str(bucket_of(key, [BIGINT, STRING], total)) for key in keys})


def test_buckets_are_pruned_when_the_whole_key_is_pinned() -> None:
    table = bucketed()
    assert scanned(table, "id = 5 AND name = 'x'") == expected_buckets([(5, "x")])
    assert scanned(table, "id IN (5, 6) AND name = 'x'") == expected_buckets([(5, "x"), (6, "x")])
    assert scanned(table, "id = 5 AND name IS NULL") == expected_buckets([(5, None)])
    assert scanned(table, "id = 5") == ["0", "1", "2", "3"]
    assert scanned(table, "id = 5 AND name > 'x'") == ["0", "1", "2", "3"]


def test_each_files_own_number_of_buckets_counts() -> None:
    table = bucketed()
    table.put_schema(replace(table.schema, id=1, options=(("bucket", "8"), ("bucket-key", "id,name"))))
    key = next(number for number in range(99) if bucket_of([number, "x"], [BIGINT, STRING], 8) >= 4)
    (new,) = expected_buckets([(key, "x")], 8)
    wanted = table.entry(table.file("new"), bucket=int(new), total_buckets=8)
    other = table.entry(table.file("other"), bucket=int(new) - 4, total_buckets=8)
    table.commit(wanted, other)
    assert scanned(table, f"id = {key} AND name = 'x'") == [*expected_buckets([(key, "x")]), "new"]


def test_manifests_of_other_buckets_are_not_read() -> None:
    table = MemoryTable(options={"bucket": "4", "bucket-key": "id"})
    for bucket in range(4):
        table.commit(table.entry(table.file(str(bucket)), bucket=bucket, total_buckets=4))
    plan = plan_scan(table.store, table.ref, table.snapshots[-1], col("id") == 7)
    assert names(plan) == [str(bucket_of([7], [BIGINT], 4))]
    assert plan.funnel.manifests_read == 1


@pytest.mark.parametrize("data_type", [DOUBLE])
def test_buckets_of_keys_with_several_spellings_of_one_value_stay(data_type: object) -> None:
    fields = (DataField(id=0, name="k", type=data_type),)  # type: ignore[arg-type]
    table = MemoryTable(fields=fields, options={"bucket": "4", "bucket-key": "k"})
    table.commit(*(table.entry(table.file(str(bucket)), bucket=bucket, total_buckets=4) for bucket in range(4)))
    assert scanned(table, "k = 0.0") == ["0", "1", "2", "3"]


@pytest.mark.parametrize("commits", [1, 4])
def test_files_written_before_the_key_was_widened_stay(commits: int) -> None:
    fields = (DataField(id=0, name="k", type=INT),)
    table = MemoryTable(fields=fields, options={"bucket": "4", "bucket-key": "k"})
    entries = [table.entry(table.file(str(bucket)), bucket=bucket, total_buckets=4) for bucket in range(4)]
    for number in range(commits):
        table.commit(*entries[number::commits])
    table.put_schema(replace(table.schema, id=1, fields=(replace(fields[0], type=BIGINT),)))
    assert scanned(table, "k = -1") == ["0", "1", "2", "3"]


def test_buckets_of_an_unaware_table_say_nothing() -> None:
    table = MemoryTable(options={"bucket": "-1"})
    table.commit(table.entry(table.file("a")))
    assert scanned(table, "id = 5 AND name = 'x'") == ["a"]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("id = 5", ["low"]),
        ("id > 9", ["high"]),
        ("id >= 9", ["low", "high"]),
        ("id < 10", ["low"]),
        ("id BETWEEN 9 AND 10", ["low", "high"]),
        ("id IN (3, 100)", ["low"]),
        ("id <> 5", ["low", "high"]),
        ("id IS NULL", []),
        ("id IS NOT NULL", ["low", "high"]),
        ("NOT id > 9", ["low"]),
        ("name = 'x'", ["low", "high"]),
        ("id = 5 OR name = 'x'", ["low", "high"]),
        ("id = 50", []),
    ],
)
def test_files_are_pruned_by_statistics(where: str, expected: list[str]) -> None:
    table = MemoryTable()
    table.commit(table.entry(table.file("low", ids(0, 9))), table.entry(table.file("high", ids(10, 19))))
    assert scanned(table, where) == expected


def test_truncated_texts_still_bound() -> None:
    table = MemoryTable()
    stats = {"name": ColumnStats(min="a" * 20, max="c" * 20, null_count=0)}
    table.commit(table.entry(table.file("f", stats)))
    assert scanned(table, f"name = '{'c' * 20}'") == ["f"]
    assert scanned(table, f"name = '{'a' * 20}'") == ["f"]
    assert scanned(table, "name = 'a'") == []
    assert scanned(table, "name LIKE 'cc%'") == ["f"]
    assert scanned(table, "name LIKE 'd%'") == []


def test_files_without_statistics_or_rows() -> None:
    table = MemoryTable()
    empty = replace(table.file("empty", ids(0, 9)), row_count=0)
    table.commit(table.entry(table.file("unknown")), table.entry(empty))
    assert scanned(table, "id = 500") == ["unknown"]


def test_statistics_follow_the_field_id_through_a_rename() -> None:
    table = MemoryTable()
    table.commit(table.entry(table.file("old", ids(0, 9))))
    renamed = (replace(FIELDS[0], name="key"), replace(FIELDS[1], name="id"), FIELDS[2])
    table.put_schema(replace(table.schema, id=1, fields=renamed))
    assert scanned(table, "key = 50") == []
    assert scanned(table, "key = 5") == ["old"]
    assert scanned(table, "id = '50'") == ["old"]


def test_a_column_that_a_file_lacks_is_all_null_there() -> None:
    table = MemoryTable()
    table.commit(table.entry(table.file("old", ids(0, 9))))
    table.put_schema(replace(table.schema, id=1, fields=(*FIELDS, DataField(id=3, name="new", type=BIGINT))))
    assert scanned(table, "new = 1") == []
    assert scanned(table, "new IS NULL") == ["old"]


def test_a_changed_type_makes_statistics_unknown_unless_the_cast_changes_no_value() -> None:
    fields = (DataField(id=0, name="a", type=INT), DataField(id=1, name="b", type=INT))
    table = MemoryTable(fields=fields)
    stats = {"a": ColumnStats(min=0, max=9, null_count=0), "b": ColumnStats(min=0, max=9, null_count=0)}
    table.commit(table.entry(table.file("old", stats)))
    widened = (replace(fields[0], type=BIGINT), replace(fields[1], type=STRING))
    table.put_schema(replace(table.schema, id=1, fields=widened))
    assert scanned(table, "a = 50") == []
    assert scanned(table, "b = '50'") == ["old"]


def test_orc_statistics_of_timestamps_are_not_trusted() -> None:
    fields = (DataField(id=0, name="ts", type=timestamp_type(3)), DataField(id=1, name="at", type=time_type(3)))
    table = MemoryTable(fields=fields)
    stats = {name: ColumnStats(min=0, max=0, null_count=0) for name in ("ts", "at")}
    table.commit(*(table.entry(table.file(name, stats, file_name=name)) for name in ("f.orc", "g.parquet")))
    assert scanned(table, "ts > TIMESTAMP '2000-01-01'") == ["f.orc"]
    assert scanned(table, "at > TIME '10:00:00'") == []


def test_damaged_statistics_only_cost_work() -> None:
    table = MemoryTable()
    file = table.file("f", ids(0, 9))
    table.commit(table.entry(replace(file, value_stats_cols=("id", "name", "dt"))))
    assert scanned(table, "id = 50") == ["f"]


def test_files_created_before_a_time_can_be_left_out() -> None:
    table = MemoryTable()
    old, new = (table.file(name, creation_millis=millis) for name, millis in (("old", 0), ("new", 10**12)))
    table.commit(table.entry(old), table.entry(new))
    plan = plan_scan(table.store, table.ref, table.snapshots[-1], created_from_millis=5 * 10**11)
    assert names(plan) == ["new"]


def test_the_funnel_shows_what_each_step_left() -> None:
    table = MemoryTable(partition_keys=("dt",), options={"bucket": "2", "bucket-key": "id"})
    bucket = bucket_of([5], [BIGINT], 2)
    table.commit(
        table.entry(table.file("a", ids(0, 9)), ["x"], bucket=bucket, total_buckets=2),
        table.entry(table.file("b", ids(10, 19)), ["x"], bucket=bucket, total_buckets=2),
        table.entry(table.file("c", ids(0, 9)), ["x"], bucket=1 - bucket, total_buckets=2),
        table.entry(table.file("d", ids(0, 9)), ["y"], bucket=bucket, total_buckets=2),
        total_record_count=40,
    )
    plan = plan_scan(table.store, table.ref, table.snapshots[-1], parse_filter("dt = 'x' AND id = 5"))
    assert [(s.name, s.partitions, s.buckets, s.files, s.bytes, s.rows) for s in plan.funnel.stages] == [
        ("live", 2, 3, 4, 4000, 40),
        ("partition", 1, 2, 3, 3000, 30),
        ("bucket", 1, 1, 2, 2000, 20),
        ("statistics", 1, 1, 1, 1000, 10),
    ]
    text = explain_plan(plan)
    for words in ("snapshot 1", "1 of 1 read", "live files: 4, rows: 40", "`dt` = 'x'", "filtered by row: id"):
        assert words in text


def test_paths_follow_the_layout_options() -> None:
    table = MemoryTable(partition_keys=("dt",), options={"data-file.path-directory": "data"})
    external = table.file("e", external_path="memory://elsewhere/e.parquet")
    table.commit(table.entry(table.file("a"), ["x y"], bucket=3), table.entry(external, ["x y"]))
    (partition,) = plan_scan(table.store, table.ref, table.snapshots[-1]).partitions
    locator = FileLocator.of(table.ref)
    assert [locator.recorded_path(entry.partition, entry.bucket, entry.file) for entry in partition.entries] == [
        f"{table.location}/data/dt=x y/bucket-3/a.parquet",
        "memory://elsewhere/e.parquet",
    ]


def test_deletion_vectors_are_refused_once_there_are_some(index_manifest: bytes, empty_index_manifest: bytes) -> None:
    table = MemoryTable(options={"deletion-vectors.enabled": "true"})
    for name, data in (("index-manifest-0", empty_index_manifest), ("index-manifest-1", index_manifest)):
        table.file_io.write(TableLayout(table.location).manifest_path(name), data)
    table.commit(table.entry(table.file("a")), index_manifest="index-manifest-0")
    assert names(plan_scan(table.store, table.ref, table.snapshots[-1])) == ["a"]
    table.commit(index_manifest="index-manifest-1")
    with pytest.raises(UnsupportedFeatureError, match=r"shop.orders, snapshot 2: .* deletion vectors"):
        plan_scan(table.store, table.ref, table.snapshots[-1])


def test_twenty_thousand_files_are_planned_in_little_time() -> None:
    table = MemoryTable(partition_keys=("dt",))
    file = table.file("f", ids(0, 9))
    entries = [
        table.entry(replace(file, file_name=f"data-{number}.parquet"), [f"2024-{number % 100}"])
        for number in range(20_000)
    ]
    table.commit(*entries)
    started = time.process_time()
    plan = plan_scan(table.store, table.ref, table.snapshots[-1])
    assert plan.file_count == 20_000
    # It takes 0.05 s; this only catches work per file that should not be there.
    assert time.process_time() - started < 1


@pytest.mark.parametrize("minimum", [0, 10**9])
def test_a_file_that_was_added_again_is_no_error_for_a_plan_that_skips_the_manifest_of_its_deletion(
    minimum: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.table.read.scan.MIN_COLUMNS", minimum)
    table = MemoryTable(partition_keys=("dt",))
    again, other, more = (table.file(name) for name in ("again", "other", "more"))
    table.commit(table.entry(again, ["b"]), table.entry(other, ["a"]))
    table.commit(table.entry(again, ["b"], kind=FileKind.DELETE))
    table.commit(table.entry(again, ["b"]), table.entry(more, ["a"]))
    assert scanned(table, "dt = 'a'") == ["other", "more"]
    assert scanned(table, "dt = 'b'") == ["again"]
    table.commit(table.entry(again, ["b"]))
    assert scanned(table, "dt = 'a'") == ["other", "more"]
    with pytest.raises(FormatError, match="added twice"):
        scanned(table, "dt = 'b'")
