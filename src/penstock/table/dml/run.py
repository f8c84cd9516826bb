"""Runs a DELETE, UPDATE or MERGE: finds the files with matching rows, rewrites them, and makes one commit.

The commit succeeds only on the snapshot from which the change was computed. If others committed in between, the change
is evaluated again: only new files are read, and results for files that are no longer live are discarded. So a row that
is appended concurrently is either changed, too, or was appended after the change. If others altered the table, the
change is computed again for the latest schema.

Source:
    Paimon ``spark:commands/PaimonRowLevelCommand.scala``; docs/spec/commit.md section 5.1.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.errors import CommitConflictError
from penstock.format.snapshot import CommitKind
from penstock.table.actions.rewriting import check_index_files
from penstock.table.commit.cleanup import delete_new_files
from penstock.table.commit.committer import new_commit_user
from penstock.table.commit.delta import CommitRequest
from penstock.table.dml.result import ChangeResult
from penstock.table.dml.rewrite import FileOutcome, FileRewriter
from penstock.table.identity import check_same_table
from penstock.table.locate import FileLocator
from penstock.table.memory import enough_memory
from penstock.table.read.live import load_live_of_partitions
from penstock.table.read.prune import PartitionPruneResult
from penstock.table.read.scan import plan_scan
from penstock.table.read.split import make_split
from penstock.table.stale_schema import at_latest_schema
from penstock.table.write.writer import write_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from penstock.format.manifest.entry import ManifestEntry
    from penstock.format.snapshot import Snapshot
    from penstock.table.commit.committer import TableCommitter
    from penstock.table.dml.change import RowChange
    from penstock.table.message import CommitMessage
    from penstock.table.read.scan import ScanPlan
    from penstock.table.read.split import DataSplit
    from penstock.table.ref import TableRef

_MAX_THREADS: Final = 4
# As for commits, see ``CommitOptions.timeout_ms``.
_DEFAULT_TIMEOUT_MS: Final = 120_000


class _FileKey(NamedTuple):
    partition: bytes
    bucket: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unit:
    """Files that are rewritten together, because their order is only that of the manifest; usually one."""

    split: DataSplit
    keys: tuple[_FileKey, ...]


@dataclass(slots=True)
class _Progress:
    """Results so far, which are reused when the change is evaluated again.

    Attributes:
        hits: number of rows of a file that may change.
        outcomes: results of the files with matching rows that were rewritten together.
    """

    hits: dict[_FileKey, int] = field(default_factory=dict)
    outcomes: dict[tuple[_FileKey, ...], FileOutcome] = field(default_factory=dict)


def run_change(
    committer: TableCommitter, new_change: Callable[[TableRef], RowChange], *, dry_run: bool = False
) -> ChangeResult:
    """Change rows in one commit; no commit if there is no row to change.

    Args:
        new_change: makes the change for the table with its latest schema; called again if others alter the table.
        dry_run: only find what would change.

    Raises:
        InvalidFilterError: the predicate does not fit the table.
        UnsupportedFeatureError: the table has index files, which would have to be rewritten.
        SchemaMismatchError: a new value does not fit its column.
        CommitConflictError: others committed at every attempt; nothing was changed.
        CommitUnknownError: the storage did not answer whether the commit succeeded.
    """
    return _ChangeRun(committer, new_change, is_dry_run=dry_run).run()


class _ChangeRun:
    def __init__(
        self, committer: TableCommitter, new_change: Callable[[TableRef], RowChange], *, is_dry_run: bool
    ) -> None:
        self._store = committer.store
        self._new_change = new_change
        self._is_dry_run = is_dry_run
        self._begin(committer)
        self._user = new_commit_user(committer.options.user_prefix)

    def _begin(self, committer: TableCommitter) -> None:
        self._committer = committer
        self._ref = committer.ref
        self._change = self._new_change(self._ref)
        self._rewriter = FileRewriter(self._ref, self._store, self._change, is_dry_run=self._is_dry_run)
        self._locator = FileLocator.of(self._ref)
        self._progress = _Progress()

    def run(self) -> ChangeResult:
        options = self._committer.options
        deadline = time.monotonic() + (options.timeout_ms or _DEFAULT_TIMEOUT_MS) / 1000
        tries = 0
        try:
            while True:
                try:
                    return self._try_once()
                except CommitConflictError:
                    tries += 1
                    is_spent = options.max_retries is not None and tries > options.max_retries
                    if is_spent or time.monotonic() > deadline:
                        raise
        except BaseException:
            if not self._committer.may_be_committed:
                self._discard(tuple(self._progress.outcomes))
            raise

    def _try_once(self) -> ChangeResult:
        self._committer.may_be_committed = False
        check_same_table(self._ref)
        snapshot = self._store.load_latest_snapshot()
        # Loaded after the snapshot, so the schema is not older than that of any of its files.
        ref = at_latest_schema(self._ref, self._store)
        if ref is not self._ref:
            self._discard(tuple(self._progress.outcomes))
            self._begin(replace(self._committer, ref=ref))
        check_index_files(self._ref.name, snapshot)
        units = self._plan_units(plan_scan(self._store, self._ref, snapshot, self._change.predicate))
        wanted = {unit.keys for unit in units}
        self._discard(tuple(keys for keys in self._progress.outcomes if keys not in wanted))
        self._rewrite([unit for unit in units if unit.keys not in self._progress.outcomes])
        outcomes = [self._progress.outcomes[unit.keys] for unit in units]
        return self._commit(snapshot, outcomes)

    def _plan_units(self, plan: ScanPlan) -> list[_Unit]:
        """Return the files with rows that may change, in the order of the plan."""
        splits = [
            (self._split(entry, plan, PartitionPruneResult(values=each.values, rest=each.rest)), entry)
            for each in plan.partitions
            for entry in each.entries
        ]
        known = self._progress.hits
        unknown = [(split, entry) for split, entry in splits if _key(entry) not in known]
        with ThreadPoolExecutor(max_workers=_threads()) as pool:
            counts = pool.map(lambda each: self._rewriter.count_hits(each[0], each[1].file), unknown)
            known.update(zip((_key(entry) for _, entry in unknown), counts, strict=True))
        hit = [(split, entry) for split, entry in splits if known[_key(entry)]]
        peers = self._peers(plan.snapshot, [entry for _, entry in hit])
        units: dict[tuple[_FileKey, ...], _Unit] = {}
        for split, entry in hit:
            entries = peers.get(_place(entry), (entry,))
            keys = tuple(map(_key, entries))
            files = tuple(each.file for each in entries)
            units[keys] = _Unit(split=replace(split, files=files), keys=keys)
        return list(units.values())

    def _split(self, entry: ManifestEntry, plan: ScanPlan, verdict: PartitionPruneResult) -> DataSplit:
        snapshot_id = plan.snapshot.id if plan.snapshot else 0
        return make_split(self._locator, snapshot_id, entry, (entry.file,), verdict)

    def _peers(
        self, snapshot: Snapshot | None, hit: Sequence[ManifestEntry]
    ) -> dict[tuple[bytes, int, int], tuple[ManifestEntry, ...]]:
        """Return the files of queues that begin with the same sequence number as a file with matching rows.

        Only their order in the manifest determines which is first, so they have to be replaced together. Writers that
        do not number rows at commit create such files.
        """
        places = {_place(entry) for entry in hit if entry.total_buckets > 0}
        if snapshot is None or not places:
            return {}
        partitions = frozenset(place[0] for place in places)
        live = load_live_of_partitions(self._store, self._ref.schema, snapshot, partitions)
        found: dict[tuple[bytes, int, int], list[ManifestEntry]] = {}
        for entry in live.values():
            if _place(entry) in places:
                found.setdefault(_place(entry), []).append(entry)
        return {place: tuple(entries) for place, entries in found.items()}

    def _rewrite(self, units: Sequence[_Unit]) -> None:
        with ThreadPoolExecutor(max_workers=_threads()) as pool:
            futures = [pool.submit(self._outcome, unit) for unit in units]
        errors = []
        for unit, future in zip(units, futures, strict=True):
            error = future.exception()
            if error is None:
                self._progress.outcomes[unit.keys] = future.result()
            else:
                errors.append(error)
        if errors:
            raise errors[0]

    def _outcome(self, unit: _Unit) -> FileOutcome:
        files = unit.split.files
        hits = sum(self._progress.hits.get(key, 0) for key in unit.keys)
        if self._change.only_deletes and hits == sum(file.row_count for file in files):
            return self._rewriter.drop(unit.split, files)
        return self._rewriter.rewrite(unit.split, files)

    def _commit(self, snapshot: Snapshot | None, outcomes: Sequence[FileOutcome]) -> ChangeResult:
        changes = tuple(each for outcome in outcomes for each in outcome.changes)
        rows = self._change.new_rows([each for outcome in outcomes for each in outcome.matched])
        inserted = rows.num_rows if rows is not None else 0
        messages = tuple(message for outcome in outcomes for message in outcome.messages)
        committed: Snapshot | None = None
        added: tuple[CommitMessage, ...] = ()
        if not self._is_dry_run and (messages or inserted):
            added = write_arrow(self._ref, rows) if rows is not None and inserted else ()
            committed = self._commit_files(snapshot, messages, added)
        return ChangeResult(
            snapshot=committed,
            is_dry_run=self._is_dry_run,
            files=tuple(each for each in changes if each.deleted or each.updated),
            files_added=sum(len(each.compact_after) + len(each.new_files) for each in (*messages, *added)),
            rows_deleted=sum(each.deleted for each in changes),
            rows_updated=sum(each.updated for each in changes),
            rows_inserted=inserted,
        )

    def _commit_files(
        self, snapshot: Snapshot | None, messages: tuple[CommitMessage, ...], added: tuple[CommitMessage, ...]
    ) -> Snapshot | None:
        request = CommitRequest(
            commit_user=self._user,
            kind=CommitKind.OVERWRITE if messages else CommitKind.APPEND,
            messages=(*messages, *added),
            has_read=True,
            read=snapshot,
        )
        try:
            with enough_memory(self._ref.name):
                return self._committer.commit(request)
        except BaseException:
            # The inserted rows depend on all files, so they are written again at each attempt.
            if not self._committer.may_be_committed:
                delete_new_files(self._ref, added)
            raise

    def _discard(self, keys: Iterable[tuple[_FileKey, ...]]) -> None:
        for each in keys:
            delete_new_files(self._ref, self._progress.outcomes.pop(each).messages)


def _key(entry: ManifestEntry) -> _FileKey:
    return _FileKey(entry.partition, entry.bucket, entry.file.file_name)


def _place(entry: ManifestEntry) -> tuple[bytes, int, int]:
    return entry.partition, entry.bucket, entry.file.min_sequence_number


def _threads() -> int:
    return min(os.cpu_count() or 1, _MAX_THREADS)
