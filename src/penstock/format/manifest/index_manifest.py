"""Read index manifests: only the kinds and the file names of a snapshot's indexes.

Source:
    Paimon ``core:manifest/IndexManifestEntry.java``, ``IndexManifestEntrySerializer.java``;
    docs/spec/format.md section 9.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.format.avro.limits import DEFAULT_LIMITS, AvroLimits
from penstock.format.avro.reader import FieldMapping, RecordMapping
from penstock.format.avro.records import decode_values
from penstock.format.file_name import check_file_name
from penstock.format.manifest.entry import FileKind

if TYPE_CHECKING:
    from collections.abc import Sequence

DELETION_VECTORS: Final = "DELETION_VECTORS"


def decode_index_types(data: bytes, path: str, limits: AvroLimits = DEFAULT_LIMITS) -> frozenset[str]:
    """Return the ``_INDEX_TYPE`` of every live index file.

    Args:
        data: the whole file.
        path: only for messages.

    Raises:
        FormatError: empty, truncated, or not an index manifest.
    """
    return frozenset(record.index_type for record in _decode(data, path, limits) if record.kind == FileKind.ADD)


def decode_index_files(data: bytes, path: str, limits: AvroLimits = DEFAULT_LIMITS) -> frozenset[str]:
    """Return the ``_FILE_NAME`` of every index file in it, live or not. Raises ``FormatError``."""
    return frozenset(record.file_name for record in _decode(data, path, limits))


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
