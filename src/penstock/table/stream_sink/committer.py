"""Committing the micro-batches of a streaming query, each exactly once.

A batch is known by the query (the commit user), its id (the commit identifier) and a digest of the offsets that it
covers, which its snapshot keeps. Before anything is written, the batch is looked for among the snapshots made since
the checkpoint's last note; so a replay finds itself, and a checkpoint that does not fit the table is refused while
the table is as it was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from penstock.errors import CheckpointError, NotFoundError, TableStoreError
from penstock.format.snapshot import CommitKind
from penstock.table.actions.changes import open_committer
from penstock.table.commit.discard import commit_or_discard, delete_job_files_beside, delete_new_files, delete_staging
from penstock.table.commit.first_batch import note_first_batch
from penstock.table.commit.lookup import OwnCommits, search_commits
from penstock.table.commit.request import CommitRequest
from penstock.table.identity import load_identity
from penstock.table.partition_scope import WholeTable
from penstock.table.store import MetadataStore
from penstock.table.stream_sink.batch_log import BatchNote
from penstock.table.stream_sink.checkpoint_owner import ACCEPT, check_identity
from penstock.table.stream_sink.watermark import UPSTREAM_TIMES, merge_times
from penstock.table.write.rolling import new_job_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.format.snapshot import Snapshot
    from penstock.table.commit.committer import TableCommitter
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef
    from penstock.table.stream_sink.batch_log import BatchNotes, CheckpointMark

BATCH_DIGEST: Final = "penstock.batch-digest"
"""Property of a snapshot: the digest of the batch that it holds."""

BATCH_ID: Final = "penstock.batch-id"
"""Property of a snapshot without a batch: the last batch before it."""

IDLE_SUFFIX: Final = "-idle"
"""Behind a query's id: the commit user of its snapshots without a batch."""

# As many deaths in one batch as anybody will see.
_KILLED_JOBS_KEPT: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A micro-batch of a query.

    Attributes:
        commit_user: the query's id, which it keeps over restarts.
        id: grows from 0 by one.
        digest: of the offsets that it covers; None where those cannot be seen.
        watermark: behind it, ms of event time; None where nobody can tell. Where it moves, a batch without rows makes
            a snapshot too.
        upstream_times: what observed partitions have come to behind it, as ``merge_times`` takes it.
    """

    commit_user: str
    id: int
    digest: str | None = None
    watermark: int | None = None
    upstream_times: str | None = None

    def __str__(self) -> str:
        return f"batch {self.id} of query {self.commit_user}"


def is_committed(batch: Batch, found: OwnCommits, *, table: str, accept_unknown: bool = False) -> bool:
    """Whether a batch is in the table already.

    Args:
        found: the query's newest snapshot, with a batch or behind one.
        accept_unknown: take for "no" what nobody can tell any more.

    Raises:
        CheckpointError: the query has committed a later batch, or another one under this id; or that cannot be told.
    """
    last = found.last
    if last is None:
        if found.is_complete or accept_unknown:
            return False
        raise CheckpointError(
            f"table {table}: nobody can tell any more whether {batch} is in the table: the snapshots in which it would "
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
        f"table {table}: the checkpoint of query {batch.commit_user} was set back: it is about to run batch {batch.id} "
        f"with other rows, but the table has the query's batches up to {last_batch} (snapshot {last.id}); "
        "nothing was written. Restore the newer checkpoint; or roll the table back to a snapshot from before batch "
        f"{batch.id}; or start with a new checkpoint from where the table's rows end"
    )


class StreamCommitter:
    """Commits the batches of one query to one table. Keeps what it learned, so that each batch costs the same.

    Args:
        ref: the table as the query began.
        notes: of the query's checkpoint.
        mark: of the same, from ``claim_checkpoint``.
        is_overwrite: each batch takes the place of all rows.

    Attributes:
        check_alone: raises ``LeaseHeldError`` where another process has taken over the query; asks storage.
        may_have_rival: whether the process that ran the query before may be about to commit. Once a batch was committed
            here, it cannot any more: it loses the race, and finds that batch.
    """

    def __init__(self, ref: TableRef, notes: BatchNotes, mark: CheckpointMark, *, is_overwrite: bool) -> None:
        self._store = MetadataStore(ref)
        self._notes = notes
        self._mark = mark
        self._is_overwrite = is_overwrite
        self._committer = open_committer(ref, self._store)
        # The newest snapshot that was looked at; all of this query's later ones are its successors.
        self._seen_id: int | None = None
        self._killed_jobs: tuple[str, ...] = ()
        self.check_alone: Callable[[], None] | None = None
        self.may_have_rival: Callable[[], bool] = lambda: False
        self._has_committed = False
        self._upstream_times: str | None = None
        self._note: BatchNote | None = None

    @property
    def upstream_times(self) -> str | None:
        """What observed partitions had come to when ``begin`` last returned; None where none were observed."""
        return self._upstream_times

    @property
    def committer(self) -> TableCommitter:
        """Makes the snapshots."""
        return self._committer

    def load_ref(self) -> TableRef:
        """Load the table as it is now.

        Raises:
            NotFoundError: it was dropped.
            CheckpointError: another one has taken its place.
        """
        self._check_table()
        ref = self._committer.ref
        schema = self._store.load_latest_schema()
        if schema.id != ref.schema.id:
            ref = replace(ref, schema=schema)
            self._committer = self._reopened(ref)
        return ref

    def begin(self, batch: Batch) -> str | None:
        """Look whether a batch is in the table; if not, note down that it is about to be.

        Returns:
            Id of the job that is to write the batch's files; None when the batch is there, and nothing is to be done.

        Raises:
            CheckpointError: as ``is_committed``.
        """
        ref = self._committer.ref
        latest_id = self._store.latest_snapshot_id() or 0
        note = self._notes.load_newest() if self._seen_id is None else None
        found = self._look(batch, latest_id, note)
        is_running = self._seen_id is not None
        if is_running and found.last is None and not found.is_complete:
            self._check_alone()
        # What this process has seen before, it need not find again: no other one can have committed it.
        accept = self._committer.options.accept_unknown_batch or (is_running and self._is_alone)
        landed = is_committed(batch, found, table=self._store.name, accept_unknown=accept)
        if landed and is_running:
            self._check_alone()
        self._seen_id = latest_id
        self._upstream_times = merge_times(
            self._upstream_times,
            None if note is None else note.upstream_times,
            None if found.last is None else dict(found.last.properties).get(UPSTREAM_TIMES),
        )
        if landed:
            return None
        if note is not None and note.batch_id == batch.id:
            delete_staging(ref, note.job_id)
            if found.is_complete:  # else one of them may have landed, in a snapshot that has expired
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
        """Make the rows of a batch that ``begin`` was called for a snapshot.

        Returns:
            The snapshot; None when nothing changes.

        Raises:
            CheckpointError: somebody else has committed this batch with other rows meanwhile.
            LeaseHeldError: somebody else has committed it, and runs the query.
            TableStoreError: as ``TableCommitter.commit``. Unless the outcome is unknown, the messages' files are gone.
        """
        self._check_table()
        self._committer.check_alone = self.check_alone if self._is_alone else None
        snapshot = _commit(
            self._committer, batch, messages, after_id=self._seen_id or 0, is_overwrite=self._is_overwrite
        )
        if snapshot is not None:
            if not self._committer.may_be_committed:
                self._check_alone()
            self._has_committed |= self._committer.may_be_committed
            self._seen_id = snapshot.id
        known, self._upstream_times = self._upstream_times, merge_times(self._upstream_times, batch.upstream_times)
        if snapshot is None and self._note is not None and self._upstream_times != known:
            # No snapshot keeps them, and the next batch may never come.
            self._notes.write(replace(self._note, upstream_times=self._upstream_times))
        # Run again, a batch writes to the same places. Not before its commit: the driver might not be dead, and where
        # the snapshot is not of this call, one of those jobs has made it.
        if self._killed_jobs and self._committer.may_be_committed:
            delete_job_files_beside(self._committer.ref, self._killed_jobs, messages)
        self._killed_jobs = ()
        return snapshot

    def commit_on_idle(self, last: Batch, watermark: int | None, *, is_forced: bool = False) -> Snapshot | None:
        """Make a snapshot without rows, by which the table's watermark moves while the query has none.

        It has a commit user of its own, so that it is no batch of the query. But it says behind which one it is: many
        of them let that one's snapshot expire, and the next start looks for it.

        Args:
            last: the query's last batch, which was committed.
            is_forced: also where nothing moves.

        Returns:
            The snapshot; None when nothing moves.

        Raises as ``commit``.
        """
        self._check_table()
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
        """Whether no other process can commit a batch of the query while this one holds the lease."""
        return self._has_committed or not self.may_have_rival()

    def _check_alone(self) -> None:
        """Raise ``LeaseHeldError`` where another process has taken over the query."""
        if self.check_alone is not None:
            self.check_alone()

    def _look(self, batch: Batch, latest_id: int, note: BatchNote | None) -> OwnCommits:
        after_id = self._seen_id
        if after_id is None:
            # A later batch's note is that of a checkpoint set back: its base may have this batch behind it.
            after_id = self._mark.base_id if note is None or note.batch_id > batch.id else note.base_id
        return search_commits(self._store, _is_of(batch.commit_user), latest_id=latest_id, after_id=after_id)

    def _reopened(self, ref: TableRef) -> TableCommitter:
        """Open a committer with the options that the table has now, and with what this one has learned."""
        known, new = self._committer, open_committer(ref, self._store)
        new.index, new.sleep, new.clock_millis = known.index, known.sleep, known.clock_millis
        return new

    def _check_table(self) -> None:
        ref = self._committer.ref
        try:
            identity = load_identity(ref)
        except NotFoundError as error:
            raise NotFoundError(
                f"table {ref.name}: it was dropped or moved while a query wrote to it, whose checkpoint is "
                f"{self._notes.place}; start the query with that where the table is now; or make the table anew, and "
                "start the query with a new checkpoint"
            ) from error
        check_identity(self._mark, identity, ref, self._notes)


def commit_unnoted(
    ref: TableRef, batch: Batch, messages: tuple[CommitMessage, ...], *, is_overwrite: bool
) -> Snapshot | None:
    """Make the rows of a batch a snapshot, where no checkpoint can be asked; a replay's files are deleted.

    Looks through the snapshots from the latest to the query's newest one, or through all; for a first batch that was
    seen before, through those made since. A first batch that is seen for the first time is new even if snapshots
    have expired; so that the later ones find it, it makes a snapshot also where it has no rows.

    Raises:
        CheckpointError: as ``is_committed``; the files are gone.
        TableStoreError: as ``TableCommitter.commit``.
    """
    store = MetadataStore(ref)
    committer = open_committer(ref, store)
    latest_id = store.latest_snapshot_id() or 0
    try:
        known_id = note_first_batch(store, batch.commit_user, latest_id) if batch.id == 0 else None
        found = search_commits(store, _is_of(batch.commit_user), latest_id=latest_id, after_id=known_id or 0)
        accept = committer.options.accept_unknown_batch or (batch.id == 0 and known_id is None)
        landed = is_committed(batch, found, table=ref.name, accept_unknown=accept)
    except TableStoreError:
        delete_new_files(ref, messages)
        raise
    if landed:
        delete_new_files(ref, messages)
        return found.last
    return _commit(
        committer, batch, messages, after_id=latest_id, is_overwrite=is_overwrite, commit_empty=batch.id == 0
    )


def _is_of(query_id: str) -> Callable[[Snapshot], bool]:
    """Return what knows the snapshots that say which batch of a query is in the table."""
    idle = f"{query_id}{IDLE_SUFFIX}"
    return lambda snapshot: (
        snapshot.commit_user == query_id or (snapshot.commit_user == idle and BATCH_ID in dict(snapshot.properties))
    )


def _properties(batch: Batch) -> tuple[tuple[str, str], ...]:
    kept = {BATCH_DIGEST: batch.digest, UPSTREAM_TIMES: batch.upstream_times}
    return tuple((key, value) for key, value in kept.items() if value is not None)


def _commit(
    committer: TableCommitter,
    batch: Batch,
    messages: tuple[CommitMessage, ...],
    *,
    after_id: int,
    is_overwrite: bool,
    commit_empty: bool = False,
) -> Snapshot | None:
    options = committer.options
    snapshot = commit_or_discard(
        committer,
        CommitRequest(
            commit_user=batch.commit_user,
            commit_identifier=batch.id,
            kind=CommitKind.OVERWRITE if is_overwrite else CommitKind.APPEND,
            scope=WholeTable() if is_overwrite else None,
            messages=messages,
            watermark=batch.watermark,
            properties=_properties(batch),
            check_committed=True,
            committed_after_id=after_id,
            commit_empty=commit_empty or options.force_create_snapshot or options.ignore_empty_commit is False,
        ),
    )
    if snapshot is not None:
        # Where somebody else was faster, it is theirs.
        is_committed(batch, OwnCommits(last=snapshot, is_complete=True), table=committer.ref.name)
    return snapshot
