"""List files for Spark's own readers: where each is, its reader, and what has one value in all of its rows."""

from __future__ import annotations

import json
from base64 import b64encode
from decimal import Decimal
from itertools import repeat
from typing import TYPE_CHECKING, Final

from penstock.errors import FormatError
from penstock.format.types.data_types import AtomicType, DataType, TypeRoot
from penstock.spark.read.native_files import TIMESTAMPS
from penstock.spark.read.native_reading import ROW_ID, SEQUENCE_NUMBER
from penstock.table.read.batches import DeletedRows
from penstock.table.ref import ExternalPaths

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.manifest.index_manifest import VectorPlace
    from penstock.spark.read.native_reading import NativeReading
    from penstock.table.read.split import DataSplit
    from penstock.table.ref import TableRef

# Types whose values JSON does not tell apart, as Driver.java names them.
_CELLS: Final = {
    TypeRoot.BINARY: "binary",
    TypeRoot.VARBINARY: "binary",
    TypeRoot.TINYINT: "byte",
    TypeRoot.SMALLINT: "short",
    TypeRoot.BIGINT: "long",
    TypeRoot.FLOAT: "float",
    TypeRoot.DOUBLE: "double",
    TypeRoot.TIMESTAMP: "long",
    TypeRoot.TIMESTAMP_LTZ: "long",
}
_UNLIKE_JAVA: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
FILE_PATH: Final = "__paimon_file_path"
ROW_INDEX: Final = "__paimon_row_index"
BUCKET: Final = "__paimon_bucket"
PARTITION: Final = "__paimon_partition"
"""Metadata columns with the path of a row's file, its number in the file, its bucket and its partition.

Source:
    Paimon ``spark:schema/PaimonMetadataColumn.scala``.
"""
SNAPSHOT_ID: Final = "__paimon_snapshot_id"
COMMIT_TIME: Final = "__paimon_commit_time"
"""Metadata columns of Penstock with the snapshot that added a row's file, and its commit time."""
FIRST_ROW_ID: Final = f"{ROW_ID}_first"
LAST_SEQUENCE_NUMBER: Final = f"{SEQUENCE_NUMBER}_last"
"""Where files do not have the columns of row tracking, ids count from the first one of the file, and all rows have its
last sequence number.

Source:
    Paimon ``core:io/DataFileRecordReader.java``, ``common:reader/FileRecordIterator`` (``assignRowTracking``).
"""


def list_native(
    ref: TableRef, splits: Sequence[DataSplit], reading: NativeReading, constants: Sequence[str] = ()
) -> str:
    """Return the files of splits that Spark's reader can read as text for ``Driver.packed``.

    Args:
        constants: what the reader returns that has one value in all rows of a file.
    """
    external = ExternalPaths.of(ref)
    tags = _tags(ref, splits, reading, constants) if reading.needs_class or constants else repeat("\t")
    lines: list[str] = []
    for split in splits:
        sizes = iter(split.sizes())
        for directory, some in split.by_directory(external):
            parent, names = ref.file_io.to_uris(directory, some)
            # A URI contains no tab and no line break.
            lines.append(parent)
            lines += [f"{name}\t{size}\t{tag}" for name, size, tag in zip(names, sizes, tags, strict=False)]
    return "\n".join(lines)


def _tags(
    ref: TableRef, splits: Sequence[DataSplit], reading: NativeReading, constants: Sequence[str]
) -> Iterator[str]:
    """Yield the constants and the tag of each file."""
    external, deleted = ExternalPaths.of(ref), DeletedRows(ref)
    longs = (FIRST_ROW_ID, LAST_SEQUENCE_NUMBER, SNAPSHOT_ID, COMMIT_TIME)
    cells: dict[str, str | None] = dict.fromkeys(longs, "long")
    cells |= {partition_constant(field.name): cell_of(field.type) for field in ref.schema.partition_fields}
    for split in splits:
        vectors, origins = dict(split.vectors), dict(split.origins)
        values: dict[str, object] = {BUCKET: split.bucket}
        for field, value in zip(ref.schema.partition_fields, split.values, strict=True):
            values[partition_constant(field.name)] = value_in_json(field.type, value)
        for file in split.files:
            path = split.path_of(file, external)
            values |= {FILE_PATH: path, FIRST_ROW_ID: file.first_row_id, LAST_SEQUENCE_NUMBER: file.max_sequence_number}
            values[SNAPSHOT_ID], values[COMMIT_TIME] = origin_of(origins, file)
            row = json.dumps([[cells.get(name) for name in constants], [values[name] for name in constants]])
            tag = _tag(ref, reading, deleted, file, vectors.get(file.file_name)) if reading.needs_class else ""
            yield f"{row if constants else ''}\t{tag}"


def origin_of(origins: Mapping[str, tuple[int, int]], file: DataFileMeta) -> tuple[int, int] | tuple[None, None]:
    """Return the snapshot that added a file, and its commit time in microseconds; None where they are not known."""
    found = origins.get(file.file_name)
    return (None, None) if found is None else (found[0], found[1] * 1_000)


def partition_constant(name: str) -> str:
    """Return under which name, of plain letters, readers return the value of a partition column."""
    return f"{PARTITION}_{name.encode().hex()}"


def cell_of(data_type: DataType) -> str | None:
    """Return the type of a value of a partition, as ``Driver.java`` takes it; None if JSON says it."""
    assert isinstance(data_type, AtomicType)  # noqa: S101 - no other type is one of partitions
    if data_type.root is TypeRoot.DECIMAL:
        return f"decimal {data_type.precision} {data_type.scale}"
    return _CELLS.get(data_type.root)


def value_in_json(data_type: DataType, value: object) -> object:
    """Return a value of a partition in JSON, as Spark has it in its rows."""
    match value:
        case bytes():
            return b64encode(value).decode()
        case Decimal() | float():
            return _UNLIKE_JAVA.get(str(value), str(value))
        case int() if isinstance(data_type, AtomicType) and data_type.root in TIMESTAMPS:
            return value // 1_000
        case _:
            return value


def _tag(
    ref: TableRef, reading: NativeReading, deleted: DeletedRows, file: DataFileMeta, place: VectorPlace | None
) -> str:
    """Return which reader reads a file, and where its deletion vector is, as ``FileReaders.java`` takes them."""
    number = str(reading.place_of(file, has_vector=place is not None))
    if place is None:
        return number
    path = deleted.path_of(place)
    if place.length > _most_bytes(file.row_count):
        raise FormatError(f"{path}: the deletion vector of {file.file_name} is longer than one of its rows can be")
    return "\t".join((number, ref.file_io.to_uri(path), str(place.offset), str(place.length), str(file.row_count)))


def _most_bytes(rows: int) -> int:
    """Return the most bytes of a deletion vector: a container for each 65,536 rows, with its size and place."""
    return 64 + (rows // 65_536 + 1) * (8_192 + 12)
