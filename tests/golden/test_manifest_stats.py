"""Statistics in real manifests: read, written back byte by byte, and built anew from the rows."""

import json
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from penstock.format.manifest.entry import FileKind, ManifestEntry
from penstock.format.manifest.files import decode_manifest, decode_manifest_list
from penstock.format.manifest.stats import (
    ColumnStats,
    StatsMode,
    build_stats,
    choose_modes,
    decode_stats,
    partition_stats,
)
from penstock.format.row.row import decode_row, encode_row
from penstock.format.schema import TableSchema, decode_schema

DATA = Path(__file__).parent / "data"
TABLES = sorted(path.parent for path in DATA.glob("warehouse/*.db/*/manifest"))
every_table = pytest.mark.parametrize("table", TABLES, ids=[path.name for path in TABLES])

PARSE: dict[str, Callable[[Any], object]] = {
    "s": str,
    "d": Decimal,
    "t": lambda text: int(datetime.fromisoformat(text[:26]).replace(tzinfo=UTC).timestamp()) * 1_000_000_000,
    "b": lambda text: bytes.fromhex(text[2:]),
}


def load_schemas(table: Path) -> dict[int, TableSchema]:
    schemas = (decode_schema(path.read_bytes(), str(path)) for path in table.glob("schema/schema-*"))
    return {schema.id: schema for schema in schemas}


def load_manifests(table: Path) -> dict[str, list[ManifestEntry]]:
    return {
        path.name: decode_manifest(path.read_bytes(), str(path))
        for path in sorted(table.glob("manifest/manifest-*"))
        if "-list-" not in path.name
    }


@every_table
def test_partitions_and_statistics_are_written_back_byte_by_byte(table: Path) -> None:
    schemas = load_schemas(table)
    partition_types = [field.type for field in schemas[max(schemas)].partition_fields]
    for entries in load_manifests(table).values():
        for entry in entries:
            assert encode_row(decode_row(entry.partition, partition_types), partition_types) == entry.partition
            file, fields = entry.file, schemas[entry.file.schema_id].fields
            types = {field.name: field.type for field in fields}
            names = list(types) if file.value_stats_cols is None else file.value_stats_cols
            view = decode_stats(file.value_stats, file.value_stats_cols, fields)
            assert list(view) == list(names)
            stats = [view[name] for name in names]
            row_types = [types[name] for name in names]
            assert encode_row([column.min for column in stats], row_types) == file.value_stats.min_values
            assert encode_row([column.max for column in stats], row_types) == file.value_stats.max_values
            assert tuple(column.null_count for column in stats) == file.value_stats.null_counts


@every_table
def test_partition_statistics_of_manifest_lists_equal_ours(table: Path) -> None:
    schemas, manifests = load_schemas(table), load_manifests(table)
    types = [field.type for field in schemas[max(schemas)].partition_fields]
    for path in table.glob("manifest/manifest-list-*"):
        for meta in decode_manifest_list(path.read_bytes(), str(path)):
            # Manifests of expired snapshots are gone.
            if meta.file_name in manifests:
                entries = manifests[meta.file_name]
                assert partition_stats([entry.partition for entry in entries], types) == meta.partition_stats
                assert meta.num_added_files == sum(entry.kind is FileKind.ADD for entry in entries)


def column_stats(values: list[Any]) -> ColumnStats:
    known = [value for value in values if value is not None]
    return ColumnStats(min=min(known), max=max(known), null_count=len(values) - len(known))


@pytest.mark.parametrize("name", ["stats_none", "stats_counts", "stats_truncate", "stats_full", "stats_no_dense"])
def test_statistics_built_from_the_rows_equal_those_of_java(name: str) -> None:
    (table,) = (path for path in TABLES if path.name == name)
    schema = load_schemas(table)[0]
    rows = defaultdict(list)
    for line in (DATA / "expected" / f"{name}.buckets.jsonl").read_text().splitlines():
        row = json.loads(line)
        (file_name,) = row["_files"]
        rows[file_name].append(row)
    modes = choose_modes(schema.field_names, StatsMode.parse(schema.option_map["metadata.stats-mode"]))
    dense = schema.option_map.get("metadata.stats-dense-store", "true") == "true"
    compared = 0
    for entries in load_manifests(table).values():
        for file in (entry.file for entry in entries):
            columns = [
                # Parquet's footer has nothing about nested columns as a whole.
                None
                if field.name == "a"
                else column_stats(
                    [
                        None if row[field.name] is None else PARSE.get(field.name, int)(row[field.name])
                        for row in rows[file.file_name]
                    ]
                )
                for field in schema.fields
            ]
            assert build_stats(schema.fields, columns, modes, dense=dense) == (file.value_stats, file.value_stats_cols)
            compared += 1
    assert compared
