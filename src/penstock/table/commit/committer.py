"""The commit protocol: all changes of a commit become one snapshot, or none does.

An attempt writes all metadata on top of the latest snapshot, and creates ``snapshot-N`` last, by ``put_if_absent``. If
it loses the race for the id, the next attempt starts from the new latest snapshot: data files are kept, metadata is
written again.

Source:
    Paimon ``core:operation/FileStoreCommitImpl.java``; docs/spec/commit.md sections 3 to 5.
"""

from __future__ import annotations

import random
import time
import uuid
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, assert_never

from penstock.clocks import utc_millis
from penstock.errors import (
    CheckpointError,
    CommitConflictError,
    CommitUnknownError,
    FormatError,
    NotFoundError,
    StorageError,
    TableStoreError,
    UnsupportedFeatureError,
)
from penstock.format.snapshot import VECTORS_OF, Snapshot, check_snapshot, encode_hint, encode_snapshot
from penstock.table.assumptions import (
    WRITER_VERSION,
    check_buckets_of_new_files,
    check_other_engines,
    check_same_table,
    check_schema_exists,
    check_schema_of_rewrites,
    request_identity,
)
from penstock.table.commit.delta import BucketIndex, build_delta
from penstock.table.commit.expiring import is_announced
from penstock.table.commit.manifests import ManifestWriter, Merge, PartitionOrder, apply_merges, merge_manifests
from penstock.table.commit.put import flush_new_files, is_put, put_schema, put_snapshot, search_commits
from penstock.table.commit.retry import CommitRetry, note_change, note_committed, note_lost_race, observed
from penstock.table.commit.reused_ids import is_in_time, last_kept_id, load_base
from penstock.table.commit.vectors import next_index_manifest
from penstock.table.read.live import pruner_of_partitions
from penstock.table.row_tracking import assign, is_tracked
from penstock.table.store import SchemaFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.format.manifest.entry import ManifestEntry, ManifestFileMeta
    from penstock.io.file_io import FileIO
    from penstock.options import CommitOptions, ManifestOptions
    from penstock.table.commit.delta import CommitRequest
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore

# 20 s in all for a storage that does not answer, if no options set the number of retries and their wait.
_PUT_TRIES: Final = 11
_LONGEST_PUT_WAIT_MS: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The result of an attempt before its put: all metadata is on storage, except for the snapshot file.

    Attributes:
        paths: of lists, manifests and index files that the snapshot names.
    """

    snapshot: Snapshot
    delta: tuple[ManifestEntry, ...]
    paths: frozenset[str]


@dataclass(frozen=True, slots=True)
class Committed:
    """Our snapshot was created."""


@dataclass(frozen=True, slots=True)
class LostRace:
    """Another snapshot has our id; ours does not exist and will not."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """The storage does not say whether our snapshot exists."""

    cause: StorageError


@dataclass(frozen=True, slots=True)
class Refused:
    """The storage refused to create our snapshot and confirms that it does not exist."""

    cause: TableStoreError


# Releases before 1.3 wrote it, always empty where there is no log system.
_OLD_KEYS: Final = frozenset({"logOffsets"})


class _OutdatedBaseError(Exception):
    """The table has changed since an attempt loaded its base, which must be loaded again."""


PutOutcome: TypeAlias = Committed | LostRace | Unknown | Refused


def new_commit_user(prefix: str | None = None) -> str:
    """Return a new commit user, prefixed with ``commit.user-prefix`` if that is set."""
    return f"{prefix}_{uuid.uuid4()}" if prefix else str(uuid.uuid4())


class CommitHooks(Protocol):
    """Maintenance of a table between its commits. Its methods never raise an ``Exception``."""

    def after_commit(self, snapshot: Snapshot) -> None:
        """Do what is due after a commit."""
        ...

    def on_idle(self) -> None:
        """Do what is due by time, for callers that commit nothing for a while."""
        ...


def no_hooks(_committer: TableCommitter) -> CommitHooks | None:
    """Make no hooks."""
    return None


@dataclass(slots=True, kw_only=True)
class TableCommitter:
    """Commits to one table; caches metadata between commits, so that the cost of a commit does not grow.

    Not thread-safe.

    Attributes:
        may_be_committed: whether the snapshot of the last call of ``commit`` may exist, also if that call raised; False
            if the call found that the request was committed before.
        new_hooks: makes the hooks of this committer, whose clock and cache they use; called once.
        after_commit: of the hooks.
        on_idle: of the hooks.
    """

    ref: TableRef
    store: MetadataStore
    options: CommitOptions
    manifest_options: ManifestOptions
    clock_millis: Callable[[], int] = field(default=utc_millis)
    sleep: Callable[[float], None] = field(default=time.sleep)
    index: BucketIndex = field(default_factory=BucketIndex)
    may_be_committed: bool = False
    new_hooks: Callable[[TableCommitter], CommitHooks | None] = no_hooks
    after_commit: Callable[[Snapshot], None] = field(init=False, default=lambda _snapshot: None)
    on_idle: Callable[[], None] = field(init=False, default=lambda: None)
    _schemas: SchemaFiles = field(default_factory=lambda: SchemaFiles(ids=(0,), freed_ids=()))
    _own_schema_id: int = -1
    _ahead: FileIO | None = None

    def __post_init__(self) -> None:
        """Make the hooks."""
        hooks = self.new_hooks(self)
        if hooks is not None:
            self.after_commit, self.on_idle = hooks.after_commit, hooks.on_idle

    def commit(self, request: CommitRequest) -> Snapshot | None:
        """Commit the request as one snapshot.

        Returns:
            The new snapshot; the existing one if ``check_committed`` finds that the request was committed before; None
            if there was nothing to commit.

        Raises:
            CommitConflictError: a file to replace is gone, or other writers won every race; nothing is visible.
            CommitUnknownError: the storage did not answer; nothing was deleted.
            UnsupportedFeatureError: on an object store, another engine made the latest snapshot.
            NotFoundError: the table was dropped or renamed, or another table is in its place now.
            FormatError: the schema file of the latest snapshot is lost.
            DataLossError: the files of the newest snapshots are lost.
            CheckpointError: ``check_committed`` is set, but snapshots have expired that may show whether the request
                was committed before.
        """
        self.may_be_committed = False
        self._own_schema_id = -1
        base = self._load_base()
        committed = self._find_committed(request, base)
        if committed is not None:
            return committed
        with observed(self.ref.name), CommitRetry(ref=self.ref, options=self.options, sleep=self.sleep) as retry:
            return self._attempt(request, base, retry)

    @contextmanager
    def prefetch(self) -> Iterator[FileIO]:
        """Yield a view of the storage: the first commit of the block loads its base through it.

        So the base can be requested (``request_base``) before the files of the commit are written.
        """
        with self.ref.file_io.prefetch() as ahead:
            self._ahead = ahead
            try:
                yield ahead
            finally:
                self._ahead = None

    def request_base(self) -> None:
        """Request what the commit of a ``prefetch`` block reads first."""
        if self._ahead is not None:
            self._request_base(self._ahead)

    def _request_base(self, ahead: FileIO) -> None:
        request_identity(replace(self.ref, file_io=ahead))
        ahead.request_list(self.ref.layout.schema_directory)
        self.store.reading(ahead).request_latest()

    def _attempt(self, request: CommitRequest, base: Snapshot | None, retry: CommitRetry) -> Snapshot | None:
        """Build metadata on the latest snapshot and put our snapshot, until one attempt wins."""
        writer = self._new_writer()
        merges: tuple[Merge, ...] | None = None
        for attempt_number in retry.attempts():
            # Before the put, no snapshot can name these files, so they are deleted after any error.
            with writer.deleted_on_error():
                if attempt_number > 0:
                    retry.wait()
                    known, base = base, self._load_base()
                    committed = self._find_committed(request, base, known=known)
                    if committed is not None:
                        writer.delete_written()
                        return committed
                try:
                    prepared, merges = self._build(request, base, merges, writer)
                except (NotFoundError, _OutdatedBaseError) as error:
                    self._check_outdated(base, error)
                    merges = None
                    writer.delete_written()
                    continue
                if prepared is None:
                    return None
                self._finish_files(request, writer)
            self.may_be_committed = True
            attempt = self._put_in_time(base, prepared)
            retry.release_lock()
            match attempt:
                case Committed():
                    note_committed(self.ref.name, prepared.snapshot, prepared.delta, retry)
                    self._finish(base, prepared, writer)
                    return prepared.snapshot
                case Unknown(cause):
                    raise CommitUnknownError(self._unknown_text(prepared.snapshot.id, cause)) from cause
                case LostRace():
                    self.may_be_committed = False
                    note_lost_race(self.ref.name, prepared.snapshot.id, retry)
                    writer.delete_written(keep=frozenset(_output_names(merges)))
                case Refused(cause):
                    self.may_be_committed = False
                    writer.delete_written()
                    raise cause
                case other:
                    assert_never(other)
        writer.delete_written()
        raise CommitConflictError(
            f"table {self.ref.name}: other writers won {retry.lost} races for the next snapshot id in "
            f"{retry.seconds:.0f} s; nothing was committed: raise 'commit.max-retries' or 'commit.timeout', or commit "
            "less often"
        )

    def _check_outdated(self, base: Snapshot | None, error: NotFoundError | _OutdatedBaseError) -> None:
        """Return if the table changed, or the base expired, while it was read; otherwise raise the error."""
        if isinstance(error, _OutdatedBaseError):
            return
        # An expiration deletes the snapshot file last; until then, only its announcement shows that it is running.
        if base is None or (self.store.has_snapshot(base.id) and not is_announced(self.store, base.id)):
            raise error

    def _build(
        self, request: CommitRequest, base: Snapshot | None, merges: tuple[Merge, ...] | None, writer: ManifestWriter
    ) -> tuple[Prepared | None, tuple[Merge, ...]]:
        """Write all metadata of an attempt except for the snapshot; None if there is nothing to commit."""
        delta = build_delta(request, base, ref=self.ref, store=self.store, index=self.index)
        is_empty = (
            not delta and not request.adds_vectors and not request.commit_empty and not _moves_watermark(request, base)
        )
        if is_empty and not request.merges_manifests:
            writer.delete_written()
            return None, ()
        if request.lost is not None:
            merges = ()
        merges = self._merge(base, writer) if merges is None else merges
        if is_empty and not merges:
            writer.delete_written()
            return None, ()
        return self._prepare(request, base, delta, merges, writer), merges

    def _load_base(self) -> Snapshot | None:
        """Load the latest snapshot, after a check that the table is still the one that the changes were made for."""
        # What was requested before the last attempt is out of date.
        requested, self._ahead = self._ahead, None
        with self.ref.file_io.prefetch() if requested is None else nullcontext(requested) as ahead:
            self._request_base(ahead)
            check_same_table(replace(self.ref, file_io=ahead))
            base, self._schemas = load_base(self.store.reading(ahead), self.sleep)
        if base is not None and base.schema_id not in self._schemas.ids:
            self._schemas = self.store.list_schema_files()  # on object stores, the listing may be older than the base
            check_schema_exists(self.store, base, self._schemas.ids)
        check_other_engines(self.ref, base)
        return base

    def _find_committed(
        self, request: CommitRequest, base: Snapshot | None, *, known: Snapshot | None = None
    ) -> Snapshot | None:
        """Return the snapshot that shows that a request is a replay; None if there is none.

        Called again after every lost race: the winner may be this same commit, made by an older process of the job that
        is still running.

        Args:
            known: the base of the last search; only snapshots after it are read, or, if a rollback may have taken it
                back, after the rollback's target.
        """
        if not request.check_committed or base is None:
            return None
        after_id = max(
            last_kept_id(number, self._schemas.freed_ids)
            for number in (known.id if known else 0, request.committed_after_id)
        )
        found = search_commits(
            self.store, lambda it: it.commit_user == request.commit_user, latest_id=base.id, after_id=after_id
        )
        if found.last is not None:
            return found.last if found.last.commit_identifier >= request.commit_identifier else None
        if not found.is_complete and not self.options.accept_unknown_batch:
            self._check_alone(request)
        return None

    def _check_alone(self, request: CommitRequest) -> None:
        """Make sure that no other process runs the job; needed if snapshots that it may have made have expired."""
        if request.check_alone is not None:
            request.check_alone()
            return
        raise CheckpointError(
            f"table {self.ref.name}: batch {request.commit_identifier} of query {request.commit_user} was prepared so "
            "long ago that snapshots made since have expired, so it is unknown whether another process has "
            "committed it; nothing was committed: start the query again"
        )

    def _finish(self, base: Snapshot | None, prepared: Prepared, writer: ManifestWriter) -> None:
        """Clean up and run the hooks after the snapshot was created. Nothing here may fail the commit."""
        note_change(self.ref.location)
        writer.forget(prepared.paths)
        try:
            self.index.note_committed(base, prepared.snapshot, prepared.delta)
        except MemoryError:
            self.index = BucketIndex(watch=self.index.watch)  # the next commit fills it again
        writer.delete_written()
        self.store.note_latest(prepared.snapshot)
        self._write_hints(prepared.snapshot)
        self.after_commit(prepared.snapshot)

    def _prepare(
        self,
        request: CommitRequest,
        base: Snapshot | None,
        delta: tuple[ManifestEntry, ...],
        merges: tuple[Merge, ...],
        writer: ManifestWriter,
    ) -> Prepared:
        _check_keys_known(self.ref, base)
        schema_id = self._next_schema_id(request)
        if request.adds_vectors and not request.restores and schema_id != self.ref.schema.id:
            raise self._altered()  # maybe to a table without 'deletion-vectors.enabled', whose vectors nobody reads
        snapshot_id, next_row_id = (base.id + 1, base.next_row_id or 0) if base else (1, 0)
        check_schema_of_rewrites(self.ref, self.store, request.rewritten_files, schema_id)
        known = self.index.total_buckets if self.index.snapshot == base else {}
        written = self.ref if request.schema is None else replace(self.ref, schema=request.schema)
        # An older handle may append to a table that has got the option since.
        schema = written.schema if schema_id == written.schema.id else self.store.load_schema(schema_id)
        if is_tracked(schema.option_map):
            delta, next_row_id = assign(delta, snapshot_id=snapshot_id, next_row_id=next_row_id)
        check_buckets_of_new_files(written, self.store, delta, known_buckets=known, latest_id=schema_id)
        base_manifests = _without_lost(request, apply_merges(self._manifests(base), merges))
        before, base_index = frozenset(writer.written), None if base is None else base.index_manifest
        index_manifest = base_index
        if base_index is not None or request.adds_vectors:
            index_manifest = next_index_manifest(self.ref, self.store, base, delta, request.messages, writer)
        vectors_of = ((VECTORS_OF, base_index or ""),) if index_manifest != base_index else ()
        index_paths = frozenset(writer.written) - before
        with writer.written_at_once(also=self._check_schemas):
            base_list = writer.write_list(base_manifests)
            delta_manifests = writer.write_manifests(delta, schema_id=schema_id)
            delta_list = writer.write_list(delta_manifests)
        added = sum(entry.file.row_count * (1 - 2 * entry.kind) for entry in delta)
        snapshot = Snapshot(
            id=snapshot_id,
            schema_id=schema_id,
            base_manifest_list=base_list.name,
            base_manifest_list_size=base_list.size,
            delta_manifest_list=delta_list.name,
            delta_manifest_list_size=delta_list.size,
            commit_user=request.commit_user,
            commit_identifier=request.commit_identifier,
            commit_kind=request.kind,
            time_millis=self.clock_millis(),
            total_record_count=_rows_before(request, base) + added,
            delta_record_count=added,
            watermark=request.watermark,
            properties=(*request.properties, *vectors_of),
            index_manifest=index_manifest,
            next_row_id=next_row_id,
            uuid=str(uuid.uuid4()),
            writer_version=WRITER_VERSION,
        )
        snapshot = self._carry_forward(snapshot, base)
        check_snapshot(snapshot)
        names = {meta.file_name for meta in (*base_manifests, *delta_manifests)}
        return Prepared(
            snapshot=snapshot,
            delta=delta,
            paths=index_paths.union(map(self.ref.layout.manifest_path, names | {base_list.name, delta_list.name})),
        )

    def _next_schema_id(self, request: CommitRequest) -> int:
        """Return the schema of the new snapshot: the request's own one, if it has one, else the latest."""
        latest_id = self._schemas.ids[-1]
        if request.schema is None or self._own_schema_id == request.schema.id:
            return latest_id
        if latest_id >= request.schema.id:
            raise self._altered()
        return request.schema.id

    def _finish_files(self, request: CommitRequest, writer: ManifestWriter) -> None:
        """Make sure that all files of the new snapshot are on storage; its schema comes last.

        Between this put and that of the snapshot, readers see the new columns with the old rows.
        """
        flush_new_files(self.ref, request.messages, writer.written)
        if request.schema is None or self._own_schema_id == request.schema.id:
            return
        if not put_schema(self.ref.file_io, self.ref.location, request.schema):
            raise self._altered()
        self._own_schema_id = request.schema.id
        try:
            check_same_table(self.ref)
        except NotFoundError:
            # The table was dropped or renamed: the schema file alone would be a table again.
            self.ref.file_io.delete(self.ref.layout.schema_path(request.schema.id))
            raise

    def _altered(self) -> CommitConflictError:
        return CommitConflictError(
            f"table {self.ref.name}: others have altered it since schema {self.ref.schema.id}, which the change was "
            "computed from; nothing was committed: load the table and repeat the change"
        )

    def _check_schemas(self) -> None:
        """Check that nothing was added to the schemas, and no ids were freed, since the base was requested.

        On object stores the schemas are listed together with the read of the base, and not after it. So they are listed
        again while the manifests are written.
        """
        if self.ref.file_io.is_object_store and self.store.list_schema_files() != self._schemas:
            raise _OutdatedBaseError

    def _carry_forward(self, snapshot: Snapshot, base: Snapshot | None) -> Snapshot:
        """Fill in the fields that every commit inherits from its base (docs/spec/commit.md section 4.1)."""
        if base is None:
            return snapshot
        return replace(
            snapshot,
            watermark=_later_watermark(snapshot.watermark, base.watermark),
            statistics=base.statistics if self.store.is_statistics_of(base, snapshot.schema_id) else None,
        )

    def _put_in_time(self, base: Snapshot | None, prepared: Prepared) -> PutOutcome:
        """Create the snapshot file; delete it again if the put was late, see ``is_in_time``."""
        attempt = self._put(base, prepared)
        if not isinstance(attempt, Committed):
            return attempt
        for try_number in range(self._put_tries):
            try:
                is_ours = is_in_time(self.ref, self.store, base, prepared.snapshot, prepared.delta)
            except (TableStoreError, MemoryError) as error:
                cause = _as_storage_error(error)
                if not cause.retryable:
                    break
                self.sleep(self._put_wait_seconds(try_number))
                continue
            return attempt if is_ours else LostRace()
        return Unknown(cause)

    def _put(self, base: Snapshot | None, prepared: Prepared) -> PutOutcome:
        """Create the snapshot; after errors, retry a limited number of times to find out whether it exists."""
        snapshot = prepared.snapshot
        path = self.ref.layout.snapshot_path(snapshot.id)
        data = encode_snapshot(snapshot)
        for try_number in range(self._put_tries):
            try:
                if put_snapshot(self.ref, base, snapshot, prepared.delta, data):
                    return Committed()
                # False may mean that an earlier try of ours created the file and its answer was lost.
                if not is_put(self.ref, snapshot):
                    return LostRace()
                # Or an earlier try created the file and then failed to flush it to disk.
                self.ref.file_io.flush([path], root=self.ref.location)
            except StorageError as error:
                cause = error
                # A retry does not help against a full disk or a missing permission. This holds only for the first try:
                # later, the put of an earlier try may still take effect.
                if try_number == 0 and not error.retryable and self._is_absent(path):
                    return Refused(cause)
            except UnsupportedFeatureError as error:  # the store lets two puts succeed, so none was sent
                return Refused(error)
            except (NotFoundError, FormatError, MemoryError) as error:
                cause = _as_storage_error(error)
            else:
                return Committed()
            # A second put is always safe: at most one put creates the file.
            self.sleep(self._put_wait_seconds(try_number))
        return Unknown(cause)

    @property
    def _put_tries(self) -> int:
        return _PUT_TRIES if self.options.max_retries is None else self.options.max_retries + 1

    def _put_wait_seconds(self, try_number: int) -> float:
        longest_ms = self.options.max_retry_wait_ms or _LONGEST_PUT_WAIT_MS
        wait_ms = min(self.options.min_retry_wait_ms << try_number, longest_ms)
        return wait_ms / 1000 * (1 + 0.2 * random.random())  # noqa: S311 - not for secrets

    def _is_absent(self, path: str) -> bool:
        """Whether the storage says for sure that there is no such file."""
        try:
            self.ref.file_io.read(path)
        except NotFoundError:
            return True
        except TableStoreError:
            return False
        return False

    def _write_hints(self, snapshot: Snapshot) -> None:
        try:
            storage = self.ref.file_io.relaxed()
            storage.write(self.ref.layout.latest_hint_path, encode_hint(snapshot.id))
            if snapshot.id == 1:
                storage.write(self.ref.layout.earliest_hint_path, encode_hint(1))
        except TableStoreError:
            # The commit has succeeded. Without a valid hint, readers list the directory.
            return

    def _merge(self, base: Snapshot | None, writer: ManifestWriter) -> tuple[Merge, ...]:
        if base is None:
            return ()
        return merge_manifests(
            self._manifests(base),
            self.manifest_options,
            lambda meta: self.store.load_manifest(meta.file_name, meta.file_size),
            lambda entries: writer.write_manifests(entries, schema_id=base.schema_id),
            find_holders=lambda partitions: pruner_of_partitions(self.ref.schema, partitions).may_hold,
            order=PartitionOrder.of(self.ref.schema, self.manifest_options),
        )

    def _manifests(self, base: Snapshot | None) -> tuple[ManifestFileMeta, ...]:
        return tuple(self.store.load_manifests(base)) if base else ()

    def _new_writer(self) -> ManifestWriter:
        return ManifestWriter(
            file_io=self.ref.file_io.relaxed(),  # flushed together
            location=self.ref.location,
            options=self.manifest_options,
            partition_types=tuple(field.type for field in self.ref.schema.partition_fields),
        )

    def _unknown_text(self, snapshot_id: int, cause: StorageError) -> str:
        return (
            f"table {self.ref.name}: the storage did not say whether snapshot {snapshot_id} was created ({cause}); "
            "nothing was deleted. When the storage answers again, look at the latest snapshots: the rows are there "
            "once or not at all"
        )


def _as_storage_error(error: TableStoreError | MemoryError) -> StorageError:
    if isinstance(error, StorageError):
        return error
    failure = StorageError(str(error) or "memory ran out")
    failure.__cause__ = error
    return failure


def _without_lost(request: CommitRequest, manifests: tuple[ManifestFileMeta, ...]) -> tuple[ManifestFileMeta, ...]:
    lost = request.lost
    return manifests if lost is None else tuple(meta for meta in manifests if meta.file_name not in lost.names)


def _rows_before(request: CommitRequest, base: Snapshot | None) -> int:
    if request.lost is not None:
        return request.lost.total_record_count
    return (base.total_record_count or 0) if base else 0


def _output_names(merges: tuple[Merge, ...]) -> list[str]:
    return [meta.file_name for merge in merges for part in merge.parts for meta in part.outputs]


def _moves_watermark(request: CommitRequest, base: Snapshot | None) -> bool:
    known = None if base is None else base.watermark
    return request.watermark is not None and (known is None or known < request.watermark)


def _later_watermark(ours: int | None, base: int | None) -> int | None:
    """Return the later watermark: a watermark never decreases (docs/spec/commit.md section 4.1)."""
    if ours is None or base is None:
        return base if ours is None else ours
    return max(ours, base)


def _check_keys_known(ref: TableRef, base: Snapshot | None) -> None:
    """Refuse a base with keys that the next snapshot may need as well. Raises ``UnsupportedFeatureError``."""
    unknown = [key for key, text in base.extra if key not in _OLD_KEYS and text != "null"] if base else []
    if base and unknown:
        raise UnsupportedFeatureError(
            f"table {ref.name}: snapshot {base.id} has keys of a newer release ({', '.join(unknown)}), and it is not "
            "known whether the next snapshot needs them: update Penstock, or write with the engine that wrote it"
        )
