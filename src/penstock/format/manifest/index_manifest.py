"""Index manifests: kinds and file names of a snapshot's indexes, and the locations of its deletion vectors.

Source:
    Paimon ``core:manifest/IndexManifestEntry.java``, ``IndexManifestEntrySerializer.java``;
    docs/spec/format.md section 9.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import fastavro

from penstock.errors import FormatError
from penstock.format.avro.container import Block, decode_container, encode_container
from penstock.format.avro.reader import FieldMapping, RecordMapping
from penstock.format.avro.records import decode_values
from penstock.format.avro.values import DEFAULT_LIMITS, AvroLimits
from penstock.format.manifest.entry import FileKey, FileKind
from penstock.format.text.names import check_file_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

DELETION_VECTORS: Final = "DELETION_VECTORS"


def decode_index_types(data: bytes, path: str, limits: AvroLimits = DEFAULT_LIMITS) -> frozenset[str]:
    """Return the ``_INDEX_TYPE`` of every live index file.

    Args:
        data: the whole file.
        path: only for messages.
    """
    return frozenset(record.index_type for record in _decode(data, path, limits) if record.kind == FileKind.ADD)


def decode_index_files(data: bytes, path: str, limits: AvroLimits = DEFAULT_LIMITS) -> frozenset[str]:
    """Return the ``_FILE_NAME`` of every index file in it, live or not. Raises ``FormatError``."""
    return frozenset(record.file_name for record in _decode(data, path, limits))


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorPlace:
    """Location of the deletion vector of a data file.

    Attributes:
        partition: serialized BinaryRow of the data file's partition.
        index_file: name of the file with the vector.
        external_path: of that file; None in the table's directory.
        length: of magic and bitmap, without the four bytes each of the length before and the checksum after them; Java
            includes these for a vector of 64 bits.
        row_count: number of deleted rows; None if the manifest lacks it.
    """

    partition: bytes
    bucket: int
    index_file: str
    external_path: str | None
    offset: int
    length: int
    row_count: int | None = None


def decode_vector_places(data: bytes, path: str, limits: AvroLimits = DEFAULT_LIMITS) -> dict[FileKey, VectorPlace]:
    """Return the deletion vectors of the live index files, by their data file. Raises ``FormatError``."""
    places: dict[FileKey, VectorPlace] = {}
    for record in decode_values(data, path, _VECTOR_RECORD, limits):
        if record.kind != FileKind.ADD or record.index_type != DELETION_VECTORS:
            continue
        for each in record.ranges or ():
            if not _is_range(each):
                raise FormatError(f"{path}: the place of a deletion vector is damaged")
            data_file, offset, length = each[:3]
            places[FileKey(record.partition, record.bucket, data_file)] = VectorPlace(
                partition=record.partition,
                bucket=record.bucket,
                index_file=record.file_name,
                external_path=record.external_path,
                offset=offset,
                length=length,
                row_count=each[3] if len(each) > 3 and isinstance(each[3], int) else None,
            )
    return places


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorFile:
    """A new index file with some of the deletion vectors of another one.

    Attributes:
        offsets: of the vectors, in the order in which they were given.
    """

    file_name: str
    file_size: int
    offsets: tuple[int, ...]


def without_vectors(
    data: bytes,
    path: str,
    gone: Collection[FileKey],
    copy_vectors: Callable[[Sequence[VectorPlace]], VectorFile],
    limits: AvroLimits = DEFAULT_LIMITS,
) -> bytes | None:
    """Return an index manifest without the deletion vectors of some data files; all else stays as it is.

    Paimon reads the vectors of an index file one after another, so a file of which some remain is written again.

    Args:
        data: the whole file, which ``decode_vector_places`` has accepted.
        path: only for messages.
        gone: the data files.
        copy_vectors: writes a file of the vectors at these places of one index file, one after another.

    Returns:
        None if no entry remains.
    """
    container = decode_container(data, path, limits)
    schema = fastavro.parse_schema(json.loads(container.schema))
    stream, count = io.BytesIO(), 0
    records: Any = fastavro.reader(io.BytesIO(data))
    for record in records:
        kept = record
        if record["_KIND"] == FileKind.ADD and record["_INDEX_TYPE"] == DELETION_VECTORS:
            kept = _without(record, gone, copy_vectors)
        if kept is not None:
            fastavro.schemaless_writer(stream, schema, kept)
            count += 1
    block = Block(record_count=count, payload=stream.getvalue())
    return encode_container(container.schema, [block], codec=container.codec) if count else None


def _without(
    record: Any,  # noqa: ANN401 - as fastavro returns it
    gone: Collection[FileKey],
    copy_vectors: Callable[[Sequence[VectorPlace]], VectorFile],
) -> dict[str, Any] | None:
    """Return the record of an index file without vectors; None if none remains."""
    ranges = record["_DELETIONS_VECTORS_RANGES"] or ()
    kept = [each for each in ranges if FileKey(record["_PARTITION"], record["_BUCKET"], each["f0"]) not in gone]
    if len(kept) == len(ranges):
        return dict(record)
    if not kept:
        return None
    made = copy_vectors(
        [
            VectorPlace(
                partition=record["_PARTITION"],
                bucket=record["_BUCKET"],
                index_file=record["_FILE_NAME"],
                external_path=record.get("_EXTERNAL_PATH"),
                offset=each["f1"],
                length=each["f2"],
            )
            for each in kept
        ]
    )
    moved = [{**each, "f1": offset} for each, offset in zip(kept, made.offsets, strict=True)]
    changed = {"_FILE_NAME": made.file_name, "_FILE_SIZE": made.file_size, "_ROW_COUNT": len(kept)}
    paths = {"_EXTERNAL_PATH": None} if "_EXTERNAL_PATH" in record else {}
    return {**record, **changed, **paths, "_DELETIONS_VECTORS_RANGES": moved}


def _is_range(value: object) -> bool:
    """Whether a value, which is read as its record's fields, has a name, an offset and a length."""
    if not isinstance(value, tuple) or len(value) < 3:
        return False
    name, offset, length = value[:3]
    return isinstance(name, str) and isinstance(offset, int) and isinstance(length, int) and offset >= 0 <= length


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    kind: int
    index_type: str
    file_name: str


def _decode(data: bytes, path: str, limits: AvroLimits) -> Sequence[_Record]:
    return decode_values(data, path, _RECORD, limits)


_RECORD: Final = RecordMapping(
    value_type=_Record,
    slots={
        "_KIND": FieldMapping(attribute="kind"),
        "_INDEX_TYPE": FieldMapping(attribute="index_type"),
        "_FILE_NAME": FieldMapping(attribute="file_name", adapt=check_file_name),
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _VectorRecord:
    kind: int
    index_type: str
    file_name: str
    partition: bytes
    bucket: int
    ranges: Sequence[Any] | None
    external_path: str | None


_VECTOR_RECORD: Final = RecordMapping(
    value_type=_VectorRecord,
    slots={
        "_KIND": FieldMapping(attribute="kind"),
        "_INDEX_TYPE": FieldMapping(attribute="index_type"),
        "_FILE_NAME": FieldMapping(attribute="file_name", adapt=check_file_name),
        "_PARTITION": FieldMapping(attribute="partition"),
        "_BUCKET": FieldMapping(attribute="bucket"),
        "_DELETIONS_VECTORS_RANGES": FieldMapping(attribute="ranges", absent=None),
        "_EXTERNAL_PATH": FieldMapping(attribute="external_path", absent=None),
    },
)
