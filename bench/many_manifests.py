"""Tables of millions of files that do not exist, in seconds: the manifests are written as bytes.

All entries are that of one file, with the numbers, the name and the partition of others.
"""

from __future__ import annotations

import struct
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.many_files import FILE_ROWS, PARTITIONS, create_table, new_file, partition_value
from penstock.format.avro.container import Block, encode_container
from penstock.format.avro.schemas import MANIFEST_SCHEMA
from penstock.format.avro.values import encode_long
from penstock.format.manifest.entry import FileKind, ManifestEntry, ManifestFileMeta, SimpleStats
from penstock.format.manifest.files import _encode_entry, encode_manifest_list
from penstock.format.row.row import encode_row
from penstock.format.snapshot import CommitKind, encode_snapshot
from penstock.format.types.data_types import STRING
from penstock.table.actions.changes import open_committer
from penstock.table.commit.delta import CommitRequest
from penstock.table.message import CommitMessage
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.table.ref import TableRef

_MANIFEST_FILES: Final = 5_000
_MIN_MANIFESTS: Final = 20
_BLOCK_BYTES: Final = 64_000
_SENTINEL: Final = 1_234_567
"""The number of the file whose entry is changed; its bytes are not found elsewhere in the entry."""
_DIGITS: Final = np.frombuffer(b"0123456789abcdef", np.uint8)


def make_large_table(warehouse: str, files: int, buckets: int = -1) -> TableRef:
    """Return a table as ``make_table`` does, of one snapshot; bounds of floats and texts are equal in all files.

    Args:
        warehouse: a folder that does not exist yet.
        files: live files, up to 100 million.
        buckets: as of ``make_table``.
    """
    ref = create_table(warehouse, buckets)
    last = partition_value(files - 1, files)
    message = CommitMessage(
        partition=encode_row([last], [STRING]),
        bucket=(files - 1) % max(buckets, 1),
        total_buckets=buckets,
        new_files=(new_file(ref.schema, files - 1, last),),
    )
    open_committer(ref).commit(CommitRequest(commit_user="bench", kind=CommitKind.APPEND, messages=(message,)))
    snapshot = MetadataStore(ref).load_snapshot(1)
    per_manifest = min(_MANIFEST_FILES, -(-files // _MIN_MANIFESTS))
    entries = _Entries(ref, files, buckets)
    metas = [
        entries.write(range(first, min(first + per_manifest, files - 1))) for first in range(0, files - 1, per_manifest)
    ]
    data, name = encode_manifest_list(metas), f"manifest-list-{uuid.uuid4()}-0"
    ref.file_io.write(ref.layout.manifest_path(name), data)
    path = ref.layout.snapshot_path(1)
    changed = replace(
        snapshot,
        base_manifest_list=name,
        base_manifest_list_size=len(data),
        total_record_count=files * FILE_ROWS,
    )
    ref.file_io.delete(path)
    ref.file_io.write(path, encode_snapshot(changed))
    return ref


class _Entries:
    """The entries of a table's files as bytes."""

    def __init__(self, ref: TableRef, files: int, buckets: int) -> None:
        self._ref = ref
        self._files = files
        self._buckets = buckets
        day = partition_value(0, files)
        file = new_file(ref.schema, _SENTINEL, day)
        partition = encode_row([day], [STRING])
        entry = ManifestEntry(kind=FileKind.ADD, partition=partition, bucket=0, total_buckets=buckets, file=file)
        self._record = _encode_entry(entry)
        # After the version, the kind, and the partition with its length.
        self._bucket = 3 + len(partition)
        self._name = self._place(file.file_name.encode())
        self._size = self._place(encode_long(file.file_size))
        self._created = self._place(encode_long(file.creation_millis or 0))
        first = _SENTINEL * FILE_ROWS
        millis = 1_700_000_000_000 + first // 1000
        self._longs = {
            self._place(struct.pack("<q", value)): (value - first // scale, scale)
            for value, scale in (
                (first, 1),
                (first + FILE_ROWS - 1, 1),
                (millis, 1000),
                (millis + FILE_ROWS // 1000, 1000),
            )
        }
        self._days = list(_places(self._record, day.encode()))

    def _place(self, part: bytes) -> int:
        (place,) = _places(self._record, part)
        return place

    def write(self, files: range) -> ManifestFileMeta:
        """Write a manifest of some files."""
        records = self.records(files)
        width = len(self._record)
        per_block = _BLOCK_BYTES // width
        blocks = (
            Block(len(part), part.tobytes())
            for part in (records[start : start + per_block] for start in range(0, len(records), per_block))
        )
        data, name = encode_container(MANIFEST_SCHEMA, blocks), f"manifest-{uuid.uuid4()}-0"
        self._ref.file_io.write(self._ref.layout.manifest_path(name), data)
        low, high = (encode_row([partition_value(each, self._files)], [STRING]) for each in (files[0], files[-1]))
        return ManifestFileMeta(
            file_name=name,
            file_size=len(data),
            num_added_files=len(files),
            num_deleted_files=0,
            partition_stats=SimpleStats(min_values=low, max_values=high, null_counts=(0,)),
            schema_id=self._ref.schema.id,
            min_bucket=0,
            max_bucket=max(self._buckets, 1) - 1,
            min_level=0,
            max_level=0,
        )

    def records(self, files: range) -> Any:  # noqa: ANN401 - an array
        """Return the entries of some files, one in each row."""
        numbers = np.arange(files.start, files.stop)
        rows = np.tile(np.frombuffer(self._record, np.uint8), (len(numbers), 1))
        rows[:, self._bucket] = 2 * (numbers % max(self._buckets, 1))
        name = self._record[self._name :]
        digits = [self._name + place for place in range(5, 41) if name[place : place + 1] != b"-"]
        rows[:, digits] = _DIGITS[np.random.default_rng(files.start).integers(0, 16, (len(numbers), len(digits)))]
        _set_longs(rows, self._size, 128 * 1024 * 1024 + numbers)
        _set_longs(rows, self._created, 1_700_000_000_000 + numbers)
        for place, (more, scale) in self._longs.items():
            rows[:, place : place + 8] = (numbers * (FILE_ROWS // scale) + more).astype("<i8")[:, None].view(np.uint8)
        partitions = numbers * PARTITIONS // self._files
        for place in self._days:
            for digit in range(3):
                rows[:, place + 6 - digit] = 0x30 + partitions // 10**digit % 10
        return rows


def _places(record: bytes, part: bytes) -> Iterator[int]:
    place = record.find(part)
    while place >= 0:
        yield place
        place = record.find(part, place + 1)


def _set_longs(rows: Any, place: int, values: Any) -> None:  # noqa: ANN401 - arrays
    """Write longs of as many bytes as the one that is there."""
    values, more = 2 * values, 0x80
    while more:
        more = int(rows[0, place]) & 0x80
        rows[:, place] = (values & 0x7F) | more
        values >>= 7
        place += 1
    if values.any():
        raise ValueError("a number has more bytes than that of the first entry")
