"""Random histories that expire: what stays reads as it did, and the files of the rest are gone."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.support.garbage import needed_files, stored_files

import penstock
from penstock.clocks import utc_millis
from penstock.format.consumer import encode_consumer
from penstock.format.snapshot import CommitKind
from penstock.io.memory import MemoryFileIO
from penstock.table.actions.changes import open_committer
from penstock.table.commit.cleanup import commit_or_discard, delete_new_files
from penstock.table.commit.committer import new_commit_user
from penstock.table.commit.delta import CommitRequest
from penstock.table.read.live import load_live_entries

MACHINES = itertools.count()
HANDLES: Final = 2
WHICH = st.integers(0, HANDLES - 1)
PLACES = st.integers(0, 99)
PARTS = st.sampled_from(["a", "b", "c"])


@dataclass(slots=True)
class Model:
    """Rows by snapshot id and by tag, as sorted values of v."""

    snapshots: dict[int, list[int]] = field(default_factory=dict)
    tags: dict[str, tuple[int, list[int]]] = field(default_factory=dict)
    consumers: dict[str, int] = field(default_factory=dict)

    @property
    def latest_id(self) -> int:
        return max(self.snapshots, default=0)


class ExpirationMachine(RuleBasedStateMachine):
    """A table and its model; column v numbers the rows."""

    @initialize(buckets=st.sampled_from([-1, 2]), merge_count=st.sampled_from(["2", "30"]), full=st.booleans())
    def create(self, *, buckets: int, merge_count: str, full: bool) -> None:
        self.store_name = f"expiration-{next(MACHINES)}"
        catalog = penstock.Catalog(f"memory://{self.store_name}")
        catalog.create_database("db")
        options = {
            "bucket": str(buckets),
            "manifest.merge-min-count": merge_count,
            "manifest.full-compaction-threshold-size": "1 b" if full else "16 mb",
            "file-operation.thread-num": "1",
            "write-only": "true",  # nothing goes but by the rules below
        }
        if buckets > 0:
            options["bucket-key"] = "v"
        catalog.create_table("db.t", "v INT, p STRING", partition_by=["p"], options=options)
        self.handles = [catalog.load_table("db.t") for _ in range(HANDLES)]
        self.ref = self.handles[0]._ref
        self.model = Model()
        self.parts: dict[int, str] = {}
        self.numbers = itertools.count()
        self.names = itertools.count()
        self.orphans: set[str] = set()
        self.restored: set[str] = set()

    def teardown(self) -> None:
        if not hasattr(self, "ref"):
            return
        for snapshot_id, rows in self.model.snapshots.items():
            assert self.read(snapshot_id=snapshot_id) == rows
        if self.model.snapshots:
            report = self.handles[0].remove_orphan_files(older_than=utc_millis(), dry_run=False, allow_recent=True)
            self.orphans -= {orphan.path for orphan in report.orphans}
            # Manifests may still name a file that was restored by a snapshot which a rollback has deleted.
            assert self.orphans <= self.restored
        assert stored_files(self.ref) == needed_files(self.ref) | self.orphans
        assert self.handles[0].inspect.fsck(all_snapshots=True).findings == ()
        MemoryFileIO(self.store_name).discard()

    def rows(self, part: str, count: int) -> pa.Table:
        numbers = [next(self.numbers) for _ in range(count)]
        self.parts.update(dict.fromkeys(numbers, part))
        return pa.table({"v": pa.array(numbers, pa.int32()), "p": [part] * count})

    def read(self, **how: Any) -> list[int]:
        found: list[int] = penstock.Table(self.ref).to_arrow(**how).column("v").to_pylist()
        return sorted(found)

    def note(self, snapshot: Any, rows: list[int]) -> None:
        assert snapshot.id == self.model.latest_id + 1
        self.model.snapshots[snapshot.id] = sorted(rows)

    @property
    def latest_rows(self) -> list[int]:
        return self.model.snapshots.get(self.model.latest_id, [])

    @rule(which=WHICH, part=PARTS, count=st.integers(1, 3))
    def append(self, which: int, part: str, count: int) -> None:
        rows = self.rows(part, count)
        self.note(self.handles[which].append(rows), [*self.latest_rows, *rows.column("v").to_pylist()])

    @rule(which=WHICH, part=PARTS)
    def overwrite_partition(self, which: int, part: str) -> None:
        rows = self.rows(part, 1)
        kept = [number for number in self.latest_rows if self.parts[number] != part]
        self.note(self.handles[which].overwrite(rows), [*kept, *rows.column("v").to_pylist()])

    @rule(which=WHICH)
    def truncate(self, which: int) -> None:
        self.note(self.handles[which].truncate(), [])

    @precondition(lambda self: self.model.snapshots)
    @rule(which=WHICH)
    def compact(self, which: int) -> None:
        """Rewrite the files of one bucket as one."""
        table = self.handles[which]
        snapshot = table.latest_snapshot()
        assert snapshot is not None
        live = list(load_live_entries(table._store, snapshot).values())
        if not live:
            return
        place = (live[0].partition, live[0].bucket)
        (part,) = (each for each in "abc" if each.encode() in live[0].partition)
        messages = table._write(table.to_arrow(filter=f"p = '{part}'"))
        (kept,) = (message for message in messages if (message.partition, message.bucket) == place)
        delete_new_files(table._ref, (message for message in messages if message is not kept))
        message = replace(
            kept,
            new_files=(),
            compact_before=tuple(each.file for each in live if (each.partition, each.bucket) == place),
            compact_after=kept.new_files,
        )
        request = CommitRequest(commit_user=new_commit_user(), kind=CommitKind.COMPACT, messages=(message,))
        self.note(commit_or_discard(open_committer(table._ref), request), self.latest_rows)

    @precondition(lambda self: self.model.snapshots)
    @rule(which=WHICH, place=PLACES)
    def create_tag(self, which: int, place: int) -> None:
        ids = sorted(self.model.snapshots)
        snapshot_id = ids[place % len(ids)]
        name = f"tag-{next(self.names)}"
        self.handles[which].create_tag(name, snapshot_id=snapshot_id)
        self.model.tags[name] = (snapshot_id, self.model.snapshots[snapshot_id])

    @precondition(lambda self: self.model.tags)
    @rule(which=WHICH, place=PLACES)
    def delete_tag(self, which: int, place: int) -> None:
        name = sorted(self.model.tags)[place % len(self.model.tags)]
        self.handles[which].versions.delete_tag(name)
        del self.model.tags[name]

    @precondition(lambda self: self.model.snapshots)
    @rule(name=st.sampled_from(["x", "y"]), place=PLACES)
    def move_consumer(self, name: str, place: int) -> None:
        ids = [*sorted(self.model.snapshots), self.model.latest_id + 1]
        next_id = ids[place % len(ids)]
        self.ref.file_io.write(self.ref.layout.consumer_path(name), encode_consumer(next_id))
        self.model.consumers[name] = next_id

    @rule(name=st.sampled_from(["x", "y"]))
    def forget_consumer(self, name: str) -> None:
        self.ref.file_io.delete(self.ref.layout.consumer_path(name))
        self.model.consumers.pop(name, None)

    @precondition(lambda self: self.model.snapshots)
    @rule(which=WHICH, place=PLACES)
    def roll_back(self, which: int, place: int) -> None:
        ids = sorted(self.model.snapshots)
        target = ids[place % len(ids)]
        self.handles[which].rollback_to(snapshot_id=target)
        self.settle_rollback(target)

    @precondition(lambda self: self.model.tags)
    @rule(which=WHICH, place=PLACES)
    def roll_back_to_tag(self, which: int, place: int) -> None:
        name = sorted(self.model.tags)[place % len(self.model.tags)]
        target, rows = self.model.tags[name]
        self.handles[which].rollback_to(tag=name)
        self.model.snapshots[target] = rows
        self.settle_rollback(target)

    @precondition(lambda self: self.model.tags)
    @rule(which=WHICH, place=PLACES)
    def restore(self, which: int, place: int) -> None:
        name = sorted(self.model.tags)[place % len(self.model.tags)]
        landed = self.handles[which].versions.rollback_to_as_latest(tag=name)
        if landed is not None:
            self.note(landed, self.model.tags[name][1])
            self.restored |= {path for path in stored_files(self.ref) if "/bucket-" in path}

    def settle_rollback(self, target: int) -> None:
        last = max(self.model.snapshots)
        # Consumers that have read a deleted snapshot continue after the target.
        for name, next_id in self.model.consumers.items():
            if target + 1 < next_id <= last + 1 and last > target:
                self.model.consumers[name] = target + 1
        self.model.snapshots = {each: rows for each, rows in self.model.snapshots.items() if each <= target}
        self.model.tags = {name: pair for name, pair in self.model.tags.items() if pair[0] <= target}
        self.orphans |= stored_files(self.ref) - needed_files(self.ref)

    @rule(
        which=WHICH,
        retain=st.tuples(st.integers(1, 4), st.integers(0, 4)),
        is_old=st.booleans(),
        limit=st.none() | st.integers(1, 3),
        dry_run=st.booleans(),
    )
    def expire(self, which: int, retain: tuple[int, int], *, is_old: bool, limit: int | None, dry_run: bool) -> None:
        before = stored_files(self.ref)
        ids = sorted(self.model.snapshots)
        found = self.handles[which].expire_snapshots(
            retain_min=retain[0],
            retain_max=sum(retain),
            older_than=utc_millis() + 1_000_000 if is_old else 0,
            max_deletes=limit,
            dry_run=dry_run,
        )
        retained = retain[0] if is_old else sum(retain)
        latest = self.model.latest_id
        end = min([latest - retained + 1, latest - retain[0] + 1, *self.model.consumers.values()], default=0)
        if limit is not None and ids:
            end = min(end, ids[0] + limit)
        assert found.snapshot_ids == tuple(each for each in ids if each < end)
        if dry_run:
            assert stored_files(self.ref) == before
            found = self.handles[which].expire_snapshots(
                retain_min=retain[0],
                retain_max=sum(retain),
                older_than=utc_millis() + 1_000_000 if is_old else 0,
                max_deletes=limit,
            )
        gone = before - stored_files(self.ref)
        # What rollbacks had left may be found again, and go with the rest.
        assert found.data_files >= sum("/bucket-" in path for path in gone)
        for each in found.snapshot_ids:
            del self.model.snapshots[each]

    @invariant()
    def what_stays_is_whole_and_nothing_else_is_there(self) -> None:
        if not hasattr(self, "ref"):
            return
        stored, needed = stored_files(self.ref), needed_files(self.ref)
        assert needed <= stored
        self.orphans &= stored
        assert stored - needed == self.orphans - needed
        self.orphans -= needed
        store = penstock.Table(self.ref)._store
        assert store.list_snapshot_ids() == tuple(sorted(self.model.snapshots))
        assert store.latest_snapshot_id() == (self.model.latest_id or None)
        assert store.earliest_snapshot_id() == min(self.model.snapshots, default=None)
        for name, (_, rows) in self.model.tags.items():
            assert self.read(tag=name) == rows
        if self.model.snapshots:
            earliest = min(self.model.snapshots)
            assert self.read(snapshot_id=earliest) == self.model.snapshots[earliest]
            assert self.read() == self.latest_rows


# A step costs some 20 ms, so far fewer examples than of a pure function's law.
ExpirationMachine.TestCase.settings = settings(
    settings.get_profile(settings._current_profile),
    max_examples=max(5, settings().max_examples // 2),
    stateful_step_count=30,
    deadline=None,
)
TestExpirationMachine = ExpirationMachine.TestCase
