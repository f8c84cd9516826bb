"""Every data file of the golden tables, by itself: its rows, and the statistics that we would have given it.

``test_read_tables`` compares the values with what Java reads, cell by cell.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from penstock.datafile.formats import FORMATS
from penstock.datafile.types import to_arrow_schema
from penstock.errors import UnsupportedFeatureError
from penstock.format.layout import FileFormat, format_of
from penstock.format.manifest.entry import FileKind
from penstock.format.manifest.files import decode_manifest
from penstock.format.manifest.stats import decode_stats, truncate_stats
from penstock.format.schema import decode_schema
from penstock.format.types.data_types import AtomicType, TypeRoot
from penstock.io.local import LocalFileIO
from penstock.io.memory import MemoryFileIO
from penstock.options import FormatOptions

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.manifest.stats import ColumnStats
    from penstock.format.schema import TableSchema

DATA: Final = Path(__file__).parent / "data" / "warehouse"
TABLES: Final = sorted(path for path in DATA.glob("*.db/*") if (path / "manifest").exists())
SCRATCH: Final = MemoryFileIO("golden-data-files")
LARGE: Final = 10
"""Files of a table beyond which only some are looked at: the others differ in nothing."""

TRUNCATED_TO: Final = 4
"""``metadata.stats-mode`` of table stats_truncate."""
TRUNCATED_TO_BY_DEFAULT: Final = 16

BINARY: Final = (TypeRoot.BINARY, TypeRoot.VARBINARY)
TIMESTAMPS: Final = (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ)


def files_of(table: Path) -> list[tuple[Path, DataFileMeta]]:
    on_disk = {path.name: path for path in table.rglob("*") if path.suffix in (".parquet", ".orc", ".avro")}
    metas = {
        entry.file.file_name: entry.file
        for path in (table / "manifest").glob("manifest-*")
        if not path.name.startswith("manifest-list")
        for entry in decode_manifest(path.read_bytes(), str(path))
        if entry.kind is FileKind.ADD
    }
    found = [(on_disk[name], meta) for name, meta in sorted(metas.items()) if name in on_disk]
    return found[: LARGE // 2] + found[-LARGE // 2 :] if len(found) > LARGE else found


def schema_of(table: Path, schema_id: int) -> TableSchema:
    path = table / "schema" / f"schema-{schema_id}"
    return decode_schema(path.read_bytes(), str(path))


def read(path: Path, schema: TableSchema) -> list[pa.RecordBatch]:
    data_format = FORMATS[format_of(path.name)]
    return list(data_format.read(LocalFileIO(), str(path), schema.fields, batch_rows=1000))


def test_all_formats_and_writers_are_there() -> None:
    kinds = {(table.parent.name, path.suffix) for table in TABLES for path, _ in files_of(table)}

    assert {writer for writer, _ in kinds} >= {"java131.db", "java142.db", "java200.db", "flink131.db", "spark200.db"}
    assert {writer for writer, _ in kinds} >= {"py142.db", "py210.db", "spark090.db"}
    assert {suffix for _, suffix in kinds} == {".parquet", ".orc", ".avro"}


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.name)
def test_files_hold_the_rows_that_their_entries_count(table: Path) -> None:
    for path, meta in files_of(table):
        schema = schema_of(table, meta.schema_id)
        batches = read(path, schema)
        assert sum(batch.num_rows for batch in batches) == meta.row_count
        for batch in batches:
            assert batch.schema.equals(to_arrow_schema(schema.fields), check_metadata=True)
            batch.validate(full=True)


@pytest.mark.parametrize(
    "table", [path for path in TABLES if path.parent.name.startswith("java")], ids=lambda path: path.name
)
def test_statistics_of_the_same_rows_are_those_of_java(table: Path) -> None:
    for path, meta in files_of(table):
        schema = schema_of(table, meta.schema_id)
        theirs = decode_stats(meta.value_stats, meta.value_stats_cols, schema.fields)
        try:
            ours = statistics_of(read(path, schema), schema, format_of(path.name))
        except UnsupportedFeatureError as error:
            assert "before 1970" in str(error)  # noqa: PT017 - what ORC files of ours cannot hold, see the unit tests
            continue
        wrong = [
            (field.name, ours[field.name], theirs[field.name])
            for field in schema.fields
            if field.name in theirs and not agree(ours[field.name], theirs[field.name], field.type, path.suffix)
        ]
        assert not wrong, path.name


def statistics_of(
    batches: list[pa.RecordBatch], schema: TableSchema, file_format: FileFormat
) -> dict[str, ColumnStats | None]:
    target = f"memory://golden-data-files/rewritten.{file_format}"
    writer = FORMATS[file_format].open_writer(SCRATCH, target, schema.fields, FormatOptions())
    try:
        for batch in batches:
            writer.write(batch)
        written = writer.close()
    finally:
        SCRATCH.delete(target)
    return dict(zip(schema.field_names, written.columns, strict=True))


def agree(ours: ColumnStats | None, theirs: ColumnStats, data_type: Any, suffix: str) -> bool:
    """Equal, but for what the docstrings of our statistics promise to leave out, and what the formats do to values."""
    if ours is None:
        return not isinstance(data_type, AtomicType)
    assert ours.null_count == theirs.null_count or theirs.null_count is None
    if theirs.min is None or not isinstance(data_type, AtomicType):
        return True  # the mode of the table keeps less than we have
    if ours.min is None:
        return data_type.root in BINARY or (isinstance(theirs.max, float) and math.isnan(theirs.max))
    if suffix == ".orc" and data_type.root in TIMESTAMPS:
        return True  # Java's own are in the machine's zone and by its ORC's rounding
    if isinstance(ours.min, str):
        longest = max(len(str(theirs.min)), len(str(theirs.max)))
        ours = truncate_stats(ours, longest) if longest in (TRUNCATED_TO, TRUNCATED_TO_BY_DEFAULT) else ours
    return (ours.min, ours.max) == (theirs.min, theirs.max)
