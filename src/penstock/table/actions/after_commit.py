"""Maintenance after a commit: creates tags, marks partitions done, and deletes what has expired.

The commit has succeeded by then and never fails because of it: errors are logged, and the work is retried after a later
commit.

Source:
    Paimon ``core:operation/FileStoreCommitImpl.java``, ``core:table/sink/TableCommitImpl.java``,
    ``core:tag/TagBatchCreation.java`` (the tag of a batch, named after the day of its commit or with a fixed name);
    docs/spec/commit.md section 7.
"""

from __future__ import annotations

import logging
import random
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Thread
from typing import TYPE_CHECKING, Final

from penstock.clocks import local_now
from penstock.errors import NotFoundError
from penstock.format.layout import tag_name_of
from penstock.format.snapshot import BATCH_COMMIT_IDENTIFIER
from penstock.format.tag import encode_tag
from penstock.options import (
    ConsumerOptions,
    ExpireMode,
    PartitionExpireOptions,
    RetentionOptions,
    TagCreation,
    TagOptions,
    WriteOptions,
)
from penstock.printable import open_log
from penstock.table.actions.auto_tags import TagMaker
from penstock.table.commit.committer import no_hooks
from penstock.table.commit.delta import BucketIndex
from penstock.table.expire.partitions import drop_expired_partitions, find_expired_partitions
from penstock.table.expire.snapshots import Expiration, SnapshotExpirer
from penstock.table.expire.tags import delete_tag, expire_tags, forget_snapshot
from penstock.table.mark_done.trigger import open_done_watch
from penstock.table.read.live import load_written_partitions
from penstock.table.store import MetadataStore
from penstock.table.stream.consumers import expire_consumers
from penstock.table.tags import TagReader, new_tag, write_tag_success_file
from penstock.table.times import parse_zone, wall_clock

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, tzinfo

    from penstock.format.snapshot import Snapshot
    from penstock.io.file_io import FileIO
    from penstock.table.commit.committer import TableCommitter
    from penstock.table.expire.plan import ExpireRules
    from penstock.table.ref import TableRef


_PREFIX: Final = "batch-write-"


def batch_zone(options: TagOptions, table: str) -> tzinfo | None:
    """Return the zone of the day in the tag's name; None for this machine's. Raises ``InvalidOptionError``."""
    return parse_zone(options.process_zone, "sink.process-time-zone", table)


def make_batch_tag(
    ref: TableRef, store: MetadataStore, options: TagOptions, *, now: Callable[[], datetime] = local_now
) -> str | None:
    """Tag the latest snapshot, moving the tag from the snapshot that had it.

    Beyond ``tag.num-retained-max`` the tags of the oldest snapshots are deleted, including manually created ones.

    Args:
        now: local wall clock as if it were UTC.

    Returns:
        The name; None if nothing was ever committed.
    """
    zone = batch_zone(options, ref.name)
    snapshot = store.load_latest_snapshot()
    time = None if snapshot is None else wall_clock(snapshot.time_millis, zone)
    if snapshot is None or time is None:
        return None
    name = options.batch_customized_name or f"{_PREFIX}{time:%Y-%m-%d}"
    try:
        before = store.load_tag(name).snapshot
    except NotFoundError:
        before = None
    tag = new_tag(snapshot, options.default_time_retained_ms, now=now)
    # In one step, so that readers always find it; the reference deletes it first.
    store.file_io.write(store.layout.tag_path(name), encode_tag(tag))
    write_tag_success_file(store, name, options)
    if before is not None:
        forget_snapshot(ref, store, before)
    if options.num_retained_max is not None:
        _drop_oldest(ref, store, options.num_retained_max)
    return name


def _drop_oldest(ref: TableRef, store: MetadataStore, count: int) -> None:
    tags = TagReader(ref.file_io, ref.location).load()
    changed = {
        name: status.modified_millis
        for status in ref.file_io.list(ref.layout.tag_directory)
        if (name := tag_name_of(status.name)) is not None
    }
    oldest = sorted(tags, key=lambda name: (tags[name].snapshot.id, changed.get(name, 0)))
    for name in oldest[: max(0, len(oldest) - count)]:
        with suppress(NotFoundError):  # another job was faster
            delete_tag(ref, store, name)


# Finding expired tags and consumers lists directories, which is not necessary after every micro-batch.
_LOOK_INTERVAL_MS: Final = 60_000


class Retention:
    """Creates tags of one table and deletes what has expired; caches what it read.

    Args:
        committer: provides the store and the clock, and drops partitions.
    """

    def __init__(self, committer: TableCommitter) -> None:
        ref = committer.ref
        self._committer = committer
        self._tag_options = ref.parsed(TagOptions)
        self._partition_options = ref.parsed(PartitionExpireOptions)
        self._consumer_options = ref.parsed(ConsumerOptions)
        self._expirer = SnapshotExpirer(ref, committer.store, clock_millis=self._now)
        self._tag_maker: TagMaker | None = None
        creation = self._tag_options.automatic_creation
        if creation in {TagCreation.PROCESS_TIME, TagCreation.WATERMARK}:
            self._tag_maker = TagMaker(ref, committer.store, self._tag_options)
        elif creation is TagCreation.BATCH:
            batch_zone(self._tag_options, ref.name)
        self._tags = TagReader(ref.file_io, ref.location)
        self._latest: Snapshot | None = None
        self._known = Expiration()
        self._next_look = 0
        # Random, so that jobs that start together do not all check at the same time.
        self._next_partition_check = self._now() + int(random.random() * self._partition_options.check_interval_ms)  # noqa: S311 - not for secrets

    def keep(self, snapshot: Snapshot) -> None:
        """Run what is due after a snapshot; all errors are raised."""
        self._latest = snapshot
        with self._committer.ref.file_io.prefetch() as ahead:
            if self._now() >= self._next_look:
                self._request(ahead)
            self._make_tags(snapshot)  # first, so that no snapshot expires before it gets its tag
            self._expire(snapshot.id, ahead, is_end=snapshot.commit_identifier == BATCH_COMMIT_IDENTIFIER)

    def _request(self, ahead: FileIO) -> None:
        """Request what is read at the first commit, and periodically."""
        layout = self._committer.ref.layout
        if self._tag_options.time_expire_enabled:
            ahead.request_list(layout.tag_directory)
        ahead.request_list(layout.consumer_directory)
        self._committer.store.reading(ahead).request_earliest()

    def run_on_idle(self) -> None:
        """Run what is due by time alone, except tags, which need a snapshot; all errors are raised."""
        self._latest = self._latest or self._committer.store.load_latest_snapshot()
        if self._latest is not None:
            self._expire(self._latest.id, self._committer.ref.file_io, is_end=False)

    def _now(self) -> int:
        return self._committer.clock_millis()

    def _expire(self, latest_id: int, ahead: FileIO, *, is_end: bool) -> None:
        self._expire_tags_and_consumers(ahead)
        latest_id += self._expire_partitions(is_end=is_end)
        rules = self._expirer.rules(max_deletes=self._expirer.options.expire_limit)
        if _may_expire(rules, self._known, latest_id):
            self._known = self._expirer.run(rules, latest_id=latest_id, ahead=ahead)

    def _make_tags(self, snapshot: Snapshot) -> None:
        committer = self._committer
        if self._tag_maker is not None:
            self._tag_maker.run(snapshot)
        elif (
            self._tag_options.automatic_creation is TagCreation.BATCH
            and snapshot.commit_identifier == BATCH_COMMIT_IDENTIFIER
            and load_written_partitions(committer.store, snapshot)
        ):
            make_batch_tag(committer.ref, committer.store, self._tag_options)

    def _expire_tags_and_consumers(self, ahead: FileIO) -> None:
        now, committer = self._now(), self._committer
        if now < self._next_look:
            return
        self._next_look = now + _LOOK_INTERVAL_MS
        if self._tag_options.time_expire_enabled:
            expire_tags(committer.ref, committer.store, tags=self._tags.load(ahead))
        if self._consumer_options.expiration_time_ms is not None:
            expire_consumers(committer.store.reading(ahead), self._consumer_options.expiration_time_ms, clock=self._now)

    def _expire_partitions(self, *, is_end: bool) -> int:
        """Drop expired partitions if it is time to check for them; returns the number of snapshots created."""
        options, committer = self._partition_options, self._committer
        if options.expiration_time_ms is None or not committer.ref.schema.partition_keys:
            return 0
        if self._now() < self._next_partition_check and not (options.end_input_check and is_end):
            return 0
        self._next_partition_check = self._now() + options.check_interval_ms
        expired = find_expired_partitions(committer.ref, committer.store, options=options)
        # A committer without this hook, and without the state of the job's own committer.
        own = replace(committer, index=BucketIndex(), new_hooks=no_hooks)
        return drop_expired_partitions(own, expired, batch_size=options.batch_size)


def _may_expire(rules: ExpireRules, known: Expiration, latest_id: int) -> bool:
    earliest_id = known.earliest_id or 1
    if latest_id < earliest_id:
        return True  # the table was recreated since
    if latest_id - rules.retain_min + 1 <= earliest_id:
        return False
    is_young = known.next_cutoff_millis is not None and rules.cutoff_millis <= known.next_cutoff_millis
    return not is_young or latest_id - rules.retain_max + 1 > earliest_id


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
