"""Read index manifests: kinds and file names of a snapshot's indexes, and the locations of its deletion vectors.

Source:
    Paimon ``core:manifest/IndexManifestEntry.java``, ``IndexManifestEntrySerializer.java``;
    docs/spec/format.md section 9.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import FormatError
from penstock.format.avro.reader import FieldMapping, RecordMapping
from penstock.format.avro.records import decode_values
from penstock.format.avro.values import DEFAULT_LIMITS, AvroLimits
from penstock.format.manifest.entry import FileKey, FileKind
from penstock.format.text.names import check_file_name

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        length: of magic and bitmap, without the four bytes each of the length before and the checksum after them.
    """

    partition: bytes
    bucket: int
    index_file: str
    external_path: str | None
    offset: int
    length: int


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
            )
    return places


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
