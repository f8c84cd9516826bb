"""Deletes rows of a table through deletion vectors, which Penstock itself never writes."""

from __future__ import annotations

import io
import struct
import uuid
import zlib
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import fastavro

from penstock.format.deletion_vector import MAGIC, MAGIC_64
from penstock.format.layout import TableLayout
from penstock.format.snapshot import encode_snapshot
from penstock.table.read.scan import plan_scan
from penstock.table.ref import FileLocator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import penstock

_MOST_LISTED: Final = 4_096
_RANGE: Final = {
    "type": "record",
    "name": "org.apache.paimon.avro.generated.record__DELETIONS_VECTORS_RANGES",
    "fields": [
        {"name": "f0", "type": "string"},
        {"name": "f1", "type": "int"},
        {"name": "f2", "type": "int"},
        {"name": "_CARDINALITY", "type": ["null", "long"], "default": None},
    ],
}
_ENTRY: Final = {
    "type": "record",
    "name": "org.apache.paimon.avro.generated.record",
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


def delete_by_vectors(table: penstock.Table, rows: Mapping[str, Sequence[int]], *, is_64: bool = False) -> None:
    """Give the latest snapshot deletion vectors.

    Args:
        rows: data file, by its name or the end of its path, to positions of its rows.
        is_64: whether bitmaps have 64 bits.
    """
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    file_io, location = table._ref.file_io, table.location
    locator = FileLocator.of(table._ref)
    entries = {
        locator.path(entry.partition, entry.bucket, entry.file): entry
        for entry in plan_scan(table._store, table._ref, snapshot).entries
    }
    records: list[dict[str, Any]] = []
    for end, positions in rows.items():
        (entry,) = (entry for path, entry in entries.items() if path.endswith(f"/{end}"))
        vector = _vector(sorted(positions), is_64=is_64)
        data = b"\x01" + vector
        index_file = f"index-{uuid.uuid4()}-0"
        file_io.write(TableLayout(location).index_path(index_file), data)
        records.append(
            {
                "_VERSION": 1,
                "_KIND": 0,
                "_PARTITION": entry.partition,
                "_BUCKET": entry.bucket,
                "_INDEX_TYPE": "DELETION_VECTORS",
                "_FILE_NAME": index_file,
                "_FILE_SIZE": len(data),
                "_ROW_COUNT": 1,
                "_DELETIONS_VECTORS_RANGES": [
                    # Java's length of a vector of 64 bits includes its frame.
                    {
                        "f0": entry.file.file_name,
                        "f1": 1,
                        "f2": len(vector) - (0 if is_64 else 8),
                        "_CARDINALITY": len(positions),
                    }
                ],
                "_EXTERNAL_PATH": None,
            }
        )
    manifest = f"index-manifest-{uuid.uuid4()}-0"
    stream = io.BytesIO()
    fastavro.writer(stream, fastavro.parse_schema(_ENTRY), records)
    file_io.write(TableLayout(location).manifest_path(manifest), stream.getvalue())
    file_io.write(
        TableLayout(location).snapshot_path(snapshot.id), encode_snapshot(replace(snapshot, index_manifest=manifest))
    )


def _vector(positions: Sequence[int], *, is_64: bool) -> bytes:
    bitmap = _bitmap(positions)
    body = struct.pack("<IQI", MAGIC_64, 1, 0) + bitmap if is_64 else struct.pack(">I", MAGIC) + bitmap
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def _bitmap(positions: Sequence[int]) -> bytes:
    """Return the portable form: a container for each 65,536 rows, which lists its rows or has a bit for each."""
    parts: dict[int, list[int]] = defaultdict(list)
    for position in positions:
        parts[position >> 16].append(position & 0xFFFF)
    heads, places, containers = [], [], b""
    for key, rows in parts.items():
        heads.append(struct.pack("<HH", key, len(rows) - 1))
        places.append(struct.pack("<I", 8 + 8 * len(parts) + len(containers)))
        if len(rows) <= _MOST_LISTED:
            containers += struct.pack(f"<{len(rows)}H", *rows)
        else:
            containers += sum(1 << row for row in rows).to_bytes(8_192, "little")
    return struct.pack("<II", 12346, len(parts)) + b"".join(heads + places) + containers
