"""Snapshot expiration: deletes old snapshots, and the files that no other snapshot reads.

The files to delete with a run of snapshots are found before anything is deleted. Data files are deleted first, then
manifests, then the lists that name them, then the snapshot files from the oldest on. So after an interruption at any
point, every kept snapshot is complete. Files that still have to be deleted are still named by an expired snapshot or
its lists, so the next expiration finds them.

Source:
    Paimon ``core:table/ExpireSnapshotsImpl.java``, ``core:operation/SnapshotDeletion.java``;
    docs/spec/commit.md section 7.1.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from penstock.clocks import utc_millis
from penstock.errors import FormatError, NotFoundError, TableStoreError, UnsupportedFeatureError
from penstock.format.snapshot import decode_hint, encode_hint
from penstock.io.failures import enough_memory
from penstock.metrics import FILES_EXPIRED, SNAPSHOTS_EXPIRED, record
from penstock.options import ConsumerOptions, RetentionOptions
from penstock.printable import Result, mask_locations, open_log
from penstock.table.branches import check_not_on_branch
from penstock.table.bulk_files import delete_empty_directories, delete_files, thread_count
from penstock.table.commit.expiring import announce_expiration
from penstock.table.commit.reused_ids import is_built_on_previous, is_rolling_back, is_there
from penstock.table.expire.files import (
    BranchReaders,
    FilesToDelete,
    LaterSnapshots,
    NamedSnapshot,
    ReaddedFiles,
    adds_unnamed,
    data_paths,
    find_deletions,
    find_metadata,
    is_restored,
    load_branch_readers,
    may_add_again,
    note_restored,
    retain_added,
    retain_read,
    retain_readded,
    retain_tagged,
    tags_between,
)
from penstock.table.expire.plan import ExpirationPlan, ExpireRules, Retainer, RetainerKind, plan_expiration
from penstock.table.ref import FileLocator
from penstock.table.tags import TagReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from penstock.format.manifest.entry import FileKey
    from penstock.format.snapshot import Snapshot
    from penstock.io.file_io import FileIO
    from penstock.table.expire.files import Deletion
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A run of snapshots to delete.

    Attributes:
        snapshot_ids: also of damaged ones.
        kept: the first snapshot that is kept.
        unreadable_ids: of damaged snapshots, those after the chunk included.
        restores: whether one of the snapshots to delete may have made deleted files live again.
    """

    snapshot_ids: tuple[int, ...]
    kept: Snapshot
    files: FilesToDelete
    unreadable_ids: tuple[int, ...]
    restores: bool


class ChunkFinder:
    """Finds chunks of one table. Not thread-safe."""

    def __init__(self, ref: TableRef, store: MetadataStore, tags: TagReader, *, threads: int) -> None:
        self._ref = ref
        self._store = store
        self._tags = tags
        self._threads = threads
        self._watch = ReaddedFiles()
        self._locator = FileLocator.of(ref)
        self._tags_seen: dict[int, NamedSnapshot] = {}
        self._branches_seen = BranchReaders(names=(), oldest=(), later=())

    def has_seen_all_readers(self, end: int) -> bool:
        """Whether tags and branches are unchanged since the last chunk, which ends there, was found."""
        branches = load_branch_readers(self._store, up_to=end)
        return branches == self._branches_seen and self._load_tags() == self._tags_seen

    def find(self, first: int, kept: Snapshot, latest_id: int) -> Chunk | None:
        """Find the files to delete with the snapshots from ``first`` to before ``kept``; None if that has expired."""
        damaged: list[int] = []
        ids = range(first, kept.id)
        expired = list(self._store.find_snapshots(ids, on_damaged=lambda each, _error: damaged.append(each)))
        self._store.fetch_changes([*expired, kept])
        later = LaterSnapshots(adding=(), after_gaps=(), unreadable_ids=())
        try:
            # Files that the first snapshot's delta deleted are only read by earlier ones, and were deleted with those.
            deletions, is_whole = find_deletions(self._store, [*expired[1:], kept] if expired else [])
            if deletions or any(snapshot.index_manifest or snapshot.statistics for snapshot in expired):
                later = self._watch.find(self._store, after_id=kept.id, latest_id=latest_id, threads=self._threads)
            # A lost or damaged snapshot may have added files again, and one whose delta is lost.
            lost = set(ids).difference(snapshot.id for snapshot in expired)
            is_partial = lost or not is_whole or any(map(adds_unnamed, (*expired, kept)))
            after_gaps = (*later.after_gaps, *([kept] if is_partial else []))
            # Of those that an announced expiration has deleted, that has noted it.
            restores = any(map(may_add_again, expired)) or (bool(lost) and max(lost) >= self._store.load_expiring_end())
            files = self._find_files(expired, kept, deletions, replace(later, after_gaps=after_gaps), restored=restores)
        except NotFoundError:
            if self._store.find_snapshot(kept.id) is None:
                return None
            raise
        return Chunk(
            snapshot_ids=tuple(sorted([*damaged, *(snapshot.id for snapshot in expired)])),
            kept=kept,
            files=files,
            unreadable_ids=(*damaged, *later.unreadable_ids),
            restores=restores,
        )

    def _find_files(
        self,
        expired: list[Snapshot],
        kept: Snapshot,
        deletions: dict[FileKey, Deletion],
        later: LaterSnapshots,
        *,
        restored: bool,
    ) -> FilesToDelete:
        retain_readded(self._store, deletions, later.adding)
        after_gaps = [NamedSnapshot(name="", snapshot=each) for each in later.after_gaps]
        retain_read(self._ref, self._store, deletions, after_gaps)
        tags = self._tags_seen = self._load_tags()
        restored = restored or (len(tags) > 1 and is_restored(self._store))
        spared = retain_tagged(self._ref, self._store, deletions, tags, restored=restored)
        branches = self._branches_seen = load_branch_readers(self._store, up_to=kept.id)
        by_branches = retain_read(self._ref, self._store, deletions, branches.oldest)
        by_branches += retain_added(self._store, deletions, branches.later)
        first = expired[0].id if expired else kept.id
        keepers = (kept, *later.snapshots, *tags_between(tags, first, kept.id, restored=restored), *branches.snapshots)
        manifests, lists = find_metadata(self._store, expired, keepers)
        entries = [deletion.entry for deletion in deletions.values()]
        return FilesToDelete(
            data=tuple(data_paths(self._locator, entries)),
            data_file_count=len(entries),
            data_bytes=sum(entry.file.file_size for entry in entries),
            manifests=manifests,
            lists=lists,
            kept_by_tags=tuple(spared.items()),
            kept_by_branches=tuple(by_branches.items()),
        )

    def _load_tags(self) -> dict[int, NamedSnapshot]:
        return {
            tag.snapshot.id: NamedSnapshot(name=name, snapshot=tag.snapshot) for name, tag in self._tags.load().items()
        }


def add_file_holds(holds: Iterable[Retainer], files: FilesToDelete) -> tuple[Retainer, ...]:
    """Return the holds, with the numbers of files that each tag and branch keeps added."""
    found = {(hold.kind, hold.name): hold for hold in holds}
    for kind, pairs in ((RetainerKind.TAG, files.kept_by_tags), (RetainerKind.BRANCH, files.kept_by_branches)):
        for name, count in pairs:
            old = found.get((kind, name), Retainer(kind=kind, name=name))
            found[kind, name] = replace(old, files=old.files + count)
    return tuple(found.values())


_LOG: Final = open_log("penstock.expiration")

# Snapshots per chunk; limits memory, and the work that is lost after an interruption.
_CHUNK: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Expiration(Result):
    """Result of an expiration.

    Attributes:
        snapshot_ids: snapshots that expired, or would in a dry run; ascending.
        data_files: number of data files that only these snapshots read.
        data_bytes: size of those files.
        metadata_files: number of manifests, manifest lists, index files and statistics.
        earliest_id: the earliest snapshot that is kept; None where there is none.
        holds: what keeps the other snapshots, and files of the expired ones.
        next_cutoff_millis: no further snapshot expires by age before the rules' cutoff is later than this; None if age
            is not what keeps the next one.
        unreadable_ids: snapshots whose files are damaged, ascending. Those among ``snapshot_ids`` are deleted, and the
            files that only they use become orphans.
    """

    snapshot_ids: tuple[int, ...] = ()
    data_files: int = 0
    data_bytes: int = 0
    metadata_files: int = 0
    earliest_id: int | None = None
    holds: tuple[Retainer, ...] = ()
    next_cutoff_millis: int | None = None
    unreadable_ids: tuple[int, ...] = ()
    is_dry_run: bool = False


class SnapshotExpirer:
    """Expires snapshots of one table; caches metadata, so that the next run is cheaper.

    Neither this nor the store is thread-safe. Several processes may expire the same table.

    Args:
        clock_millis: returns the current time, ms since 1970-01-01 UTC.
    """

    def __init__(self, ref: TableRef, store: MetadataStore, *, clock_millis: Callable[[], int] | None = None) -> None:
        check_not_on_branch(ref.file_io, ref.name, "expiring snapshots")
        self.ref = ref
        self.options = ref.parsed(RetentionOptions)
        self.clock_millis = clock_millis or utc_millis
        self.tags = TagReader(ref.file_io, ref.location, clock_millis=self.clock_millis)
        self._store = store
        self._threads = thread_count(self.options.file_operation_threads, self.ref.file_io)
        self._finder = ChunkFinder(ref, store, self.tags, threads=self._threads)
        self._ignores_consumers = ref.parsed(ConsumerOptions).changelog_only

    def rules(
        self,
        *,
        retain_max: int | None = None,
        retain_min: int | None = None,
        older_than: int | None = None,
        max_deletes: int | None = None,
    ) -> ExpireRules:
        """Return the rules of the table's options, overridden by the arguments.

        Args:
            older_than: the cutoff, ms since 1970-01-01 UTC.
        """
        options = self.options
        rules = ExpireRules(
            retain_min=options.num_retained_min if retain_min is None else retain_min,
            retain_max=options.num_retained_max if retain_max is None else retain_max,
            cutoff_millis=self.clock_millis() - options.time_retained_ms if older_than is None else older_than,
            max_deletes=max_deletes,
        )
        rules.check(self.ref.name)
        return rules

    def run(
        self,
        rules: ExpireRules,
        *,
        latest_id: int | None = None,
        dry_run: bool = False,
        progress: Callable[[int, int | None], None] = lambda _files, _total: None,
        ahead: FileIO | None = None,
    ) -> Expiration:
        """Expire the snapshots that the rules do not keep.

        Args:
            latest_id: id of the latest snapshot, if it is known.
            dry_run: only find what would be deleted.
            progress: called with the number of files deleted so far.
            ahead: view of the storage in which the earliest snapshot and the consumers were requested.

        Raises:
            StorageError: files could not be deleted or read; the next run continues.
            FormatError: the latest snapshot, a tag or a consumer is damaged, or metadata of the first kept snapshot; no
                file that it may need was deleted.
            UnsupportedFeatureError: another engine keeps changelogs longer than snapshots.
        """
        with enough_memory(self.ref.name):
            store = self._store if ahead is None else self._store.reading(ahead)
            return self._run(rules, latest_id, store, dry_run=dry_run, progress=progress)

    def _run(
        self,
        rules: ExpireRules,
        latest_id: int | None,
        store: MetadataStore,
        *,
        dry_run: bool,
        progress: Callable[[int, int | None], None],
    ) -> Expiration:
        latest_id = self._store.latest_snapshot_id() if latest_id is None else latest_id
        earliest_id = self._find_earliest(store, dry_run=dry_run) if latest_id is not None else None
        if latest_id is None or earliest_id is None:
            return Expiration(is_dry_run=dry_run)
        plan = self._plan(rules, earliest_id, latest_id, store)
        if plan.end > plan.first:
            self._check_changelogs()
            plan = self._with_interrupted(plan, latest_id)
        return self._run_plan(plan, latest_id, dry_run=dry_run, progress=progress)

    def _with_interrupted(self, plan: ExpirationPlan, latest_id: int) -> ExpirationPlan:
        """Extend the plan to the end that an interrupted expiration has announced.

        Snapshots below that end may have lost files, so none of them can be the first kept snapshot.
        """
        end = self._store.load_expiring_end()
        return replace(plan, end=end) if plan.first < end <= latest_id and plan.end < end else plan

    def _run_plan(
        self,
        plan: ExpirationPlan,
        latest_id: int,
        *,
        dry_run: bool,
        progress: Callable[[int, int | None], None],
    ) -> Expiration:
        done = Expiration(
            earliest_id=plan.first,
            holds=plan.holds,
            next_cutoff_millis=plan.next_cutoff_millis,
            is_dry_run=dry_run,
        )
        files_gone = 0

        def note_deleted(count: int) -> None:
            nonlocal files_gone
            files_gone += count
            progress(files_gone, None)

        first, damaged = plan.first, list[int]()
        last = self._load_readable(self._last_ids(plan), damaged)
        while last is not None and first < last.id:
            kept = self._load_readable(range(min(first + _CHUNK, last.id), last.id), damaged) or last
            chunk = self._find(first, kept, latest_id, dry_run=dry_run)
            if chunk is None:
                break  # another process is expiring these snapshots and is ahead, or a rollback has changed them
            if not dry_run:
                self._delete(chunk, note_deleted)
            done, first = _add(done, chunk), kept.id
        done = replace(done, unreadable_ids=tuple(sorted({*done.unreadable_ids, *damaged})))
        if done.snapshot_ids and not dry_run:
            self._note(done)
        return done

    def _last_ids(self, plan: ExpirationPlan) -> Iterator[int]:
        """Yield the ids of which the first readable snapshot is kept: which files it reads has to be known."""
        if plan.first < plan.end:
            yield plan.end
            # Snapshots below the end that an interrupted expiration has announced may have lost files.
            yield from range(plan.end - 1, max(plan.first, self._store.load_expiring_end() - 1), -1)

    def _load_readable(self, ids: Iterable[int], damaged: list[int]) -> Snapshot | None:
        """Return the first of the snapshots that is not damaged; None if that one has expired, or there is none."""
        for snapshot_id in ids:
            try:
                return self._store.find_snapshot(snapshot_id)
            except FormatError:
                damaged.append(snapshot_id)
        return None

    def _note(self, done: Expiration) -> None:
        table = mask_locations(self.ref.name)
        _LOG.info(
            "table %s: expired snapshots %s to %s, and %s data files (%s bytes)",
            *(table, done.snapshot_ids[0], done.snapshot_ids[-1], done.data_files, done.data_bytes),
        )
        record(SNAPSHOTS_EXPIRED, len(done.snapshot_ids), table)
        record(FILES_EXPIRED, done.data_files, table)

    def _find(self, first: int, kept: Snapshot, latest_id: int, *, dry_run: bool) -> Chunk | None:
        """Find the files to delete and announce the expiration, so that these snapshots cannot become tags or targets.

        Returns:
            None if the chunk must not be deleted: another expiration is ahead, a rollback runs or has run, or the first
            kept snapshot was put late and is about to be deleted.
        """
        chunk = self._finder.find(first, kept, latest_id)
        if chunk is None or dry_run:
            return chunk
        if not is_built_on_previous(self._store, kept, self._store.list_schema_files().freed_ids):
            return None
        announce_expiration(self._store, kept.id)
        if chunk.restores:
            note_restored(self._store)
        if not self._finder.has_seen_all_readers(kept.id):
            chunk = self._finder.find(first, kept, latest_id)
        return None if is_rolling_back(self._store) or self._was_rolled_back(kept) else chunk

    def _was_rolled_back(self, kept: Snapshot) -> bool:
        """Whether a rollback was made since the first kept snapshot was read."""
        return self._store.load_expiring_end() < kept.id or not is_there(self._store, kept)

    def _find_earliest(self, store: MetadataStore, *, dry_run: bool) -> int | None:
        """Return the id of the earliest snapshot; correct the hint if it is wrong, except in a dry run."""
        path = self.ref.layout.earliest_hint_path
        with suppress(NotFoundError):
            hint = decode_hint(store.file_io.read(path))
            if hint and store.has_snapshot(hint):
                return hint
        earliest_id = min(self._store.list_snapshot_ids(), default=None)
        if earliest_id is not None and not dry_run:
            self._write_hint(earliest_id)
        return earliest_id

    def _plan(self, rules: ExpireRules, earliest_id: int, latest_id: int, store: MetadataStore) -> ExpirationPlan:
        has_some = latest_id - rules.retain_min + 1 > earliest_id
        return plan_expiration(
            earliest=earliest_id,
            latest=latest_id,
            rules=rules,
            consumers=dict(store.find_consumers()) if has_some and not self._ignores_consumers else {},
            time_of=partial(_time_of, store, latest_id),
        )

    def _check_changelogs(self) -> None:
        if self.ref.file_io.list(self.ref.layout.changelog_directory):
            raise UnsupportedFeatureError(
                f"table {self.ref.name} keeps changelogs longer than snapshots ('changelog.*' options), whose files "
                "Penstock does not track; expire its snapshots with the engine that writes them"
            )

    def _delete(self, chunk: Chunk, note_deleted: Callable[[int], None]) -> None:
        file_io, files = self.ref.file_io, chunk.files
        delete_files(file_io, files.data, threads=self._threads, deleted=note_deleted)
        if self.options.clean_empty_directories:
            directories = {path.rpartition("/")[0] for path in files.data}
            delete_empty_directories(file_io, directories, root=self.ref.location)
        delete_files(file_io, files.manifests, threads=self._threads, deleted=note_deleted)
        delete_files(file_io, files.lists, threads=self._threads, deleted=note_deleted)
        # In the order of their ids; where one request deletes many files, writers know that the order is open.
        paths = [self.ref.layout.snapshot_path(snapshot_id) for snapshot_id in chunk.snapshot_ids]
        for part in [paths] if file_io.delete_batch_size > 1 else [[path] for path in paths]:
            delete_files(file_io, part, threads=1, deleted=note_deleted)
        self._write_hint(chunk.kept.id)

    def _write_hint(self, snapshot_id: int) -> None:
        # Errors are ignored: if the hint is wrong, readers list the directory.
        with suppress(TableStoreError):
            self.ref.file_io.relaxed().write(self.ref.layout.earliest_hint_path, encode_hint(snapshot_id))


def _time_of(store: MetadataStore, latest_id: int, snapshot_id: int) -> int | None:
    """Return the commit time; for a damaged snapshot that of the next readable one, which keeps more."""
    for each in range(snapshot_id, latest_id + 1):
        try:
            snapshot = store.find_snapshot(each)
        except FormatError:
            if each == latest_id:
                raise
            continue
        return None if snapshot is None else snapshot.time_millis
    return None


def _add(done: Expiration, chunk: Chunk) -> Expiration:
    """Add a chunk to the result; the names of its files are not kept."""
    return replace(
        done,
        snapshot_ids=(*done.snapshot_ids, *chunk.snapshot_ids),
        data_files=done.data_files + chunk.files.data_file_count,
        data_bytes=done.data_bytes + chunk.files.data_bytes,
        metadata_files=done.metadata_files + len(chunk.files.manifests) + len(chunk.files.lists),
        earliest_id=chunk.kept.id,
        unreadable_ids=tuple(sorted({*done.unreadable_ids, *chunk.unreadable_ids})),
        holds=add_file_holds(done.holds, chunk.files),
    )
