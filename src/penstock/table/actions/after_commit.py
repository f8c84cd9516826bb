"""Maintenance after a commit: creates tags, marks partitions done, and deletes what has expired.

The commit has succeeded by then and never fails because of it: errors are logged, and the work is retried after a later
commit.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from threading import Thread
from typing import TYPE_CHECKING, Final

from penstock.errors import NotFoundError
from penstock.options import ExpireMode, RetentionOptions, WriteOptions
from penstock.printable import open_log
from penstock.table.actions.retention import Retention
from penstock.table.commit.committer import no_hooks
from penstock.table.commit.delta import BucketIndex
from penstock.table.mark_done.trigger import open_done_watch
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.format.snapshot import Snapshot
    from penstock.table.commit.committer import TableCommitter
    from penstock.table.ref import TableRef

_LOG: Final = open_log("penstock.housekeeping")


@dataclass(slots=True, kw_only=True)
class _Hook:
    """Runs one part of the work, so that its errors do not stop the other parts."""

    table: str
    last_failure: str = ""
    has_missed: bool = False

    def run(self, work: Callable[[], object], when: str) -> None:
        """Run it; an error is logged, but not repeatedly while it stays the same."""
        try:
            work()
            self.has_missed = False
        except Exception as error:  # noqa: BLE001 - the commit is done: the caller must not take it for failed
            # A concurrent expiration deletes lists before the snapshots that name them, so a missing file is only
            # reported if one is missing the next time, too.
            is_race = isinstance(error, NotFoundError) and not self.has_missed
            self.has_missed = isinstance(error, NotFoundError)
            if str(error) != self.last_failure:
                level = logging.INFO if is_race else logging.WARNING
                _LOG.log(level, "table %s: %s: %s; it is tried again after a later commit", self.table, when, error)
            if not is_race:
                self.last_failure = str(error)


class PostCommitHooks:
    """Runs the maintenance of one table; caches what it read, so that most commits make no additional request.

    With ``write-only`` it only marks partitions done, like the writers of the reference. With
    ``snapshot.expire.execution-mode = async`` the work runs on a thread, one run at a time, for which the process waits
    when it ends.

    Args:
        adds_rows: False for a job that adds none, which marks no partition done.

    Raises:
        InvalidOptionError: an option has an invalid value.
        UnsupportedFeatureError: an option requires an unsupported action.
    """

    def __init__(self, committer: TableCommitter, *, adds_rows: bool = True) -> None:
        ref = committer.ref
        self._written = committer.store  # it has cached what the job wrote
        is_write_only = ref.parsed(WriteOptions).write_only or ref.file_io.branch_name is not None
        self._is_async = not is_write_only and _expire_mode(ref) is ExpireMode.ASYNC
        if self._is_async:
            committer = replace(committer, store=MetadataStore(ref), index=BucketIndex(), new_hooks=no_hooks)
        self._retention = None if is_write_only else Retention(committer)
        self._committer = committer
        self._watch = open_done_watch(ref, clock_millis=self._now) if adds_rows else None
        self._retaining, self._marking = _Hook(table=ref.name), _Hook(table=ref.name)
        self._thread: Thread | None = None

    @property
    def has_work(self) -> bool:
        """Whether the table's options require any maintenance."""
        return self._retention is not None or self._watch is not None

    def after_commit(self, snapshot: Snapshot) -> None:
        """Run the maintenance, in this thread or another one."""
        watch = self._watch
        if watch is not None:
            self._marking.run(lambda: watch.add_commit(self._written, snapshot), f"after snapshot {snapshot.id}")
        self._do(lambda: self._keep(snapshot))

    def on_idle(self) -> None:
        """Run what is due by time alone: delete what has expired, and mark partitions done by the clock.

        For a job between its commits, not during a commit. Tags, and marks by watermark, need a snapshot. Most calls
        make no request.
        """
        self._do(self._run_on_idle)

    def wait(self) -> None:
        """Wait until the thread, if there is one, has finished its work."""
        if self._thread is not None:
            self._thread.join()

    def _now(self) -> int:
        return self._committer.clock_millis()

    def _do(self, work: Callable[[], None]) -> None:
        if not self._is_async:
            work()
        elif self._thread is None or not self._thread.is_alive():
            self._thread = Thread(target=work, name="penstock-housekeeping")
            self._thread.start()

    def _keep(self, snapshot: Snapshot) -> None:
        when, retention, watch = f"after snapshot {snapshot.id}", self._retention, self._watch
        if retention is not None:
            self._retaining.run(lambda: retention.keep(snapshot), when)
        if watch is not None:
            self._marking.run(lambda: watch.mark_due(self._committer.store, snapshot), when)

    def _run_on_idle(self) -> None:
        when, retention, watch, store = "between commits", self._retention, self._watch, self._committer.store
        if retention is not None:
            self._retaining.run(retention.run_on_idle, when)
        if watch is not None:
            self._marking.run(lambda: watch.check_on_idle(store, store.load_latest_snapshot), when)


def _expire_mode(ref: TableRef) -> ExpireMode:
    return ref.parsed(RetentionOptions).expire_mode
