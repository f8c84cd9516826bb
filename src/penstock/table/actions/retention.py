"""Retention after each commit: creates tags, and deletes what has expired.

Source:
    Paimon ``core:operation/FileStoreCommitImpl.java``, ``core:table/sink/TableCommitImpl.java``; docs/spec/commit.md
    section 7.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock.format.snapshot import BATCH_COMMIT_IDENTIFIER
from penstock.options import ConsumerOptions, PartitionExpireOptions, TagCreation, TagOptions
from penstock.table.actions.auto_tags import TagMaker
from penstock.table.actions.batch_tags import batch_zone, make_batch_tag
from penstock.table.commit.committer import no_hooks
from penstock.table.commit.delta import BucketIndex
from penstock.table.commit.written_partitions import load_written_partitions
from penstock.table.expire.partitions import drop_expired_partitions, find_expired_partitions
from penstock.table.expire.snapshots import Expiration, SnapshotExpirer
from penstock.table.expire.tags import expire_tags
from penstock.table.stream.consumers import expire_consumers
from penstock.table.tags import TagReader

if TYPE_CHECKING:
    from penstock.format.snapshot import Snapshot
    from penstock.io.file_io import FileIO
    from penstock.table.commit.committer import TableCommitter
    from penstock.table.expire.plan import ExpireRules

# Finding expired tags and consumers lists directories, which is not necessary after every micro-batch.
_LOOK_INTERVAL_MS: Final = 60_000


class Retention:
    """Creates tags of one table and deletes what has expired; caches what it read.

    Args:
        committer: provides the store and the clock, and drops partitions.

    Raises:
        InvalidOptionError: an option has an invalid value.
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
