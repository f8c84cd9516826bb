"""Deletes rows of a table through deletion vectors as other engines do, by code that Penstock does not share."""

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
from penstock.format.manifest.files import encode_manifest_list
from penstock.format.snapshot import CommitKind, encode_snapshot
from penstock.table.read.batches import DeletedRows, TableReader
from penstock.table.read.prune import NO_FILTER, PartitionPruneResult
from penstock.table.read.scan import plan_scan
from penstock.table.read.split import make_split
from penstock.table.ref import FileLocator

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import penstock
    from penstock.format.manifest.entry import ManifestEntry

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
    """Give the latest snapshot deletion vectors, each in an index file of its own.

    Args:
        rows: data file, by its name or the end of its path, to positions of its rows.
        is_64: whether bitmaps have 64 bits.
    """
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    locator = FileLocator.of(table._ref)
    entries = {
        locator.path(entry.partition, entry.bucket, entry.file): entry
        for entry in plan_scan(table._store, table._ref, snapshot).entries
    }
    records = []
    for end, positions in rows.items():
        (entry,) = (entry for path, entry in entries.items() if path.endswith(f"/{end}"))
        records.append(_index_file(table, {entry.file.file_name: (entry, positions)}, is_64=is_64))
    changed = replace(snapshot, index_manifest=_index_manifest(table, records))
    table._ref.file_io.write(TableLayout(table.location).snapshot_path(snapshot.id), encode_snapshot(changed))


def delete_keys(table: penstock.Table, column: str, keys: Collection[object]) -> int:
    """Delete rows as another engine does: in a snapshot of its own, with all vectors of a bucket in one index file.

    Returns:
        The number of rows.
    """
    store, ref = table._store, table._ref
    snapshot = store.load_latest_snapshot()
    assert snapshot is not None
    plan = plan_scan(store, ref, snapshot, with_vectors=True)
    reader, deleted, locator = TableReader(ref, store, [column]), DeletedRows(ref), FileLocator.of(ref)
    buckets: dict[tuple[bytes, int], dict[str, tuple[ManifestEntry, Sequence[int]]]] = defaultdict(dict)
    count = 0
    for part in plan.partitions:
        for entry in part.entries:
            name, verdict = entry.file.file_name, PartitionPruneResult(values=part.values, rest=NO_FILTER)
            split = make_split(locator, snapshot.id, entry, (entry.file,), verdict)
            values = [value for batch in reader.read_split(split) for value in batch.column(0).to_pylist()]
            place = plan.vectors.get(entry.key)
            known = set() if place is None else set(deleted.load(entry.file, place).tolist())
            gone = known | {place for place, value in enumerate(values) if value in keys}
            count += len(gone) - len(known)
            if gone:
                buckets[entry.partition, entry.bucket][name] = entry, sorted(gone)
    if not count:
        return 0
    manifest = _index_manifest(table, [_index_file(table, files) for files in buckets.values()])
    lists = [f"manifest-list-{uuid.uuid4()}-{number}" for number in range(2)]
    sizes = []
    for name, metas in zip(lists, (store.load_manifests(snapshot), ()), strict=True):
        data = encode_manifest_list(metas)
        ref.file_io.write(TableLayout(table.location).manifest_path(name), data)
        sizes.append(len(data))
    done = replace(
        snapshot,
        id=snapshot.id + 1,
        base_manifest_list=lists[0],
        base_manifest_list_size=sizes[0],
        delta_manifest_list=lists[1],
        delta_manifest_list_size=sizes[1],
        index_manifest=manifest,
        commit_user=str(uuid.uuid4()),
        commit_kind=CommitKind.OVERWRITE,
        delta_record_count=0,
        uuid=str(uuid.uuid4()),
    )
    path = TableLayout(table.location).snapshot_path(done.id)
    if not ref.file_io.put_if_absent(path, encode_snapshot(done)):
        return delete_keys(table, column, keys)
    return count


def _index_file(
    table: penstock.Table, files: Mapping[str, tuple[ManifestEntry, Sequence[int]]], *, is_64: bool = False
) -> dict[str, Any]:
    """Write the vectors of some data files to an index file; return its record."""
    data, ranges = b"\x01", []
    for name, (_, positions) in files.items():
        vector = _vector(sorted(positions), is_64=is_64)
        # Java's length of a vector of 64 bits includes its frame.
        size = len(vector) - (0 if is_64 else 8)
        ranges.append({"f0": name, "f1": len(data), "f2": size, "_CARDINALITY": len(positions)})
        data += vector
    entry = next(iter(files.values()))[0]
    name = f"index-{uuid.uuid4()}-0"
    table._ref.file_io.write(TableLayout(table.location).index_path(name), data)
    return {
        "_VERSION": 1,
        "_KIND": 0,
        "_PARTITION": entry.partition,
        "_BUCKET": entry.bucket,
        "_INDEX_TYPE": "DELETION_VECTORS",
        "_FILE_NAME": name,
        "_FILE_SIZE": len(data),
        "_ROW_COUNT": len(ranges),
        "_DELETIONS_VECTORS_RANGES": ranges,
        "_EXTERNAL_PATH": None,
    }


def _index_manifest(table: penstock.Table, records: Sequence[dict[str, Any]]) -> str:
    name = f"index-manifest-{uuid.uuid4()}-0"
    stream = io.BytesIO()
    fastavro.writer(stream, fastavro.parse_schema(_ENTRY), records)
    table._ref.file_io.write(TableLayout(table.location).manifest_path(name), stream.getvalue())
    return name


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
