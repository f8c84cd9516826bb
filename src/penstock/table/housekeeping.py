"""What a committing job does for its table after a commit: tags are made; tags, partitions, snapshots expire.

The commit has landed by then and does not come to know of any of it: what goes wrong is logged, and tried again after
a later commit.

Source:
    Paimon ``core:operation/FileStoreCommitImpl.java``, ``core:table/sink/TableCommitImpl.java``; spec/commit.md
    section 7.
"""

from __future__ import annotations

import logging
import random
from dataclasses import replace
from threading import Thread
from typing import TYPE_CHECKING, Final

from penstock.errors import NotFoundError
from penstock.options import ConsumerOptions, ExpireMode, PartitionExpireOptions, TagCreation, TagOptions
from penstock.spec.snapshot import BATCH_COMMIT_IDENTIFIER
from penstock.table.auto_tags import TagMaker
from penstock.table.batch_tags import batch_zone, make_batch_tag
from penstock.table.consumers import expire_consumers
from penstock.table.expire import Expiration, SnapshotExpirer
from penstock.table.expire_partitions import drop_expired_partitions, find_expired_partitions
from penstock.table.expire_tags import expire_tags
from penstock.table.sequence import BucketIndex
from penstock.table.store import MetadataStore
from penstock.table.touched import load_touched_partitions

if TYPE_CHECKING:
    from penstock.spec.snapshot import Snapshot
    from penstock.table.commit import TableCommitter
    from penstock.table.expire_plan import ExpireRules

_LOG: Final = logging.getLogger("penstock.housekeeping")
# Looking for tags and consumers that have expired lists directories, which need not be done after each micro-batch.
_LOOK_INTERVAL_MS: Final = 60_000


class Housekeeping:
    """Keeps one table's house; keeps what it learned, so that most commits cost no call to storage for it.

    With ``snapshot.expire.execution-mode = async`` it is done on a thread, one at a time, that the process waits for
    when it ends.

    Raises:
        InvalidOptionError: an option that it reads has a value that it must not have.
    """

    def __init__(self, committer: TableCommitter) -> None:
        ref = committer.ref
        self._committer = committer
        self._tag_options = TagOptions.parse(ref.options, table=ref.name)
        self._partition_options = PartitionExpireOptions.parse(ref.options, table=ref.name)
        self._consumer_options = ConsumerOptions.parse(ref.options, table=ref.name)
        self._expirer = SnapshotExpirer(ref, committer.store, clock_millis=self._now)
        self._is_async = self._expirer.options.expire_mode is ExpireMode.ASYNC
        if self._is_async:
            self._committer = replace(committer, store=MetadataStore(ref), index=BucketIndex())
            self._expirer = SnapshotExpirer(ref, self._committer.store, clock_millis=self._now)
        creation = self._tag_options.automatic_creation
        if creation is TagCreation.BATCH:
            batch_zone(self._tag_options, ref.name)
        self._tag_maker = (
            TagMaker(ref, self._committer.store, self._tag_options)
            if creation in {TagCreation.PROCESS_TIME, TagCreation.WATERMARK}
            else None
        )
        self._thread: Thread | None = None
        self._known = Expiration()
        self._next_look = 0
        # Many jobs that begin together do not all look together.
        self._next_partition_look = self._now() + int(random.random() * self._partition_options.check_interval_ms)  # noqa: S311 - not for secrets
        self._last_failure = ""
        self._has_missed = False

    def after_commit(self, snapshot: Snapshot) -> None:
        """Keep house, or see to it that it is kept."""
        if not self._is_async:
            self._keep(snapshot)
        elif self._thread is None or not self._thread.is_alive():
            self._thread = Thread(target=self._keep, args=(snapshot,), name="penstock-housekeeping")
            self._thread.start()

    def wait(self) -> None:
        """Return when the thread, if there is one, has done what it does."""
        if self._thread is not None:
            self._thread.join()

    def _now(self) -> int:
        return self._committer.clock_millis()

    def _keep(self, snapshot: Snapshot) -> None:
        try:
            self._make_tags(snapshot)  # first, so that no snapshot expires before it gets one
            self._expire_tags_and_consumers()
            latest_id = self._expire_partitions(snapshot)
            self._expire_snapshots(latest_id)
            self._has_missed = False
        except Exception as error:  # noqa: BLE001 - the commit has landed: whoever called must not think otherwise
            # Another job that expires snapshots at this moment deletes lists before the snapshots that name them:
            # what is not there is a reason to worry when something is not there the next time either.
            is_race = isinstance(error, NotFoundError) and not self._has_missed
            self._has_missed = isinstance(error, NotFoundError)
            if str(error) != self._last_failure:
                text = f"table {self._committer.ref.name}: after snapshot {snapshot.id}: {error}"
                _LOG.log(
                    logging.INFO if is_race else logging.WARNING, "%s; it is tried again after a later commit", text
                )
            if not is_race:
                self._last_failure = str(error)

    def _make_tags(self, snapshot: Snapshot) -> None:
        committer = self._committer
        if self._tag_maker is not None:
            self._tag_maker.run(snapshot)
        elif (
            self._tag_options.automatic_creation is TagCreation.BATCH
            and snapshot.commit_identifier == BATCH_COMMIT_IDENTIFIER
            and load_touched_partitions(committer.store, snapshot)
        ):
            make_batch_tag(committer.ref, committer.store, self._tag_options)

    def _expire_tags_and_consumers(self) -> None:
        now, committer = self._now(), self._committer
        if now < self._next_look:
            return
        self._next_look = now + _LOOK_INTERVAL_MS
        if self._tag_options.time_expire_enabled:
            expire_tags(committer.ref, committer.store)
        if self._consumer_options.expiration_time_ms is not None:
            expire_consumers(committer.store, self._consumer_options.expiration_time_ms, clock=self._now)

    def _expire_partitions(self, snapshot: Snapshot) -> int:
        """Drop partitions when it is time to look for them; returns the latest snapshot's id then."""
        options, committer = self._partition_options, self._committer
        if options.expiration_time_ms is None or not committer.ref.schema.partition_keys:
            return snapshot.id
        is_end = options.end_input_check and snapshot.commit_identifier == BATCH_COMMIT_IDENTIFIER
        if self._now() < self._next_partition_look and not is_end:
            return snapshot.id
        self._next_partition_look = self._now() + options.check_interval_ms
        expired = find_expired_partitions(committer.ref, committer.store, options=options)
        # One without this hook, and without what the job's own committer is in the middle of.
        own = replace(committer, index=BucketIndex(), after_commit=lambda _snapshot: None)
        return snapshot.id + drop_expired_partitions(own, expired, batch_size=options.batch_size)

    def _expire_snapshots(self, latest_id: int) -> None:
        rules = self._expirer.rules(max_deletes=self._expirer.options.expire_limit)
        if _may_expire(rules, self._known, latest_id):
            self._known = self._expirer.run(rules, latest_id=latest_id)


def _may_expire(rules: ExpireRules, known: Expiration, latest_id: int) -> bool:
    earliest_id = known.earliest_id or 1
    if latest_id < earliest_id:
        return True  # the table was made anew since
    if latest_id - rules.retain_min + 1 <= earliest_id:
        return False
    is_young = known.next_cutoff_millis is not None and rules.cutoff_millis <= known.next_cutoff_millis
    return not is_young or latest_id - rules.retain_max + 1 > earliest_id
