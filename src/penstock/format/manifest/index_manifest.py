"""Index manifests: kinds and file names of a snapshot's indexes, and the locations of its deletion vectors.

Source:
    Paimon ``core:manifest/IndexManifestEntry.java``, ``IndexManifestEntrySerializer.java``;
    docs/spec/format.md section 9.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

import fastavro

from penstock.errors import FormatError
from penstock.format.avro.container import Block, decode_container, encode_container
from penstock.format.avro.reader import FieldMapping, RecordMapping
from penstock.format.avro.records import decode_values
from penstock.format.avro.values import DEFAULT_LIMITS, AvroLimits
from penstock.format.deletion_vector import VERSION, stored_length
from penstock.format.manifest.entry import FileKey, FileKind
from penstock.format.text.names import check_file_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

DELETION_VECTORS: Final = "DELETION_VECTORS"
_RECORD_NAME: Final = "org.apache.paimon.avro.generated.record"
_RANGE: Final = {
    "type": "record",
    "name": f"{_RECORD_NAME}__DELETIONS_VECTORS_RANGES",
    "fields": [
        {"name": "f0", "type": "string"},
        {"name": "f1", "type": "int"},
        {"name": "f2", "type": "int"},
        {"name": "_CARDINALITY", "type": ["null", "long"], "default": None},
    ],
}
# The fields that all releases which read them know.
_SCHEMA: Final = {
    "type": "record",
    "name": _RECORD_NAME,
    "fields": [
        {"name": "_VERSION", "type": "int"},
        {"name": "_KIND", "type": "int"},
        {"name": "_PARTITION", "type": "bytes"},
        {"name": "_BUCKET", "type": "int"},
        {"name": "_INDEX_TYPE", "type": "string"},
        {"name": "_FILE_NAME", "type": "string"},
        {"name": "_FILE_SIZE", "type": "long"},
        {"name": "_ROW_COUNT", "type": "long"},
        {
            "name": "_DELETIONS_VECTORS_RANGES",
            "type": ["null", {"type": "array", "items": ["null", _RANGE]}],
            "default": None,
        },
        {"name": "_EXTERNAL_PATH", "type": ["null", "string"], "default": None},
    ],
}
_NO_FILE: Final = {"_VERSION": 1, "_KIND": int(FileKind.ADD), "_INDEX_TYPE": DELETION_VECTORS}


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
class NewVector:
    """The next deletion vector of a data file.

    Attributes:
        data_file: its name.
        framed: with its length and checksum.
        row_count: number of deleted rows, with those of the file's vector before; 0 if the file loses its vector.
    """

    data_file: str
    framed: bytes
    row_count: int


class VectorStorage(Protocol):
    """The index files of a table."""

    def read(self, place: VectorPlace) -> bytes:
        """Return a vector with its frame."""
        ...

    def write(self, data: bytes) -> str:
        """Write an index file and return its name."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorChanges:
    """The deletion vectors that the next index manifest has no more, and those that it has in addition.

    Attributes:
        removed: the data files that lose their vector.
        added: the new vectors by partition and bucket; a data file may have had one before.
        target_bytes: of an index file; None for one file for each bucket, which is all that Paimon reads of a table
            with buckets.
    """

    removed: Collection[FileKey] = ()
    added: Mapping[tuple[bytes, int], Sequence[NewVector]] = field(default_factory=dict)
    target_bytes: int | None = None


def change_vectors(
    data: bytes | None,
    path: str,
    changes: VectorChanges,
    storage: VectorStorage,
    limits: AvroLimits = DEFAULT_LIMITS,
) -> bytes | None:
    """Return the next index manifest; what does not change stays as it is.

    Paimon reads the vectors of an index file one after another, so a file of which some remain is written again.

    Args:
        data: the whole file, which ``decode_vector_places`` has accepted; None if there was none.
        path: only for messages.

    Returns:
        None if no entry remains.
    """
    data = encode_container(json.dumps(_SCHEMA), []) if data is None else data
    container = decode_container(data, path, limits)
    schema = fastavro.parse_schema(json.loads(container.schema))
    gone = {FileKey(*place, each.data_file) for place, added in changes.added.items() for each in added}
    gone.update(changes.removed)
    kept: list[dict[str, Any]] = []
    moved: dict[tuple[bytes, int], _IndexFiles] = {
        place: _IndexFiles(record={**_NO_FILE, "_PARTITION": place[0], "_BUCKET": place[1]}) for place in changes.added
    }
    records: Any = fastavro.reader(io.BytesIO(data))
    for record in records:
        if record["_KIND"] != FileKind.ADD or record["_INDEX_TYPE"] != DELETION_VECTORS:
            kept.append(record)
            continue
        place = record["_PARTITION"], record["_BUCKET"]
        ranges = record["_DELETIONS_VECTORS_RANGES"] or ()
        stay = [each for each in ranges if FileKey(*place, each["f0"]) not in gone]
        if len(stay) == len(ranges) and not (changes.target_bytes is None and place in changes.added):
            kept.append(record)
        elif stay:
            files = moved.setdefault(place, _IndexFiles(record=record))
            files.record |= record
            files.vectors += [(each, storage.read(_place_of(record, each))) for each in stay]
    for place, files in moved.items():
        files.vectors += [(_range_of(each), each.framed) for each in changes.added.get(place, ())]
        kept += files.write(changes.target_bytes, storage)
    stream = io.BytesIO()
    for record in kept:
        fastavro.schemaless_writer(stream, schema, record)
    block = Block(record_count=len(kept), payload=stream.getvalue())
    return encode_container(container.schema, [block], codec=container.codec) if kept else None


def _place_of(record: Mapping[str, Any], vector_range: Mapping[str, Any]) -> VectorPlace:
    return VectorPlace(
        partition=record["_PARTITION"],
        bucket=record["_BUCKET"],
        index_file=record["_FILE_NAME"],
        external_path=record.get("_EXTERNAL_PATH"),
        offset=vector_range["f1"],
        length=vector_range["f2"],
    )


def _range_of(vector: NewVector) -> dict[str, Any]:
    return {"f0": vector.data_file, "f2": stored_length(vector.framed), "_CARDINALITY": vector.row_count}


@dataclass(slots=True, kw_only=True)
class _IndexFiles:
    """The vectors of a bucket that new index files get.

    Attributes:
        record: of an index file of the bucket; its fields of newer releases are copied.
        vectors: record of the range, and vector.
    """

    record: dict[str, Any]
    vectors: list[tuple[dict[str, Any], bytes]] = field(default_factory=list)

    def write(self, target_bytes: int | None, storage: VectorStorage) -> Iterator[dict[str, Any]]:
        """Write the files and yield their records. Like Paimon's, a file ends with the vector that passes the size."""
        parts, size, ranges = [VERSION], len(VERSION), list[dict[str, Any]]()
        for number, (each, framed) in enumerate(self.vectors, start=1):
            ranges.append({**each, "f1": size})
            parts.append(framed)
            size += len(framed)
            if number < len(self.vectors) and (target_bytes is None or size <= target_bytes):
                continue
            yield {
                **self.record,
                "_FILE_NAME": storage.write(b"".join(parts)),
                "_FILE_SIZE": size,
                "_ROW_COUNT": len(ranges),
                "_DELETIONS_VECTORS_RANGES": ranges,
                "_EXTERNAL_PATH": None,
            }
            parts, size, ranges = [VERSION], len(VERSION), []


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
