"""Every metadata file that real engines wrote: read, written back, and found again by its path."""

import json
import re
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from penstock.format.consumer import decode_consumer, encode_consumer
from penstock.format.layout import TableLayout, format_of, partition_dir, schema_id_of, snapshot_id_of, tag_name_of
from penstock.format.schema import TableSchema, assign_field_ids, decode_schema, encode_schema, highest_field_id
from penstock.format.snapshot import decode_hint, decode_snapshot, encode_hint, encode_snapshot
from penstock.format.tag import decode_tag, encode_tag
from penstock.format.types.data_types import AtomicType, TypeRoot

DATA = Path(__file__).parent / "data"
WAREHOUSE = DATA / "warehouse"
TABLES = sorted(path.parent for path in WAREHOUSE.glob("*.db/*/schema"))
# These write null for what is absent, or keys in an order of their own.
NOT_JAVAS_TEXT = {"py142.db", "py210.db"}
WITH_NULLS = {"java131.db", "flink131.db", "flink131s.db", "spark090.db"}
every_table = pytest.mark.parametrize("table", TABLES, ids=[path.name for path in TABLES])


def files(table: Path, folder: str, prefix: str) -> Iterator[Path]:
    yield from sorted((table / folder).glob(f"{prefix}-*"))


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(member) for key, member in value.items() if member is not None}
    return [without_nulls(member) for member in value] if isinstance(value, list) else value


def in_javas_words(value: Any) -> Any:
    """Undo what pypaimon spells in its own way: ``nullable`` beside the type, parameters in a nested type's name."""
    if isinstance(value, str):
        return re.sub(r"^TIMESTAMP_LTZ\((\d)\)", r"TIMESTAMP(\1) WITH LOCAL TIME ZONE", value)
    if isinstance(value, list):
        return [in_javas_words(member) for member in value]
    if not isinstance(value, dict):
        return value
    words = {key: in_javas_words(member) for key, member in value.items() if key != "nullable"}
    if isinstance(words.get("type"), str) and words.keys() & {"element", "key"}:
        words["type"] = re.sub("<.*>", "", words["type"])
    return words


def assert_written_back(
    path: Path, decode: Callable[[bytes, str], Any], encode: Callable[[Any], bytes], *, same_text: bool
) -> None:
    data = path.read_bytes()
    written = encode(decode(data, str(path)))
    read, again = json.loads(data), json.loads(written)
    assert in_javas_words(without_nulls(read)) == without_nulls(again), path
    if same_text:
        assert written == data, path
    assert decode(written, str(path)) == decode(data, str(path))


@every_table
def test_schema_files_are_written_back_equal(table: Path) -> None:
    paths = list(files(table, "schema", "schema"))
    assert paths
    for path in paths:
        same_text = path.parts[-4] not in NOT_JAVAS_TEXT
        assert_written_back(path, decode_schema, encode_schema, same_text=same_text)
        assert decode_schema(path.read_bytes(), str(path)).id == schema_id_of(path.name)


@every_table
def test_snapshot_files_are_written_back_equal(table: Path) -> None:
    for path in files(table, "snapshot", "snapshot"):
        same_text = path.parts[-4] not in NOT_JAVAS_TEXT | WITH_NULLS
        assert_written_back(path, decode_snapshot, encode_snapshot, same_text=same_text)
        assert decode_snapshot(path.read_bytes(), str(path)).id == snapshot_id_of(path.name)


@every_table
def test_hint_files_name_snapshots_and_are_written_back_equal(table: Path) -> None:
    ids = {snapshot_id_of(path.name) for path in files(table, "snapshot", "snapshot")}
    for name, expected in (("LATEST", max), ("EARLIEST", min)):
        path = table / "snapshot" / name
        if path.exists():
            snapshot_id = decode_hint(path.read_bytes())
            assert snapshot_id == expected(ids, default=None)
            assert snapshot_id is not None
            assert encode_hint(snapshot_id) == path.read_bytes()


@pytest.mark.parametrize(
    "path", sorted(WAREHOUSE.glob("*.db/*/tag/tag-*")), ids=lambda path: f"{path.parts[-3]}-{path.name}"
)
def test_tag_files_are_written_back_equal(path: Path) -> None:
    assert_written_back(path, decode_tag, encode_tag, same_text=path.parts[-4] not in WITH_NULLS)
    assert tag_name_of(path.name)


def test_tag_with_a_retention_gives_both_times() -> None:
    path = WAREHOUSE / "flink131.db" / "f_tags" / "tag" / "tag-timed"
    tag = decode_tag(path.read_bytes(), str(path))
    since_1970 = datetime(2026, 11, 21, 3, 59, 26) - datetime(1970, 1, 1)  # noqa: DTZ001 - a wall clock
    assert tag.create_time == since_1970 // timedelta(seconds=1) * 10**9 + 600011764
    assert tag.retained_seconds == 365 * 24 * 3600


def test_consumer_files_are_written_back_equal() -> None:
    for path in WAREHOUSE.glob("*.db/*/consumer/consumer-*"):
        assert_written_back(path, decode_consumer, encode_consumer, same_text=False)


def test_every_kind_of_file_was_there_to_read() -> None:
    counts = {
        folder: len(list(WAREHOUSE.glob(f"*.db/*/{folder}/{folder}-*"))) for folder in ("schema", "snapshot", "tag")
    }
    assert counts["schema"] >= 130
    assert counts["snapshot"] >= 340
    assert counts["tag"] >= 6
    assert len(WITH_ROWS) >= 80


# pypaimon 1.4.2 numbers ROW fields from 0 again, beside the columns with the same ids.
@pytest.mark.parametrize(
    "table", [path for path in TABLES if path.name != "p14_types_parquet"], ids=lambda path: path.name
)
def test_columns_of_a_new_table_are_numbered_as_the_engines_do(table: Path) -> None:
    path = table / "schema" / "schema-0"
    schema = decode_schema(path.read_bytes(), str(path))
    assert assign_field_ids(schema.fields) == (schema.fields, schema.highest_field_id)
    assert highest_field_id(schema.fields) == schema.highest_field_id


# Partition directories of tables, paired by the partition values that Java read from the manifests


def internal_value(shown: Any, data_type: AtomicType) -> object:
    if shown is None:
        return None
    match data_type.root:
        case TypeRoot.DATE:
            return (date.fromisoformat(shown) - date(1970, 1, 1)).days
        case TypeRoot.DECIMAL:
            return Decimal(shown)
        case TypeRoot.TIMESTAMP:
            seconds, _, nanos = shown.partition(".")
            since_1970 = datetime.fromisoformat(seconds) - datetime(1970, 1, 1)  # noqa: DTZ001 - a wall clock
            return since_1970 // timedelta(seconds=1) * 10**9 + int(nanos)
        case _:
            return shown


def expected_rows(table: Path) -> Path:
    return DATA / "expected" / f"{table.name}.buckets.jsonl"


# Not: a table without rows, one of which only the schema is kept, and one that Java cannot read.
WITH_ROWS = [table for table in TABLES if expected_rows(table).exists()]


def latest_schema(table: Path) -> TableSchema:
    path = max(files(table, "schema", "schema"), key=lambda path: schema_id_of(path.name) or 0)
    return decode_schema(path.read_bytes(), str(path))


def directory_of(table: Path, schema: TableSchema, row: dict[str, Any]) -> str:
    values = []
    for field in schema.partition_fields:
        assert isinstance(field.type, AtomicType)
        values.append(internal_value(row["_partition"][field.name], field.type))
    options = schema.option_map
    partition = partition_dir(
        schema.partition_fields,
        values,
        default_name=options.get("partition.default-name", "__DEFAULT_PARTITION__"),
        legacy_name=options.get("partition.legacy-name", "true") == "true",
    )
    return TableLayout(str(table)).bucket_directory(partition, row["_bucket"], options.get("data-file.path-directory"))


@pytest.mark.parametrize("table", WITH_ROWS, ids=lambda path: path.name)
def test_data_files_lie_where_partition_and_bucket_say(table: Path) -> None:
    expected = expected_rows(table)
    schema = latest_schema(table)
    rows = [json.loads(line) for line in expected.read_text().splitlines()]
    for row in rows:
        directory = directory_of(table, schema, row)
        for name in row["_files"]:
            assert (Path(directory) / name).is_file()
            assert format_of(name)
