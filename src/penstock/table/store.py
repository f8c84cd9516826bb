"""The metadata files of one table, read and cached."""

from __future__ import annotations

import os
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import FormatError, NotFoundError, StorageError
from penstock.format.consumer import decode_consumer
from penstock.format.layout import consumer_id_of, freed_ids_of, schema_id_of, snapshot_id_of, tag_name_of
from penstock.format.manifest.columns import ManifestColumns, begin_decoding, columns_of_entries
from penstock.format.manifest.files import (
    decode_bucket_numbers,
    decode_file_numbers,
    decode_manifest,
    decode_manifest_list,
    number_buckets,
)
from penstock.format.schema import decode_schema
from penstock.format.snapshot import decode_hint, decode_snapshot, find_lost_ids, present_text
from penstock.format.tag import decode_tag
from penstock.format.text.json import decode_json
from penstock.table.metadata_cache import METADATA, MetadataCache, entry_bytes, meta_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from penstock.errors import TableStoreError
    from penstock.format.manifest.columns import Visit
    from penstock.format.manifest.entry import BucketNumbers, EntryNumbers, ManifestEntry, ManifestFileMeta
    from penstock.format.schema import TableSchema
    from penstock.format.snapshot import Snapshot
    from penstock.format.tag import Tag
    from penstock.io.file_io import FileIO
    from penstock.table.location import HasLocation

_HINT_TRIES: Final = 3
_CONSUMER_TRIES: Final = 10
_CONSUMER_WAIT_SECONDS: Final = 0.2
# How many snapshots a reader skips while a concurrent expiration deletes them (Paimon SnapshotManager).
_EARLIEST_STEPS: Final = 300
_LISTINGS: Final = 10
_READ_AT_ONCE: Final = 64
# Fewer entries take less time than to start a thread.
_MIN_THREADED: Final = 20_000
# Enough that the thread that uncompresses rarely waits.
_MANIFESTS_AHEAD: Final = 2
# Limit for manifests that are read in parallel; their bytes are held in memory until they are decoded.
_BATCH_BYTES: Final = 33_554_432


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaFiles:
    """A listing of a table's schema directory.

    Attributes:
        ids: of all schemas, ascending; empty if there is no table.
        freed_ids: snapshot ids that rollbacks have freed, in no particular order.
    """

    ids: tuple[int, ...]
    freed_ids: tuple[range, ...]


@dataclass(slots=True)
class _Seen:
    """What the last request for the latest snapshot has seen.

    Attributes:
        id: the snapshot, as a guess for the next request.
        dangling_hint: the hint, if the listing showed no snapshot with its id or a later one.
    """

    id: int | None = None
    dangling_hint: int | None = None


class MetadataStore:
    """Loads snapshots, schemas, manifests, tags and consumers of one table.

    Manifests and manifest lists have unique names and never change, so they are cached for the process. Schemas are
    cached in this object, because a table that is created again at the location uses their names again. Snapshots are
    not cached: after a rollback, a snapshot id is used again with other content.

    Args:
        table: a ``TableRef`` or a ``TableLocation``.
        identity: result of ``load_identity``, if it is known; then its schemas are cached for the process.
        cache: of manifests and manifest lists.
        sleep: called with seconds, between tries to read files that are overwritten in place.
    """

    def __init__(
        self,
        table: HasLocation,
        *,
        identity: str | None = None,
        cache: MetadataCache = METADATA,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name = table.name
        self.location = table.location
        self.layout = table.layout
        self.file_io = table.file_io
        self.limits = table.limits
        self._sleep = sleep
        self._schemas = {} if identity is None else _schemas_of(self.file_io, self.location, identity)
        self._cache = cache
        self._seen = _Seen()

    def reading(self, file_io: FileIO) -> MetadataStore:
        """Return this store with reads through another view of its storage, such as one of ``FileIO.prefetch``."""
        other = copy(self)
        other.file_io = file_io
        return other

    def note_latest(self, snapshot: Snapshot) -> None:
        """Record which snapshot is the latest one, as a guess for the next request."""
        self._seen.id = snapshot.id

    # Schemas

    def list_schema_ids(self) -> tuple[int, ...]:
        """Ids of all schemas, ascending; empty if there is no table."""
        return self._ids(self.layout.schema_directory, schema_id_of)

    def latest_schema_id(self) -> int:
        """Return the largest schema id.

        Raises:
            NotFoundError: there is no schema, so this is not a table.
        """
        return self._last_of(self.list_schema_ids())

    def list_schema_files(self) -> SchemaFiles:
        """List the schema directory once: schema ids, and the snapshot ids that rollbacks have freed.

        Raises:
            NotFoundError: there is no schema, so this is not a table.
        """
        names = [status.name for status in self.file_io.list(self.layout.schema_directory) if not status.is_dir]
        ids = sorted(number for number in map(schema_id_of, names) if number is not None)
        self._last_of(ids)
        freed = [found for found in map(freed_ids_of, names) if found is not None]
        return SchemaFiles(ids=tuple(ids), freed_ids=tuple(freed))

    def _last_of(self, schema_ids: Sequence[int]) -> int:
        if not schema_ids:
            raise NotFoundError(f"{self.location} is not a table: it holds no schema/schema-0; check the location")
        return schema_ids[-1]

    def load_latest_schema(self) -> TableSchema:
        """Load the schema of the largest id. Raises as ``latest_schema_id`` and ``load_schema`` do."""
        return self.load_schema(self.latest_schema_id())

    def load_schema(self, schema_id: int) -> TableSchema:
        """Load one schema.

        Raises:
            NotFoundError: there is no such schema.
            FormatError: the schema is damaged.
        """
        schema = self._schemas.get(schema_id)
        if schema is None:
            path = self.layout.schema_path(schema_id)
            try:
                data = self.file_io.read(path)
            except NotFoundError as error:
                raise NotFoundError(
                    f"table {self.name}: schema {schema_id} is missing ({self.file_io.real(path)}), files written with "
                    "it cannot be read; restore it from a copy"
                ) from error
            schema = self._schemas[schema_id] = decode_schema(data, self.file_io.real(path))
        return schema

    def find_schemas(self, on_damaged: Callable[[int, TableStoreError], None]) -> Iterator[TableSchema]:
        """Yield all schemas, ascending by id; ``on_damaged`` is called with the id of each that cannot be read."""
        for schema_id in self.list_schema_ids():
            try:
                yield self.load_schema(schema_id)
            except (FormatError, NotFoundError) as error:
                on_damaged(schema_id, error)

    # Snapshots

    def list_snapshot_ids(self) -> tuple[int, ...]:
        """Ids of all snapshots, ascending."""
        return self._ids(self.layout.snapshot_directory, snapshot_id_of)

    def latest_snapshot_id(self) -> int | None:
        """Return the id of the latest snapshot; None when nothing was ever committed.

        The hint is used if its snapshot exists and the next one does not; otherwise the directory is listed.

        Source:
            Paimon ``core:utils/HintFileUtils.java``; checking that n itself exists is Penstock's addition, for wrong
            hints.
        """
        with self.file_io.prefetch() as ahead:
            store = self.reading(ahead)
            store.request_latest()
            hint = store._read_hint(self.layout.latest_hint_path)  # noqa: SLF001 - of this class
            if hint is not None and not store.has_snapshot(hint + 1) and store.has_snapshot(hint):
                self._seen.id = hint
                return hint
        return max(self.list_snapshot_ids(), default=None)

    def request_latest(self) -> None:
        """Request what ``load_latest_snapshot`` reads: the hint, its snapshot and the next one.

        The latest snapshot that this object has seen is probably that of the hint, so it is requested together with it.
        """
        hint_path = self.layout.latest_hint_path
        file_io = self.file_io
        if file_io.is_requested(hint_path):
            return
        file_io.drop_requested(f"{self.layout.snapshot_directory}/")
        self._request_two(self._seen.id)
        file_io.request_read(hint_path, then=lambda data: self._request_two(decode_hint(data)))

    def request_earliest(self) -> None:
        """Request the hint of the earliest snapshot, that snapshot and the one after it."""
        path = self.layout.earliest_hint_path
        self.file_io.request_read(path, then=lambda data: self._request_two(decode_hint(data)))

    def _request_two(self, hint: int | None) -> None:
        """Request the snapshot of a hint and the one after it."""
        if hint is not None and hint > 0:
            self.file_io.request_read(self.layout.snapshot_path(hint))
            self.file_io.request_read(self.layout.snapshot_path(hint + 1))

    def has_snapshot(self, snapshot_id: int) -> bool:
        """Whether a snapshot exists; costs one request to storage."""
        return self.file_io.has_file(self.layout.snapshot_path(snapshot_id))

    def earliest_snapshot_id(self) -> int | None:
        """Return the id of the earliest snapshot that still exists; None when there is none."""
        hint = self._read_hint(self.layout.earliest_hint_path)
        if hint is not None and self.has_snapshot(hint):
            return hint
        return min(self.list_snapshot_ids(), default=None)

    @property
    def dangling_hint(self) -> int | None:
        """The hint that ``load_latest_snapshot`` read last, if all snapshots that it listed were older; mostly None."""
        return self._seen.dangling_hint

    def load_latest_hint(self) -> int | None:
        """Return the id in the hint of the latest snapshot; None without a usable hint."""
        return self._read_hint(self.layout.latest_hint_path)

    def load_snapshot(self, snapshot_id: int) -> Snapshot:
        """Load one snapshot.

        Raises:
            NotFoundError: the snapshot has expired or does not exist yet; the message says which snapshots exist.
            FormatError: the snapshot is damaged.
        """
        snapshot = self.find_snapshot(snapshot_id)
        if snapshot is None:
            raise NotFoundError(f"table {self.name}: {self._why_missing(snapshot_id)}")
        return snapshot

    def find_snapshot(self, snapshot_id: int) -> Snapshot | None:
        """Load one snapshot; None when it has expired or does not exist yet.

        Raises:
            FormatError: it is damaged.
        """
        path = self.layout.snapshot_path(snapshot_id)
        try:
            return decode_snapshot(self.file_io.read(path), self.file_io.real(path))
        except NotFoundError:
            return None

    def load_latest_snapshot(self) -> Snapshot | None:
        """Load the latest snapshot; None when nothing was ever committed.

        Raises:
            FormatError: the snapshot is damaged.
            StorageError: in ten listings in a row, all listed snapshots had expired before one could be read.
        """
        try:
            snapshot = self._load_latest_snapshot()
        except FormatError as error:
            newest = self.load_newest_readable_snapshot()
            if newest is None:
                raise
            raise FormatError(f"{error}: penstock rollback {self.name} --snapshot-id {newest.id}") from error
        self._seen.id = None if snapshot is None else snapshot.id
        return snapshot

    def _load_latest_snapshot(self) -> Snapshot | None:
        self._seen.dangling_hint = None
        for number in range(_LISTINGS):
            with self.file_io.prefetch() as ahead:
                store = self.reading(ahead)
                store.request_latest()
                hint = store._read_hint(self.layout.latest_hint_path)  # noqa: SLF001 - of this class
                if hint is not None and not store.has_snapshot(hint + 1):
                    snapshot = store.find_snapshot(hint)
                    if snapshot is not None:
                        return snapshot
            ids = self.list_snapshot_ids()
            self._seen.dangling_hint = hint if hint is not None and hint > max(ids, default=0) else None
            if not ids:
                return None
            # If the latest snapshot of the listing is gone, a rollback or an expiration has deleted it since. Then list
            # again, as the snapshot before it may not be the latest one now. The last try accepts every snapshot of the
            # listing, because another process's rollback may take long.
            for snapshot_id in reversed(ids if number == _LISTINGS - 1 else ids[-1:]):
                snapshot = self.find_snapshot(snapshot_id)
                if snapshot is not None:
                    return snapshot
            # The snapshots were deleted after the listing. The table is not empty, so list again.
        raise StorageError(
            f"table {self.name}: {_LISTINGS} times in a row, all listed snapshots had expired before one of them was "
            "read; try again, with less frequent expirations",
            True,  # noqa: FBT003 - positional, so that pickling works
        )

    def load_newest_readable_snapshot(self) -> Snapshot | None:
        """Load the newest snapshot whose file is not damaged; None when there is none."""
        for snapshot_id in reversed(self.list_snapshot_ids()):
            with suppress(FormatError):
                snapshot = self.find_snapshot(snapshot_id)
                if snapshot is not None:
                    return snapshot
        return None

    def load_earliest_snapshot(self) -> Snapshot | None:
        """Load the earliest snapshot, skipping those that a concurrent expiration deletes; None when there is none."""
        hint = self._read_hint(self.layout.earliest_hint_path)
        snapshot = None if hint is None else self.find_snapshot(hint)
        earliest = min(self.list_snapshot_ids(), default=None) if snapshot is None else None
        if earliest is None:
            return snapshot
        for snapshot_id in range(earliest, earliest + _EARLIEST_STEPS):
            snapshot = self.find_snapshot(snapshot_id)
            if snapshot is not None:
                return snapshot
        return None

    def snapshots_between(self, first: int | None = None, last: int | None = None) -> Iterator[Snapshot]:
        """Yield the snapshots with ids from ``first`` to ``last``, both included, ascending; skip expired ones.

        Args:
            first: None for the earliest.
            last: None for the latest.
        """
        ids = [
            snapshot_id
            for snapshot_id in self.list_snapshot_ids()
            if (first is None or snapshot_id >= first) and (last is None or snapshot_id <= last)
        ]
        yield from self.find_snapshots(ids)

    def find_snapshots(
        self, ids: Sequence[int], *, on_damaged: Callable[[int, FormatError], None] | None = None
    ) -> Iterator[Snapshot]:
        """Yield those of the given snapshots that exist, in the order given.

        Args:
            on_damaged: called with the id of each damaged snapshot, which is skipped.

        Raises:
            FormatError: one is damaged, and there is no ``on_damaged``.
        """
        for start in range(0, len(ids), self.snapshots_at_once):
            part = ids[start : start + self.snapshots_at_once]
            paths = [self.layout.snapshot_path(snapshot_id) for snapshot_id in part]
            fetched = self.file_io.read_many(paths)
            for snapshot_id, path in zip(part, paths, strict=True):
                if path not in fetched:
                    continue
                try:
                    snapshot = decode_snapshot(fetched[path], self.file_io.real(path))
                except FormatError as error:
                    if on_damaged is None:
                        raise
                    on_damaged(snapshot_id, error)
                    continue
                yield snapshot

    @property
    def snapshots_at_once(self) -> int:
        """Number of snapshots that are read in the time of one: one if the storage is fast."""
        return _READ_AT_ONCE if self.file_io.is_slow else 1

    def is_statistics_of(self, snapshot: Snapshot, schema_id: int) -> bool:
        """Whether the snapshot names a readable statistics file that was created with this schema."""
        if snapshot.statistics is None:
            return False
        path = self.layout.statistics_path(snapshot.statistics)
        try:
            return decode_json(self.file_io.read(path), "statistics file", path).integer("schemaId") == schema_id
        except (NotFoundError, FormatError):
            return False

    # Manifests

    def load_manifests(self, snapshot: Snapshot) -> tuple[ManifestFileMeta, ...]:
        """Return all manifests of the snapshot: those of the base list, then those of the delta list."""
        self._read_ahead([snapshot.base_manifest_list, snapshot.delta_manifest_list])
        return (*self.load_base_manifests(snapshot), *self.load_delta_manifests(snapshot))

    def load_base_manifests(self, snapshot: Snapshot) -> tuple[ManifestFileMeta, ...]:
        """Return the manifests of the state before the snapshot. Raises as ``load_manifest``."""
        return self._load_list(snapshot.base_manifest_list, snapshot.id)

    def load_delta_manifests(self, snapshot: Snapshot) -> tuple[ManifestFileMeta, ...]:
        """Return the manifests of the snapshot's changes. Raises as ``load_manifest``."""
        return self._load_list(snapshot.delta_manifest_list, snapshot.id)

    def load_delta(self, snapshot: Snapshot) -> tuple[ManifestEntry, ...]:
        """Load the ADD and DELETE entries of the snapshot's changes, in file order."""
        return tuple(
            entry
            for meta in self.load_delta_manifests(snapshot)
            for entry in self.load_manifest(meta.file_name, meta.file_size, snapshot_id=snapshot.id)
        )

    def iter_manifests(
        self, metas: Sequence[ManifestFileMeta], *, snapshot_id: int | None = None
    ) -> Iterator[Sequence[ManifestEntry]]:
        """Yield the entries of each manifest, as ``load_manifest``; reads several at once where the storage is slow."""
        for meta in self._in_batches(metas):
            yield self.load_manifest(meta.file_name, meta.file_size, snapshot_id=snapshot_id)

    def iter_columns(
        self, metas: Sequence[ManifestFileMeta], *, snapshot_id: int | None = None, visit: Visit | None = None
    ) -> Iterator[ManifestColumns]:
        """Yield the entries of each manifest as columns; otherwise like ``iter_manifests``.

        Args:
            visit: of ``decode_manifest_columns``; not called for manifests that are cached. Of many entries, a thread
                uncompresses manifests while those before them are decoded.
        """
        entries = sum(meta.num_added_files + meta.num_deleted_files for meta in metas)
        ahead = _MANIFESTS_AHEAD if entries >= _MIN_THREADED and (os.cpu_count() or 1) > 1 else 0
        with ThreadPoolExecutor(1, thread_name_prefix="penstock-manifests") as pool:
            pending: deque[Callable[[], ManifestColumns]] = deque()
            try:
                for meta in self._in_batches(metas):
                    path = self.layout.manifest_path(meta.file_name)
                    content = self._decoded(path)
                    if content is not None:
                        pending.append(partial(_as_columns, content))
                    else:
                        data = self._read_whole_manifest(meta.file_name, meta.file_size, snapshot_id)
                        start = (lambda compute: pool.submit(compute).result) if ahead else (lambda compute: compute)
                        end = begin_decoding(data, path, self.limits, visit, start)
                        pending.append(partial(self._end_decoding, data, path, end))
                    if len(pending) > ahead:
                        yield pending.popleft()()
                while pending:
                    yield pending.popleft()()
            finally:
                pool.shutdown(cancel_futures=True)

    def _end_decoding(self, data: bytes, path: str, end: Callable[[], ManifestColumns | None]) -> ManifestColumns:
        content = end()
        if content is None:
            return columns_of_entries(self._decode(data, path))
        content = replace(content, keep=partial(self._keep, path))
        self._cache.put(self.file_io, path, content, _columns_bytes(content))
        return content

    def iter_entry_numbers(
        self, metas: Sequence[ManifestFileMeta], *, snapshot_id: int | None = None
    ) -> Iterator[Sequence[ManifestEntry | EntryNumbers]]:
        """Yield as ``iter_manifests``, but faster, only the fields of the entries that sequence numbers need."""
        for meta in self._in_batches(metas):
            path = self.layout.manifest_path(meta.file_name)
            content = self._decoded(path)
            if content is not None:
                yield self._entries_of(content)
                continue
            data = self._read_whole_manifest(meta.file_name, meta.file_size, snapshot_id)
            yield decode_file_numbers(data, path, self.limits)

    def iter_bucket_numbers(
        self, metas: Sequence[ManifestFileMeta], *, snapshot_id: int | None = None
    ) -> Iterator[tuple[ManifestFileMeta, tuple[BucketNumbers, ...] | None]]:
        """Yield the largest sequence numbers of each manifest by bucket; None if its entries have to be decoded."""
        for meta in self._in_batches(metas):
            content = self._decoded(self.layout.manifest_path(meta.file_name))
            entries = content if isinstance(content, tuple) or content is None else content.decoded
            if entries is not None:
                yield meta, number_buckets(entries)
                continue
            if isinstance(content, ManifestColumns) and content.encoded is not None:
                data = content.encoded.data
            else:
                data = self._read_whole_manifest(meta.file_name, meta.file_size, snapshot_id)
            yield meta, decode_bucket_numbers(data, meta.num_added_files + meta.num_deleted_files)

    def fetch_changes(self, snapshots: Sequence[Snapshot]) -> None:
        """Read the manifest lists of snapshots and the manifests of their changes in parallel, if storage is slow.

        Missing files, and files that exceed the memory limit, are left to the calls that need them.
        """
        self._read_ahead([name for each in snapshots for name in (each.base_manifest_list, each.delta_manifest_list)])
        self.fetch_deltas(snapshots)

    def fetch_deltas(self, snapshots: Sequence[Snapshot]) -> None:
        """Read what ``load_delta`` needs for snapshots, in the same way."""
        if not self.file_io.is_slow:
            return
        self._read_ahead([each.delta_manifest_list for each in snapshots])
        metas: list[ManifestFileMeta] = []
        for snapshot in snapshots:
            with suppress(NotFoundError, FormatError):
                metas += self.load_delta_manifests(snapshot)
        self._read_ahead([meta.file_name for meta in metas[: self._batch_end(metas, 0)]])

    def request_changes(self, snapshot_ids: Iterable[int]) -> None:
        """Request snapshots, and with each the manifests of its changes."""

        def read_manifests(data: bytes, path: str) -> None:
            with suppress(NotFoundError, FormatError, StorageError):
                snapshot = decode_snapshot(data, path)
                for meta in self._load_list(snapshot.delta_manifest_list, snapshot.id):
                    manifest = self.layout.manifest_path(meta.file_name)
                    if self._cache.get(self.file_io, manifest) is None:
                        content = self.file_io.read(manifest)
                        self._cache.put(self.file_io, manifest, content, len(content))

        for snapshot_id in dict.fromkeys(each for each in snapshot_ids if each > 0):
            path = self.layout.snapshot_path(snapshot_id)
            self.file_io.request_read(path, then=partial(read_manifests, path=path))

    def _in_batches(self, metas: Sequence[ManifestFileMeta]) -> Iterator[ManifestFileMeta]:
        """Yield the manifests; before the first of each batch, those that are not cached are read in parallel."""
        end = 0
        for index, meta in enumerate(metas):
            if index >= end:
                end = self._batch_end(metas, index)
                self._read_ahead([each.file_name for each in metas[index:end]])
            yield meta

    def _batch_end(self, metas: Sequence[ManifestFileMeta], start: int) -> int:
        """Return the index of the first manifest that is too much for one batch."""
        size = 0
        for index, meta in enumerate(metas[start:], start):
            size += meta.file_size
            if size > _BATCH_BYTES and index > start:
                return index
        return len(metas)

    def _read_ahead(self, names: Sequence[str]) -> None:
        """Read and cache those manifests or lists that are not cached, in parallel, if the storage is slow."""
        if not self.file_io.is_slow:
            return
        paths = [self.layout.manifest_path(name) for name in names]
        missing = [path for path in paths if self._cache.get(self.file_io, path) is None]
        for path, data in self.file_io.read_many(missing).items():
            self._cache.put(self.file_io, path, data, len(data))

    def load_manifest(self, name: str, size: int, *, snapshot_id: int | None = None) -> Sequence[ManifestEntry]:
        """Load the entries of one manifest, in file order.

        Args:
            size: size in bytes by the manifest list; used only to detect a file that was cut off.
            snapshot_id: the snapshot that the manifest belongs to, for messages.

        Raises:
            NotFoundError: the manifest does not exist, because the snapshot has expired or because the file was lost.
            FormatError: the manifest is damaged.
        """
        path = self.layout.manifest_path(name)
        content = self._decoded(path)
        if content is not None:
            return self._entries_of(content)
        return self._decode(self._read_whole_manifest(name, size, snapshot_id), path)

    def _decode(self, data: bytes, path: str) -> tuple[ManifestEntry, ...]:
        entries = tuple(decode_manifest(data, path, self.limits))
        self._cache.put(self.file_io, path, entries, entry_bytes(entries))
        return entries

    def _entries_of(self, content: tuple[Any, ...] | ManifestColumns) -> tuple[Any, ...]:
        return content if isinstance(content, tuple) else content.decoded or tuple(content.entries())

    def _keep(self, path: str, columns: ManifestColumns) -> None:
        """Cache more of a manifest while there is space: without its entries, 14 µs each are lost."""
        size = _columns_bytes(columns)
        if self._cache.has_space(size):
            self._cache.put(self.file_io, path, columns, size)

    def read_index_manifest(self, snapshot: Snapshot) -> bytes | None:
        """Return the bytes of the snapshot's index manifest; None when it has none. Raises ``NotFoundError``."""
        return None if snapshot.index_manifest is None else self._read_manifest(snapshot.index_manifest, snapshot.id)

    def _load_list(self, name: str, snapshot_id: int) -> tuple[ManifestFileMeta, ...]:
        path = self.layout.manifest_path(name)
        content = self._decoded(path)
        if isinstance(content, tuple):
            return content
        metas = tuple(decode_manifest_list(self._read_manifest(name, snapshot_id), path, self.limits))
        if len({meta.file_name for meta in metas}) < len(metas):
            # Every entry would occur twice, which is an error too, but detecting it may take a minute.
            raise FormatError(
                f"table {self.name}, snapshot {snapshot_id}: manifest list {path} names a manifest twice, it is "
                "damaged; roll back to a snapshot from before it"
            )
        self._cache.put(self.file_io, path, metas, meta_bytes(metas))
        return metas

    def _decoded(self, path: str) -> tuple[Any, ...] | ManifestColumns | None:
        """Return the decoded content, if it is cached and has no more records than the limit of this table."""
        content = self._cache.get(self.file_io, path)
        return None if isinstance(content, bytes) or content is None or len(content) > self.limits.records else content

    def _read_whole_manifest(self, name: str, size: int, snapshot_id: int | None) -> bytes:
        data = self._read_manifest(name, snapshot_id)
        if len(data) < size:
            path = self.layout.manifest_path(name)
            raise FormatError(
                f"table {self.name}{_of(snapshot_id)}: manifest {path} has {len(data)} of {size} bytes, it was cut "
                "off; restore it from a copy, or roll back to a snapshot from before it"
            )
        return data

    def _read_manifest(self, name: str, snapshot_id: int | None) -> bytes:
        """Return the bytes of a manifest, list or index manifest; they are cached if the storage is slow."""
        path = self.layout.manifest_path(name)
        content = self._cache.get(self.file_io, path)
        if isinstance(content, bytes):
            return content
        try:
            data = self.file_io.read(path)
        except NotFoundError as error:
            if snapshot_id is not None and not self.has_snapshot(snapshot_id):
                cause = f"the snapshot has meanwhile expired: {self._why_missing(snapshot_id)}"
            else:
                cause = (
                    "find out with 'penstock fsck', restore the file from a copy, or roll back to a snapshot before it"
                )
            raise NotFoundError(f"table {self.name}{_of(snapshot_id)}: {path} is missing; {cause}") from error
        if self.file_io.is_slow:
            self._cache.put(self.file_io, path, data, len(data))
        return data

    # Tags and consumers

    def list_tags(self) -> tuple[str, ...]:
        """Names of all tags, sorted."""
        return self._names(self.layout.tag_directory, tag_name_of)

    def load_tag(self, name: str) -> Tag:
        """Load one tag.

        Raises:
            NotFoundError: there is no tag of that name; the message lists the tags that exist.
            FormatError: it is damaged.
        """
        path = self.layout.tag_path(name)
        try:
            data = self.file_io.read(path)
        except NotFoundError as error:
            tags = self.list_tags()
            known = "its tags are " + ", ".join(f"'{tag}'" for tag in tags) if tags else "it has no tags"
            raise NotFoundError(f"table {self.name}: no tag '{name}'; {known}") from error
        return decode_tag(data, self.file_io.real(path))

    def find_tags(self, on_damaged: Callable[[str, FormatError], None]) -> Iterator[tuple[str, Tag]]:
        """Yield all tags with their names, sorted; ``on_damaged`` is called with the name of each damaged one."""
        for name in self.list_tags():
            try:
                yield name, self.load_tag(name)
            except NotFoundError:  # deleted since they were listed
                continue
            except FormatError as error:
                on_damaged(name, error)

    def list_consumers(self) -> tuple[str, ...]:
        """Ids of all consumers, sorted."""
        return self._names(self.layout.consumer_directory, consumer_id_of)

    def load_consumer(self, consumer_id: str) -> int | None:
        """Return the first snapshot that a consumer has not read yet; None when there is no such consumer.

        Raises:
            FormatError: the consumer file stays unreadable for two seconds.
        """
        path = self.layout.consumer_path(consumer_id)
        for tries_left in range(_CONSUMER_TRIES - 1, -1, -1):
            try:
                return decode_consumer(self.file_io.read(path), self.file_io.real(path))
            except NotFoundError:
                return None
            except FormatError:
                if not tries_left:
                    raise
                self._sleep(_CONSUMER_WAIT_SECONDS)  # the file is overwritten in place: this read may be partial
        return None

    def find_consumers(self, on_damaged: Callable[[str, FormatError], None] | None = None) -> Iterator[tuple[str, int]]:
        """Yield all consumers, sorted, with the first snapshots that they have not read yet.

        Args:
            on_damaged: called with the id of each damaged consumer, which is skipped.

        Raises:
            FormatError: one is damaged, and there is no ``on_damaged``.
        """
        for consumer_id in self.list_consumers():
            try:
                position = self.load_consumer(consumer_id)
            except FormatError as error:
                if on_damaged is None:
                    raise
                on_damaged(consumer_id, error)
                continue
            if position is not None:
                yield consumer_id, position

    def is_lost(self, snapshot_id: int) -> bool:
        """Whether a snapshot is missing between others although neither an expiration nor a rollback deletes it alone.

        Raises:
            StorageError: the storage failed.
        """
        ids = self.list_snapshot_ids()
        lower, upper = [each for each in ids if each < snapshot_id], [each for each in ids if each > snapshot_id]
        if snapshot_id in ids or not lower or not upper:
            return False
        # If a rollback has freed the ids between, its own snapshot follows them.
        above = self.find_snapshots(upper[:1], on_damaged=lambda _id, _error: None)
        return bool(find_lost_ids((lower[-1], upper[0]), above)) and upper[0] > self.load_expiring_end()

    def load_expiring_end(self) -> int:
        """Return the id below which files of snapshots may be deleted; 0 if there are none. Raises ``StorageError``."""
        try:
            return decode_hint(self.file_io.read(self.layout.expiring_path)) or 0
        except NotFoundError:
            return 0

    def _why_missing(self, snapshot_id: int) -> str:
        ids = self.list_snapshot_ids()
        if not ids:
            return f"snapshot {snapshot_id} does not exist, nothing was committed yet"
        available = present_text(ids[0], ids[-1])
        if snapshot_id > ids[-1]:
            return f"snapshot {snapshot_id} does not exist yet; {available}"
        tags = self.list_tags()
        kept = ", or the tags " + ", ".join(f"'{tag}'" for tag in tags) if tags else ""
        if self.is_lost(snapshot_id):
            return (
                f"snapshot {snapshot_id} is missing, although earlier and later ones are there: its file was lost; "
                f"restore {self.layout.snapshot_path(snapshot_id)} from a copy ('penstock fsck' lists all that is "
                f"missing), or read another snapshot from {ids[0]} to {ids[-1]}{kept}"
            )
        reason = "has expired" if 0 < snapshot_id < ids[0] else "does not exist"
        return f"snapshot {snapshot_id} {reason}; {available}{kept}"

    def _read_hint(self, path: str) -> int | None:
        for tries_left in range(_HINT_TRIES - 1, -1, -1):
            try:
                hint = decode_hint(self.file_io.read(path))
            except NotFoundError:
                return None
            if hint is not None and hint > 0:
                return hint
            if tries_left:
                self._sleep(0.001)  # the file is overwritten in place: this read may have found it empty
        return None

    def _ids(self, directory: str, id_of: Callable[[str], int | None]) -> tuple[int, ...]:
        found = (id_of(status.name) for status in self.file_io.list(directory) if not status.is_dir)
        return tuple(sorted(number for number in found if number is not None))

    def _names(self, directory: str, name_of: Callable[[str], str | None]) -> tuple[str, ...]:
        found = (name_of(status.name) for status in self.file_io.list(directory) if not status.is_dir)
        return tuple(sorted(name for name in found if name is not None))


# A handful of schemas of each table; a process works on few tables at a time.
@lru_cache(maxsize=64)
def _schemas_of(_file_io: FileIO, _location: str, _identity: str) -> dict[int, TableSchema]:
    """Return the schemas that were loaded of a table, which another one at the same location does not share."""
    return {}


def _as_columns(content: tuple[Any, ...] | ManifestColumns) -> ManifestColumns:
    return content if isinstance(content, ManifestColumns) else columns_of_entries(content)


def _columns_bytes(columns: ManifestColumns) -> int:
    visited = sum(each.nbytes for each in columns.visited if each is not None)
    return columns.nbytes + visited + entry_bytes(columns.decoded or ())


def _of(snapshot_id: int | None) -> str:
    return "" if snapshot_id is None else f", snapshot {snapshot_id}"
