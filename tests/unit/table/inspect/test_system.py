from __future__ import annotations

import datetime as dt
import uuid
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from tests.unit.table.metadata_tables import MemoryTable

from penstock import Catalog, Table
from penstock.errors import DamagedFileWarning, NotFoundError, UnsupportedFeatureError
from penstock.format.consumer import encode_consumer
from penstock.format.layout import TableLayout
from penstock.format.manifest.entry import FileKind
from penstock.format.manifest.stats import ColumnStats
from penstock.format.snapshot import CommitKind
from penstock.format.tag import Tag, encode_tag
from penstock.format.text.partitions import value_text
from penstock.format.types.data_types import BYTES, DATE, STRING, DataField
from penstock.table.inspect.system import SYSTEM_TABLES, duration_text, load_system_table

# As the reference names them, in its order.
COLUMNS = {
    "snapshots": "snapshot_id schema_id commit_user commit_identifier commit_kind commit_time base_manifest_list "
    "delta_manifest_list changelog_manifest_list total_record_count delta_record_count changelog_record_count "
    "watermark",
    "schemas": "schema_id fields partition_keys primary_keys options comment update_time",
    "options": "key value",
    "files": "partition bucket file_path file_format schema_id level record_count file_size_in_bytes min_key max_key "
    "null_value_counts min_value_stats max_value_stats min_sequence_number max_sequence_number creation_time "
    "deleteRowCount file_source",
    "partitions": "partition record_count file_size_in_bytes file_count last_update_time",
    "buckets": "partition bucket record_count file_size_in_bytes file_count last_update_time",
    "manifests": "file_name file_size num_added_files num_deleted_files schema_id min_partition_stats "
    "max_partition_stats",
    "tags": "tag_name snapshot_id schema_id commit_time record_count create_time time_retained",
    "consumers": "consumer_id next_snapshot_id",
    "branches": "branch_name create_time",
    # Ours.
    "compaction": "partition file_count small_file_count small_file_bytes waiting_file_count waiting_bytes "
    "bucket_count max_bucket_file_count last_compaction_snapshot_id",
}


@pytest.fixture
def table() -> MemoryTable:
    """Two snapshots: a file in each of two partitions, then one more in another bucket."""
    made = MemoryTable(partition_keys=("dt",), options={"bucket": "2", "bucket-key": "id"})
    stats = {"id": ColumnStats(min=1, max=9, null_count=0), "name": ColumnStats(null_count=10)}
    made.commit(
        made.entry(made.file("a", stats, creation_millis=1500), ["x"], bucket=1, total_buckets=2),
        made.entry(made.file("b"), ["y"], bucket=1, total_buckets=2),
        watermark=7,
        total_record_count=20,
        delta_record_count=20,
    )
    made.commit(
        made.entry(made.file("c", creation_millis=2500), ["x"], total_buckets=2), commit_kind=CommitKind.OVERWRITE
    )
    return made


def load(table: MemoryTable, name: str, snapshot_id: int | None = None) -> list[dict[str, Any]]:
    snapshot = None if snapshot_id is None else table.store.load_snapshot(snapshot_id)
    return load_system_table(name, table.ref, table.store, snapshot).to_pylist()


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_are_named_as_the_reference_names_them(table: MemoryTable, name: str) -> None:
    assert load_system_table(name, table.ref, table.store).column_names == COLUMNS[name].split()
    empty = MemoryTable()
    assert load_system_table(name, empty.ref, empty.store).column_names == COLUMNS[name].split()


def test_there_are_no_others(table: MemoryTable) -> None:
    assert SYSTEM_TABLES.keys() == COLUMNS.keys()
    with pytest.raises(NotFoundError, match=r"no system table '\$binlog'; there are snapshots, schemas"):
        load(table, "binlog")


def test_snapshots(table: MemoryTable) -> None:
    first, second = load(table, "snapshots")
    assert (first["snapshot_id"], first["commit_kind"], first["watermark"]) == (1, "APPEND", 7)
    assert first["commit_time"] == dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)
    assert first["base_manifest_list"] == table.snapshots[0].base_manifest_list
    assert (second["commit_kind"], second["watermark"], second["total_record_count"]) == ("OVERWRITE", None, None)


def test_schemas_show_json(table: MemoryTable) -> None:
    table.put_schema(replace(table.schema, id=1, comment="wider", time_millis=5000))
    first, second = load(table, "schemas")
    assert first["partition_keys"] == '[ "dt" ]'
    assert first["primary_keys"] == "[ ]"
    assert '"type" : "BIGINT"' in first["fields"]
    assert '"bucket-key" : "id"' in first["options"]
    assert (second["schema_id"], second["comment"]) == (1, "wider")
    assert second["update_time"] == dt.datetime(1970, 1, 1, 0, 0, 5, tzinfo=dt.UTC)


def test_options_are_those_stored(table: MemoryTable) -> None:
    ref = table.ref.with_options({"scan.mode": "latest"})
    found = load_system_table("options", ref, table.store).to_pylist()
    assert found == [{"key": "bucket", "value": "2"}, {"key": "bucket-key", "value": "id"}]


def test_files_of_the_latest_or_an_older_snapshot(table: MemoryTable) -> None:
    assert len(load(table, "files", 1)) == 2
    first, second, third = load(table, "files")
    assert first["file_path"] == f"{table.location}/dt=x/bucket-1/a.parquet"
    assert [(row["partition"], row["bucket"]) for row in (first, second, third)] == [("{x}", 1), ("{x}", 0), ("{y}", 1)]
    assert (first["file_format"], first["record_count"], first["file_size_in_bytes"]) == ("parquet", 10, 1000)
    assert first["null_value_counts"] == "{id=0, name=10}"
    assert first["min_value_stats"] == "{id=1, name=null}"
    assert first["max_value_stats"] == "{id=9, name=null}"
    assert third["min_value_stats"] == "{}"
    assert first["creation_time"] == dt.datetime(1970, 1, 1, 0, 0, 1, 500_000)  # noqa: DTZ001 - a wall clock
    assert (first["file_source"], first["deleteRowCount"]) == ("APPEND", 0)


def test_partitions_and_buckets_add_up(table: MemoryTable) -> None:
    latest = dt.datetime(1970, 1, 1, 0, 0, 2, 500_000)  # noqa: DTZ001 - a wall clock
    first, second = load(table, "partitions")
    assert first == {
        "partition": "dt=x",
        "record_count": 20,
        "file_size_in_bytes": 2000,
        "file_count": 2,
        "last_update_time": latest,
    }
    assert (second["partition"], second["file_count"], second["last_update_time"]) == ("dt=y", 1, None)
    buckets = [(row["partition"], row["bucket"], row["file_count"]) for row in load(table, "buckets")]
    assert buckets == [("{x}", 0, 1), ("{x}", 1, 1), ("{y}", 1, 1)]


def test_manifests_show_the_range_of_their_partitions(table: MemoryTable) -> None:
    first, second = load(table, "manifests")
    assert (first["num_added_files"], first["num_deleted_files"]) == (2, 0)
    assert (first["min_partition_stats"], first["max_partition_stats"]) == ("{x}", "{y}")
    assert (second["min_partition_stats"], second["max_partition_stats"]) == ("{x}", "{x}")
    table.commit(table.entry(table.file("b"), ["y"], bucket=1, total_buckets=2, kind=FileKind.DELETE))
    assert load(table, "manifests")[2]["num_deleted_files"] == 1


def test_tags_show_their_retention(table: MemoryTable) -> None:
    table.put_tag("forever", table.snapshots[0])
    limited = Tag(snapshot=table.snapshots[0], create_time=3_000_000_000, retained_seconds=Decimal(129_600))
    table.file_io.write(TableLayout(table.location).tag_path("limited"), encode_tag(limited))
    first, second = load(table, "tags")
    assert (first["tag_name"], first["create_time"], first["time_retained"]) == ("forever", None, None)
    assert second == {
        "tag_name": "limited",
        "snapshot_id": 1,
        "schema_id": 0,
        "commit_time": dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC),
        "record_count": 20,
        "create_time": dt.datetime(1970, 1, 1, 0, 0, 3),  # noqa: DTZ001 - a wall clock
        "time_retained": "PT36H",
    }


def test_consumers_show_what_they_read_next(table: MemoryTable) -> None:
    table.file_io.write(TableLayout(table.location).consumer_path("etl"), encode_consumer(7))
    assert load(table, "consumers") == [{"consumer_id": "etl", "next_snapshot_id": 7}]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [("0", "PT0S"), ("129600", "PT36H"), ("90", "PT1M30S"), ("3600.5", "PT1H0.5S"), ("129600.000000000", "PT36H")],
)
def test_durations_look_as_java_prints_them(seconds: str, text: str) -> None:
    assert duration_text(Decimal(seconds)) == text


def test_values_look_as_sql_casts_them() -> None:
    assert value_text(DataField(id=0, name="d", type=DATE), 19723) == "2024-01-01"
    assert value_text(DataField(id=0, name="b", type=BYTES), b"\x00\xff") == "0x00ff"
    assert value_text(DataField(id=0, name="s", type=STRING), None) == "null"


@pytest.mark.parametrize(
    "options", [{"scan.snapshot-id": "1"}, {"scan.version": "1"}, {"scan.timestamp-millis": "1500"}]
)
def test_what_speaks_of_one_snapshot_follows_the_position_of_its_use(
    table: MemoryTable, options: dict[str, str]
) -> None:
    ref = table.ref.with_options(options)
    for name in ("files", "partitions", "buckets", "manifests", "compaction"):
        assert load_system_table(name, ref, table.store) == load_system_table(
            name, table.ref, table.store, table.store.load_snapshot(1)
        )


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("snapshots", {"scan.snapshot-id": "1"}, "shows all there is: leave 'scan.snapshot-id' out"),
        ("files", {"incremental-between": "1,2"}, "shows one snapshot, which 'incremental-between' does not name"),
        ("files", {"scan.file-creation-time-millis": "1"}, "shows one snapshot"),
        ("files", {"scan.mode": "earliest"}, "is for streams"),
    ],
)
def test_a_position_that_a_system_table_cannot_follow_is_refused(
    table: MemoryTable, name: str, options: dict[str, str], text: str
) -> None:
    with pytest.raises(UnsupportedFeatureError, match=text):
        load_system_table(name, table.ref.with_options(options), table.store)


def new_table(columns: str) -> Table:
    catalog = Catalog(f"memory://{uuid.uuid4()}/w")
    catalog.create_database("d")
    return catalog.create_table("d.t", columns)


def test_the_audit_log_has_the_rows_with_their_kind() -> None:
    table = new_table("k INT, v STRING")
    for number in (1, 2):
        table.append([{"k": number, "v": "a"}])
    table.create_tag("one", snapshot_id=1)
    assert table.inspect.system_table("audit_log").to_pylist() == [
        {"rowkind": "+I", "k": 1, "v": "a"},
        {"rowkind": "+I", "k": 2, "v": "a"},
    ]
    assert table.inspect.system_table("audit_log", snapshot_id=1).num_rows == 1
    assert table.with_options({"scan.tag-name": "one"}).inspect.system_table("audit_log")["k"].to_pylist() == [1]
    changes = table.with_options({"incremental-between": "1,2"}).inspect.system_table("audit_log")
    assert changes.to_pylist() == [{"rowkind": "+I", "k": 2, "v": "a"}]
    assert table.inspect.system_table("ro").column_names == ["k", "v"]
    assert table.with_options({"scan.snapshot-id": "1"}).inspect.system_table("ro").num_rows == 1


@pytest.mark.parametrize("option", [{"scan.snapshot-id": "1"}, {"scan.tag-name": "one"}, {"scan.version": "one"}])
@pytest.mark.parametrize("name", [*SYSTEM_TABLES])
def test_every_system_table_takes_a_position_or_refuses_it(name: str, option: dict[str, str]) -> None:
    table = new_table("k INT")
    for number in (1, 2):
        table.append([{"k": number}])
    table.create_tag("one", snapshot_id=1)
    at = table.with_options(option)
    try:
        found = at.inspect.system_table(name)
    except UnsupportedFeatureError as error:
        assert "shows all there is: leave" in str(error)  # noqa: PT017 - either outcome is right
    else:
        assert found == table.inspect.system_table(name, snapshot_id=1)
        assert found != table.inspect.system_table(name)


def test_a_damaged_tag_is_left_out_with_its_remedy(table: MemoryTable) -> None:
    table.put_tag("good", table.snapshots[0])
    table.file_io.write(TableLayout(table.location).tag_path("bad"), b'{"id": 1')
    with pytest.warns(
        DamagedFileWarning, match="tag 'bad' is left out: .*delete the tag: penstock tag delete TABLE bad"
    ):
        assert [row["tag_name"] for row in load(table, "tags")] == ["good"]
