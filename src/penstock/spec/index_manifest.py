"""Index manifests, as far as a reader must know them: which kinds of index a snapshot has.

Source:
    Paimon ``core:manifest/IndexManifestEntry.java``, ``IndexManifestEntrySerializer.java``; spec/format.md section 9.
"""

from __future__ import annotations

# An in-memory file is what fastavro reads from; nothing here touches storage.
from io import BytesIO
from typing import Any, Final, cast

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
    try:
        records = [cast("dict[str, Any]", record) for record in fastavro.reader(BytesIO(data))]
        return frozenset(str(record["_INDEX_TYPE"]) for record in records if record["_KIND"] == FileKind.ADD)
    # fastavro has no error class of its own: damaged bytes end in whatever the decoder meets first.
    except Exception as error:
        raise FormatError(
            f"index manifest {path} ({len(data)} bytes) cannot be read ({error!r}); restore it from a copy, or roll "
            "back to a snapshot without it"
        ) from error
