"""Index manifests, as far as a reader must know them: which kinds of index a snapshot has.

Source:
    Paimon ``core:manifest/IndexManifestEntry.java``, ``IndexManifestEntrySerializer.java``; spec/format.md section 9.
"""

from __future__ import annotations

# An in-memory file is what fastavro reads from; nothing here touches storage.
from io import BytesIO
from typing import Any, Final, NamedTuple, cast

import fastavro

from penstock.errors import FormatError
from penstock.spec.manifest import FileKind

DELETION_VECTORS: Final = "DELETION_VECTORS"


def decode_index_types(data: bytes, path: str) -> frozenset[str]:
    """Return the ``_INDEX_TYPE`` of every live index file.

    Args:
        data: the whole file.
        path: only for messages.

    Raises:
        FormatError: empty, cut off, or no index manifest.
    """
    return frozenset(record.index_type for record in _decode(data, path) if record.kind == FileKind.ADD)


def decode_index_files(data: bytes, path: str) -> frozenset[str]:
    """Return the ``_FILE_NAME`` of every index file that is named, live or not. Raises ``FormatError``."""
    return frozenset(record.file_name for record in _decode(data, path))


class _Record(NamedTuple):
    kind: int
    index_type: str
    file_name: str


def _decode(data: bytes, path: str) -> list[_Record]:
    try:
        records = [cast("dict[str, Any]", record) for record in fastavro.reader(BytesIO(data))]
        return [_Record(each["_KIND"], str(each["_INDEX_TYPE"]), str(each["_FILE_NAME"])) for each in records]
    # fastavro has no error class of its own: damaged bytes end in whatever the decoder meets first.
    except Exception as error:
        raise FormatError(
            f"index manifest {path} ({len(data)} bytes) cannot be read ({error!r}); restore it from a copy, or roll "
            "back to a snapshot without it"
        ) from error
