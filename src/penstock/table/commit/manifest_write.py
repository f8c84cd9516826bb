"""Writing manifests and manifest lists.

Source:
    Paimon ``core:manifest/ManifestFile.java``, ``ManifestList.java``; docs/spec/format.md section 5.
"""

from __future__ import annotations

import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.errors import StorageError
from penstock.format.layout import MANIFEST_LIST_PREFIX, MANIFEST_PREFIX, NameSource, TableLayout
from penstock.format.manifest.entry import FileKind, ManifestEntry, ManifestFileMeta
from penstock.format.manifest.files import encode_manifest, encode_manifest_list
from penstock.format.manifest.stats import partition_stats
from penstock.table.metadata_cache import METADATA, entry_bytes, meta_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from penstock.format.types.data_types import DataType
    from penstock.io.file_io import FileIO
    from penstock.options import ManifestOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class ListFile:
    """A manifest list on storage: its name and exact size."""

    name: str
    size: int


def least_split_bytes(target_bytes: int) -> int:
    """Return the minimum average size of manifests when entries are split among several.

    It is above the target size by enough that no manifest is smaller than the target. Smaller manifests would be
    merged and split again by each commit.
    """
    return target_bytes + target_bytes // 16


@dataclass(slots=True, kw_only=True)
class ManifestWriter:
    """Writes the metadata files of one commit and records their paths, so that they can be deleted after a lost race.

    Attributes:
        location: the table's directory.
        partition_types: for the statistics of each manifest.
        written: paths of all files written, without those that ``forget`` has removed.
    """

    file_io: FileIO
    location: str
    options: ManifestOptions
    partition_types: tuple[DataType, ...]
    manifest_names: NameSource = field(default_factory=lambda: NameSource(MANIFEST_PREFIX, str(uuid.uuid4())))
    list_names: NameSource = field(default_factory=lambda: NameSource(MANIFEST_LIST_PREFIX, str(uuid.uuid4())))
    written: list[str] = field(default_factory=list)
    _waiting: list[Callable[[], None]] | None = None

    def write_manifests(self, entries: Sequence[ManifestEntry], *, schema_id: int) -> tuple[ManifestFileMeta, ...]:
        """Write the entries, in order, to manifests of ``manifest.target-file-size`` or slightly more.

        Args:
            entries: if empty, no manifest is written.
            schema_id: recorded if the entries' files have none larger.
        """
        if not entries:
            return ()
        data = self._encode(entries)
        parts = len(data) // least_split_bytes(self.options.manifest_target_file_bytes)
        if parts <= 1 or len(entries) == 1:
            return (self._write_manifest(entries, data, schema_id),)
        size = -(-len(entries) // min(parts, len(entries)))
        chunks = [entries[start : start + size] for start in range(0, len(entries), size)]
        return tuple(self._write_manifest(chunk, self._encode(chunk), schema_id) for chunk in chunks)

    def write_list(self, manifests: Sequence[ManifestFileMeta]) -> ListFile:
        """Write a manifest list; a list without manifests is written as a file too (docs/spec/format.md section 3)."""
        data = encode_manifest_list(
            manifests, codec=self.options.manifest_compression, level=self.options.compression_zstd_level
        )
        name = self.list_names.next_name()
        self._write(name, data, manifests, meta_bytes(manifests))
        return ListFile(name=name, size=len(data))

    def forget(self, names: Collection[str]) -> None:
        """Never delete these files from now on: a snapshot names them."""
        kept = {TableLayout(self.location).manifest_path(name) for name in names}
        self.written = [path for path in self.written if path not in kept]

    def delete_written(self, *, keep: Collection[str] = ()) -> None:
        """Delete the written files, except those in ``keep``; files that cannot be deleted remain as orphans."""
        kept = {TableLayout(self.location).manifest_path(name) for name in keep}
        for path in self.written:
            if path not in kept:
                with suppress(StorageError):
                    self.file_io.delete(path)
        self.written = [path for path in self.written if path in kept]

    @contextmanager
    def written_at_once(self, *, also: Callable[[], None]) -> Iterator[None]:
        """Write the files of the block when it ends, in parallel if the storage is slow to answer.

        Args:
            also: called at the same time.
        """
        self._waiting = []
        try:
            yield
            self.file_io.run_many([*self._waiting, also])
        finally:
            self._waiting = None

    @contextmanager
    def deleted_on_error(self) -> Iterator[None]:
        """Delete the written files if the block raises."""
        try:
            yield
        except BaseException:
            self.delete_written()
            raise

    def _encode(self, entries: Sequence[ManifestEntry]) -> bytes:
        return encode_manifest(
            entries, codec=self.options.manifest_compression, level=self.options.compression_zstd_level
        )

    def _write_manifest(self, entries: Sequence[ManifestEntry], data: bytes, schema_id: int) -> ManifestFileMeta:
        name = self.manifest_names.next_name()
        self._write(name, data, entries, entry_bytes(entries))
        deleted = sum(entry.kind is FileKind.DELETE for entry in entries)
        buckets = [entry.bucket for entry in entries]
        levels = [entry.file.level for entry in entries]
        row_ids = [entry.file.first_row_id for entry in entries]
        first_row_ids = [row_id for row_id in row_ids if row_id is not None]
        # Row ids are recorded only when every entry has one (docs/spec/format.md section 5.1).
        has_row_ids = len(first_row_ids) == len(entries)
        last_row_ids = [
            entry.file.first_row_id + entry.file.row_count - 1
            for entry in entries
            if entry.file.first_row_id is not None
        ]
        return ManifestFileMeta(
            file_name=name,
            file_size=len(data),
            num_added_files=len(entries) - deleted,
            num_deleted_files=deleted,
            partition_stats=partition_stats([entry.partition for entry in entries], self.partition_types),
            schema_id=max((entry.file.schema_id for entry in entries), default=schema_id),
            min_bucket=min(buckets),
            max_bucket=max(buckets),
            min_level=min(levels),
            max_level=max(levels),
            min_row_id=min(first_row_ids) if has_row_ids else None,
            max_row_id=max(last_row_ids) if has_row_ids else None,
        )

    def _write(self, name: str, data: bytes, content: Sequence[Any], size: int) -> None:
        path = TableLayout(self.location).manifest_path(name)
        # The path is recorded before the write: a failed write may have created the file nevertheless.
        self.written.append(path)
        write = partial(self._write_now, path, data, tuple(content), size)
        if self._waiting is None:
            write()
        else:
            self._waiting.append(write)

    def _write_now(self, path: str, data: bytes, content: tuple[Any, ...], size: int) -> None:
        self.file_io.write(path, data)
        METADATA.put(self.file_io, path, content, size)
