"""Commits each micro-batch of a streaming query exactly once.

The snapshot of a batch stores the query (the commit user), the batch id (the commit identifier) and a digest of the
offsets that the batch covers. Before a batch is written, it is searched among the snapshots made since the checkpoint's
last note. So a replayed batch is found and not written again, and a checkpoint that does not match the table is refused
before the table changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

from penstock.errors import CheckpointError, NotFoundError, TableStoreError
from penstock.format.snapshot import CommitKind, decode_hint, encode_hint
from penstock.table.actions.changes import open_committer
from penstock.table.assumptions import load_identity
from penstock.table.commit.cleanup import commit_or_discard, delete_job_files_near, delete_new_files, delete_staging
from penstock.table.commit.delta import CommitRequest
from penstock.table.commit.put import OwnCommits, search_commits
from penstock.table.partition_scope import MatchingPartitions, WholeTable
from penstock.table.store import MetadataStore
from penstock.table.stream_sink.batch_log import ACCEPT, BatchNote, check_identity
from penstock.table.stream_sink.watermark import UPSTREAM_TIMES, merge_times
from penstock.table.write.rolling import new_job_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.format.snapshot import Snapshot
    from penstock.io.file_io import FileIO
    from penstock.table.commit.committer import TableCommitter
    from penstock.table.message import CommitMessage
    from penstock.table.partition_scope import OverwriteScope
    from penstock.table.ref import TableRef
    from penstock.table.stream_sink.batch_log import BatchNotes, CheckpointMark

BATCH_DIGEST: Final = "penstock.batch-digest"
"""Snapshot property: the digest of the batch that the snapshot holds."""

BATCH_ID: Final = "penstock.batch-id"
"""Property of a snapshot without a batch: the id of the last batch before it."""

IDLE_SUFFIX: Final = "-idle"
"""Suffix of a query's id that gives the commit user of its snapshots without a batch."""

# More failed attempts at one batch are not expected.
_KILLED_JOBS_KEPT: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A micro-batch of a query.

    Attributes:
        commit_user: the query's id, which stays the same over restarts.
        id: grows from 0 by one.
        digest: of the offsets that it covers; None where the offsets are not available.
        watermark: after the batch, ms of event time; None if unknown. If it advances, a batch without rows creates a
            snapshot too.
        upstream_times: event times of the observed partitions after the batch, encoded as for ``merge_times``.
    """

    commit_user: str
    id: int
    digest: str | None = None
    watermark: int | None = None
    upstream_times: str | None = None

    def __str__(self) -> str:
        return f"batch {self.id} of query {self.commit_user}"


def is_committed(batch: Batch, found: OwnCommits, *, table: str, accept_unknown: bool = False) -> bool:
    """Whether a batch is already committed.

    Args:
        found: the query's newest snapshot, with a batch or without one.
        accept_unknown: return False where the answer is unknown.
    """
    last = found.last
    if last is None:
        if found.is_complete or accept_unknown:
            return False
        raise CheckpointError(
            f"table {table}: it is unknown whether {batch} is in the table: the snapshots in which it would "
            "be have expired; nothing was written. Restore the checkpoint to the state that belongs to this table; or, "
            f"if the batch may be written, perhaps for the second time, {ACCEPT}"
        )
    properties = dict(last.properties)
    last_batch = int(properties.get(BATCH_ID, last.commit_identifier))
    if last_batch < batch.id:
        return False
    if last_batch == batch.id and (batch.digest is None or properties.get(BATCH_DIGEST) in (None, batch.digest)):
        return True
    raise CheckpointError(
        f"table {table}: the checkpoint of query {batch.commit_user} was set back to an older copy: it is about to "
        f"run batch {batch.id} "
        f"with other rows, but the table has the query's batches up to {last_batch} (snapshot {last.id}); "
        "nothing was written. Restore the newer checkpoint; or roll the table back to a snapshot from before batch "
        f"{batch.id}; or start with a new checkpoint from where the table's rows end"
    )


class QueryOwnership(Protocol):
    """Shows whether this process is the only one that runs a query."""

    @property
    def may_have_rival(self) -> bool:
        """Whether the process that ran the query before may still be alive, and may still commit."""
        ...

    def verify(self) -> None:
        """Raise ``LeaseHeldError`` if another process has taken over the query; reads storage."""
        ...


class StreamCommitter:
    """Commits the batches of one query to one table. Remembers the last snapshot it read, so all batches cost the same.

    Args:
        ref: the table at the start of the query.
        notes: of the query's checkpoint.
        mark: of the query's checkpoint, from ``claim_checkpoint``.
        is_overwrite: each batch replaces all rows of the table.
        ownership: of the query; None if nothing shows whether another process runs it.
    """

    def __init__(
        self,
        ref: TableRef,
        notes: BatchNotes,
        mark: CheckpointMark,
        *,
        is_overwrite: bool,
        ownership: QueryOwnership | None = None,
    ) -> None:
        self._store = MetadataStore(ref)
        self._notes = notes
        self._mark = mark
        self._scope = WholeTable() if is_overwrite else None
        self._committer = open_committer(ref, self._store)
        # The newest snapshot that was read; all later snapshots of this query come after it.
        self._seen_id: int | None = None
        self._killed_jobs: tuple[str, ...] = ()
        self._ownership = ownership
        self._has_committed = False
        self._upstream_times: str | None = None
        self._note: BatchNote | None = None

    @property
    def upstream_times(self) -> str | None:
        """Encoded event times of the observed partitions, as far as known; None where no partition is observed."""
        return self._upstream_times

    @property
    def committer(self) -> TableCommitter:
        """The committer that creates the snapshots."""
        return self._committer

    def load_ref(self) -> TableRef:
        """Load the table with its latest schema."""
        ref = self._committer.ref
        with ref.file_io.prefetch() as ahead:
            ahead.request_read(ref.layout.schema_path(0))
            ahead.request_list(ref.layout.schema_directory)
            self._check_table(ahead)
            schema = self._store.reading(ahead).load_latest_schema()
        if schema.id != ref.schema.id:
            ref = replace(ref, schema=schema)
            self._committer = open_committer(ref, self._store, before=self._committer)
        return ref

    def begin(self, batch: Batch) -> str | None:
        """Check whether a batch is already committed; if not, write a note before it is written.

        Returns:
            The job id for the batch's files; None when the batch is already committed.
        """
        ref = self._committer.ref
        latest_id = self._store.latest_snapshot_id() or 0
        note = self._notes.load_newest() if self._seen_id is None else None
        found = self._find_own_commits(batch, latest_id, note)
        is_running = self._seen_id is not None
        if is_running and found.last is None and not found.is_complete:
            self._check_alone()
        # Snapshots that expired while this process ran the query alone cannot hold the batch.
        accept = self._committer.options.accept_unknown_batch or (is_running and self._is_alone)
        already_committed = is_committed(batch, found, table=self._store.name, accept_unknown=accept)
        if already_committed and is_running:
            self._check_alone()
        self._seen_id = latest_id
        self._upstream_times = merge_times(
            self._upstream_times,
            None if note is None else note.upstream_times,
            None if found.last is None else dict(found.last.properties).get(UPSTREAM_TIMES),
        )
        if already_committed:
            return None
        if note is not None and note.batch_id == batch.id:
            delete_staging(ref, note.job_id)
            if found.is_complete:  # else a job may have committed its files in a snapshot that has expired
                self._killed_jobs = (*note.killed_jobs, note.job_id)[-_KILLED_JOBS_KEPT:]
        job_id = new_job_id()
        self._note = BatchNote(
            batch_id=batch.id,
            base_id=latest_id,
            job_id=job_id,
            killed_jobs=self._killed_jobs,
            upstream_times=self._upstream_times,
        )
        self._notes.write(self._note)
        return job_id

    def commit(self, batch: Batch, messages: tuple[CommitMessage, ...]) -> Snapshot | None:
        """Commit the rows of a batch for which ``begin`` was called.

        Returns:
            The snapshot; None when nothing changes.
        """
        with self._committer.prefetch() as ahead:
            # The commit reads the same file if the table's schema is the first.
            ahead.request_read(self._committer.ref.layout.schema_path(0), uses=1 + (self._committer.ref.schema.id == 0))
            self._committer.request_base()
            self._check_table(ahead)
            request = _request_of(batch, messages, after_id=self._seen_id or 0, scope=self._scope)
            if self._ownership is not None and self._is_alone:
                request = replace(request, check_alone=self._ownership.verify)
            snapshot = _commit(self._committer, batch, request)
        if snapshot is not None:
            if not self._committer.may_be_committed:
                self._check_alone()
            self._has_committed |= self._committer.may_be_committed
            self._seen_id = snapshot.id
        known, self._upstream_times = self._upstream_times, merge_times(self._upstream_times, batch.upstream_times)
        if snapshot is None and self._note is not None and self._upstream_times != known:
            # No snapshot stores the times, and there may be no next batch.
            self._notes.write(replace(self._note, upstream_times=self._upstream_times))
        # The files of earlier attempts are in the directories of this batch. They are deleted only after the commit, as
        # the earlier driver may still run, and only if this call made the snapshot: else one of those jobs made it.
        if self._killed_jobs and self._committer.may_be_committed:
            delete_job_files_near(self._committer.ref, self._killed_jobs, messages)
        self._killed_jobs = ()
        return snapshot

    def commit_on_idle(self, last: Batch, watermark: int | None, *, is_forced: bool = False) -> Snapshot | None:
        """Commit a snapshot without rows, which advances the table's watermark while the query is idle.

        It has its own commit user, so that it does not count as a batch of the query. It stores the id of the last
        batch before it: after many such snapshots that batch's snapshot may expire, and the next start needs the id.

        Args:
            last: the query's last committed batch.
            is_forced: commit even if the watermark does not move.

        Returns:
            The snapshot; None when none was made.


        """
        self._check_table(self._committer.ref.file_io)
        request = CommitRequest(
            commit_user=f"{last.commit_user}{IDLE_SUFFIX}",
            commit_identifier=self._committer.clock_millis(),
            kind=CommitKind.APPEND,
            watermark=watermark,
            properties=((BATCH_ID, str(last.id)), *_properties(last)),
            commit_empty=is_forced,
        )
        snapshot = commit_or_discard(self._committer, request)
        if snapshot is not None:
            self._seen_id = snapshot.id
        return snapshot

    @property
    def _is_alone(self) -> bool:
        """Whether no other process can commit a batch of the query while this one holds the lease.

        After the first commit by this process, the one before it cannot: it loses the race and finds that batch.
        """
        return self._has_committed or self._ownership is None or not self._ownership.may_have_rival

    def _check_alone(self) -> None:
        """Raise ``LeaseHeldError`` if another process has taken over the query."""
        if self._ownership is not None:
            self._ownership.verify()

    def _find_own_commits(self, batch: Batch, latest_id: int, note: BatchNote | None) -> OwnCommits:
        after_id = self._seen_id
        if after_id is None:
            # With a note of a later batch, the checkpoint was restored from an older copy: the note's base may be later
            # than this batch.
            after_id = self._mark.base_id if note is None or note.batch_id > batch.id else note.base_id
        return search_commits(self._store, _is_of(batch.commit_user), latest_id=latest_id, after_id=after_id)

    def _check_table(self, file_io: FileIO) -> None:
        ref = self._committer.ref
        try:
            identity = load_identity(replace(ref, file_io=file_io))
        except NotFoundError as error:
            raise NotFoundError(
                f"table {ref.name}: it was dropped or moved while a query wrote to it, whose checkpoint is "
                f"{self._notes.place}; start the query with that where the table is now; or create the table again, "
                "and "
                "start the query with a new checkpoint"
            ) from error
        check_identity(self._mark, identity, ref, self._notes)


def commit_unnoted(
    ref: TableRef,
    batch: Batch,
    messages: tuple[CommitMessage, ...],
    *,
    scope: OverwriteScope | None = None,
    after_id: int | None = None,
) -> Snapshot | None:
    """Commit the rows of a batch without access to its checkpoint; the files of a replayed batch are deleted.

    It reads the snapshots from the latest back to the query's newest one, or all if there is none. For a batch 0 that
    was seen before, it reads only the snapshots made since then. A batch 0 that is seen for the first time counts as
    new even if snapshots have expired. Batch 0 creates a snapshot even without rows, so that later batches find it.

    Args:
        scope: what the rows replace; None for an append.
        after_id: of the snapshot after which the batch would be, if that is known: then older ones are not read, and
            batch 0 is as any other.
    """
    store = MetadataStore(ref)
    committer = open_committer(ref, store)
    latest_id = store.latest_snapshot_id() or 0
    is_first = batch.id == 0 and after_id is None
    try:
        known_id = note_first_batch(store, batch.commit_user, latest_id) if is_first else after_id
        found = search_commits(store, _is_of(batch.commit_user), latest_id=latest_id, after_id=known_id or 0)
        accept = committer.options.accept_unknown_batch or (is_first and known_id is None)
        already_committed = is_committed(batch, found, table=ref.name, accept_unknown=accept)
    except TableStoreError:
        delete_new_files(ref, messages)
        raise
    if already_committed:
        delete_new_files(ref, messages)
        return found.last
    request = _request_of(batch, messages, after_id=latest_id, scope=scope)
    # Without a query, an overwrite makes a snapshot as ``commit_overwrite`` does.
    is_replacement = after_id is not None and isinstance(scope, WholeTable | MatchingPartitions)
    return _commit(committer, batch, replace(request, commit_empty=is_first or is_replacement))


def _is_of(query_id: str) -> Callable[[Snapshot], bool]:
    """Return the test for snapshots that store a batch id of the query."""
    idle = f"{query_id}{IDLE_SUFFIX}"
    return lambda snapshot: (
        snapshot.commit_user == query_id or (snapshot.commit_user == idle and BATCH_ID in dict(snapshot.properties))
    )


def _properties(batch: Batch) -> tuple[tuple[str, str], ...]:
    kept = {BATCH_DIGEST: batch.digest, UPSTREAM_TIMES: batch.upstream_times}
    return tuple((key, value) for key, value in kept.items() if value is not None)


def _request_of(
    batch: Batch, messages: tuple[CommitMessage, ...], *, after_id: int, scope: OverwriteScope | None
) -> CommitRequest:
    return CommitRequest(
        commit_user=batch.commit_user,
        commit_identifier=batch.id,
        kind=CommitKind.APPEND if scope is None else CommitKind.OVERWRITE,
        scope=scope,
        messages=messages,
        watermark=batch.watermark,
        properties=_properties(batch),
        check_committed=True,
        committed_after_id=after_id,
    )


def _commit(committer: TableCommitter, batch: Batch, request: CommitRequest) -> Snapshot | None:
    if committer.options.force_create_snapshot or committer.options.ignore_empty_commit is False:
        request = replace(request, commit_empty=True)
    snapshot = commit_or_discard(committer, request)
    if snapshot is not None:
        # If another process committed the batch first, the snapshot is its own: check that it has the same rows.
        is_committed(batch, OwnCommits(last=snapshot, is_complete=True), table=committer.ref.name)
    return snapshot


def note_first_batch(store: MetadataStore, query_id: str, latest_id: int) -> int | None:
    """Record that a query whose checkpoint cannot be read is about to commit its first batch.

    Without that, a replayed first batch could not be distinguished from a new query's first batch once its snapshot has
    expired. The file ``.penstock/queries/<query>`` of a table holds the id of the latest snapshot when the first batch
    was about to be committed; only later snapshots can be the query's.

    Returns:
        None if this is the first time; otherwise the id of the latest snapshot at the first time.
    """
    path = f"{store.layout.query_directory}/{query_id}"
    if store.file_io.put_if_absent(path, encode_hint(latest_id)):
        return None
    return load_first_batch(store, query_id)


def load_first_batch(store: MetadataStore, query_id: str) -> int | None:
    """Load what ``note_first_batch`` has recorded of a query: a snapshot id, or None for nothing."""
    try:
        return decode_hint(store.file_io.read(f"{store.layout.query_directory}/{query_id}")) or 0
    except NotFoundError:
        return None
