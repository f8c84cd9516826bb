"""Compaction beside a stream: on its own thread, one of several, and never in the way."""

from __future__ import annotations

import itertools
import logging
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock.api.catalog import Catalog
from penstock.catalog.changes import SetOption
from penstock.errors import StorageError
from penstock.format.snapshot import CommitKind
from penstock.table.actions.changes import open_committer
from penstock.table.compact.background import BackgroundCompactor, CompactionWatch
from penstock.table.compact.commit import commit_compacted
from penstock.table.compact.job import merge_one
from penstock.table.compact.rewrite import rewrite
from penstock.table.compact.task import MergedFiles
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from penstock.api.table import Table
    from penstock.table.compact.task import CompactTask
    from penstock.table.ref import TableRef

_NUMBERS = itertools.count()
PATIENCE_SECONDS = 30


class Setup:
    """A table, and compactions that are stopped at the end."""

    def __init__(self, **options: str) -> None:
        self.catalog = Catalog(f"memory://beside-{next(_NUMBERS)}")
        self.catalog.create_database("db")
        self.table = self.catalog.create_table("db.t", "id BIGINT", options=options)
        # Its appends merge nothing, so that there is something for the compaction beside them.
        self.writer = self.table.with_options({"write-only": "true"})
        self.started: list[BackgroundCompactor] = []

    @property
    def ref(self) -> TableRef:
        return self.table._ref

    def start(
        self, merge: Callable[[CompactTask, TableRef], MergedFiles] = merge_one, user: str = "query"
    ) -> BackgroundCompactor:
        beside = BackgroundCompactor(self.ref, merge, commit_user=user, max_tasks=1, idle_seconds=0.05)
        self.started.append(beside)
        beside.start()
        return beside

    def append(self, *ids: int) -> None:
        for number in ids:
            self.writer.append(pa.table({"id": pa.array([number], pa.int64())}))


@pytest.fixture
def queue() -> Iterator[Setup]:
    setup = Setup(bucket="1", **{"bucket-key": "id"})
    yield setup
    for beside in setup.started:
        if beside._thread.is_alive():
            beside.stop()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def kinds(table: Table) -> list[CommitKind]:
    ref = table._ref
    store = MetadataStore(ref)
    latest = store.load_latest_snapshot()
    return [store.load_snapshot(n).commit_kind for n in range(1, (latest.id if latest else 0) + 1)]


def test_small_files_are_merged_while_rows_arrive(queue: Setup) -> None:
    beside = queue.start()
    for number in range(60):
        queue.append(number)
        beside.wake()
    until(lambda: queue.table.files().num_rows <= 10 and beside.state.running_tasks == 0)
    beside.stop()
    assert queue.table.to_arrow()["id"].to_pylist() == list(range(60))
    assert kinds(queue.table).count(CommitKind.APPEND) == 60
    assert kinds(queue.table).count(CommitKind.COMPACT) == len(kinds(queue.table)) - 60
    assert beside.state.committed_merges > 0
    assert not queue.table.inspect.fsck(all_snapshots=True).findings


def test_what_was_there_before_is_merged_too(queue: Setup) -> None:
    queue.append(*range(7))
    beside = queue.start()
    until(lambda: beside.state.committed_merges == 1)
    assert queue.table.files().num_rows == 1


def test_merges_of_one_look_land_as_one_snapshot() -> None:
    setup = Setup(bucket="4", **{"bucket-key": "id"})
    for _ in range(5):
        setup.writer.append(pa.table({"id": pa.array(range(64), pa.int64())}))
    beside = setup.start()
    until(lambda: beside.state.committed_merges == 4)
    beside.stop()
    assert kinds(setup.table) == [CommitKind.APPEND] * 5 + [CommitKind.COMPACT]
    assert setup.table.files().num_rows == 4


def test_one_of_two_works_and_the_other_takes_over(queue: Setup) -> None:
    first = queue.start(user="first")
    until(lambda: first.state.is_active)
    second = queue.start(user="second")
    queue.append(*range(5))
    until(lambda: first.state.committed_merges == 1)
    assert not second.state.is_active
    first.stop()
    until(lambda: second.state.is_active)
    queue.append(*range(10))
    until(lambda: second.state.committed_merges >= 1)


def test_a_merge_that_lost_the_race_is_dropped_and_planned_again(queue: Setup) -> None:
    may_go = threading.Event()

    def late(task: CompactTask, ref: TableRef) -> MergedFiles:
        merged = merge_one(task, ref)
        may_go.wait(PATIENCE_SECONDS)
        return merged

    queue.append(*range(5))
    beside = queue.start(late)
    until(lambda: beside.state.running_tasks == 1)
    queue.table.truncate()
    queue.append(*range(10, 15))
    may_go.set()
    until(lambda: beside.state.lost == 1 and beside.state.committed_merges == 1)
    assert queue.table.to_arrow()["id"].to_pylist() == list(range(10, 15))
    assert beside.state.last_error is None


def test_a_merge_whose_input_has_expired_is_an_ordinary_loss(queue: Setup, caplog: pytest.LogCaptureFixture) -> None:
    may_go = threading.Event()

    def late(task: CompactTask, ref: TableRef) -> MergedFiles:
        may_go.wait(PATIENCE_SECONDS)
        return merge_one(task, ref)

    queue.append(*range(5))
    beside = queue.start(late)
    until(lambda: beside.state.running_tasks == 1)
    queue.table.compact()
    queue.append(*range(5, 10))
    queue.table.expire_snapshots(retain_min=1, older_than=time.time_ns() // 1_000_000 + 1)
    may_go.set()
    until(lambda: beside.state.lost == 1 and beside.state.committed_merges == 1)
    assert queue.table.to_arrow()["id"].to_pylist() == list(range(10))
    assert "will be retried" not in caplog.text


def test_a_merge_whose_live_input_is_missing_is_reported(queue: Setup, caplog: pytest.LogCaptureFixture) -> None:
    queue.append(*range(5))
    path = queue.table.files()["file_path"].to_pylist()[2]
    queue.ref.file_io.delete(path)
    beside = queue.start()
    until(lambda: "is missing" in caplog.text)
    assert beside.state.last_error is not None
    assert beside.state.lost == 0


def test_an_error_is_reported_and_retried_later(queue: Setup, caplog: pytest.LogCaptureFixture) -> None:
    failures = [StorageError("disk full")]

    def failing(task: CompactTask, ref: TableRef) -> MergedFiles:
        if failures:
            return MergedFiles(task=task, message=None, error=failures.pop(), seconds=0.0)
        return merge_one(task, ref)

    queue.append(*range(5))
    with caplog.at_level(logging.INFO):
        beside = queue.start(failing)
        until(lambda: beside.state.committed_merges == 1)
    told = [record for record in caplog.records if "will be retried: disk full" in record.message]
    assert [record.levelno for record in told] == [logging.INFO]
    assert beside.state.last_error is None


def test_an_error_that_stays_is_a_warning(queue: Setup, caplog: pytest.LogCaptureFixture) -> None:
    queue.append(*range(5))
    beside = queue.start(
        lambda task, _: MergedFiles(task=task, message=None, error=StorageError("disk full"), seconds=0.0)
    )
    until(lambda: "will be retried: disk full" in caplog.text)
    assert beside.state.last_error == "disk full"


def test_a_file_that_cannot_be_read_keeps_no_other_from_being_merged() -> None:
    setup = Setup(bucket="4", **{"bucket-key": "id"})
    for _ in range(6):
        setup.writer.append(pa.table({"id": pa.array(range(64), pa.int64())}))
    bad = setup.table.files()["file_path"].to_pylist()[0]
    setup.ref.file_io.write(bad, b"rubbish")
    begun: list[CompactTask] = []

    def noting(task: CompactTask, ref: TableRef) -> MergedFiles:
        begun.append(task)
        return merge_one(task, ref)

    beside = setup.start(noting)
    until(lambda: beside.state.last_error is not None and beside.state.committed_merges == 3)
    landed = beside.state.committed_merges
    for _ in range(6):
        setup.writer.append(pa.table({"id": pa.array(range(64), pa.int64())}))
    beside.wake()
    until(lambda: beside.state.committed_merges > landed)
    beside.stop()
    # It was tried again a few times, each after a longer pause.
    assert 1 <= sum(any(file.file_name in bad for file in task.files) for task in begun) <= 6
    assert bad in setup.table.files()["file_path"].to_pylist()


def test_a_stream_that_ends_leaves_no_merge_undone(queue: Setup) -> None:
    queue.append(*range(25))
    beside = queue.start()
    beside.finish()
    assert queue.table.files().num_rows == 1
    # What the merges left is small, too.
    assert (beside.state.is_active, beside.state.waiting_files, beside.state.running_tasks) == (False, 1, 0)
    again = BackgroundCompactor(queue.ref, merge_one, commit_user="next", max_tasks=1)
    again.start()
    until(lambda: again.state.is_active)
    again.stop()


def test_who_has_no_lease_has_nothing_to_finish(queue: Setup) -> None:
    first = queue.start(user="first")
    until(lambda: first.state.is_active)
    second = queue.start(user="second")
    second.finish()
    assert first.state.is_active


def test_pending_files_are_reported_by_partition() -> None:
    catalog = Catalog(f"memory://beside-{next(_NUMBERS)}")
    catalog.create_database("db")
    table = catalog.create_table("db.t", "id BIGINT, dt STRING", partition_by=["dt"])
    for day, count in (("a", 2), ("b", 3)):
        for number in range(count):
            table.append(pa.table({"id": pa.array([number], pa.int64()), "dt": [day]}))
    beside = BackgroundCompactor(table._ref, merge_one, commit_user="u", max_tasks=1)
    beside.start()
    until(lambda: beside.state.waiting_files == 5)
    beside.stop()
    assert [(each.partition, each.files) for each in beside.state.waiting] == [("dt=b", 3), ("dt=a", 2)]
    assert sum(each.bytes for each in beside.state.waiting) == beside.state.waiting_bytes > 0


def test_stopping_leaves_no_file_of_an_unfinished_merge(queue: Setup) -> None:
    started, may_go = threading.Event(), threading.Event()

    def slow(task: CompactTask, ref: TableRef) -> MergedFiles:
        started.set()
        may_go.wait(PATIENCE_SECONDS)
        return merge_one(task, ref)

    queue.append(*range(5))
    beside = queue.start(slow)
    assert started.wait(PATIENCE_SECONDS)
    threading.Timer(0.2, may_go.set).start()
    beside.stop()
    files = [status.name for status in queue.ref.file_io.list(f"{queue.ref.location}/bucket-0")]
    assert len(files) == 5
    assert kinds(queue.table) == [CommitKind.APPEND] * 5


def test_a_table_that_becomes_write_only_is_left_alone(queue: Setup) -> None:
    beside = queue.start()
    until(lambda: beside.state.is_active)
    queue.catalog.alter_table("db.t", SetOption(key="write-only", value="true"))
    queue.append(*range(5))
    beside.wake()
    time.sleep(0.3)
    assert beside.state.committed_merges == 0
    queue.catalog.alter_table("db.t", SetOption(key="write-only", value="false"))
    until(lambda: beside.state.committed_merges == 1)


def test_a_round_hands_out_no_more_files_than_the_limit_and_the_next_one_goes_on() -> None:
    setup = Setup(bucket="4", **{"bucket-key": "id", "compaction.file-num-limit": "12"})
    for _ in range(5):
        setup.writer.append(pa.table({"id": pa.array(range(64), pa.int64())}))
    watch = CompactionWatch(setup.ref, MetadataStore(setup.ref))
    first = watch.plan()
    assert [len(task.files) for task in first] == [5, 5]
    assert sum(map(len, watch.waiting().values())) == 10
    second = watch.plan()
    assert [len(task.files) for task in second] == [5, 5]
    assert {task.bucket for task in (*first, *second)} == {0, 1, 2, 3}
    assert watch.plan() == ()


def test_a_full_merge_that_came_to_nothing_is_done_when_it_is_the_next_turn() -> None:
    options = {"bucket": "2", "bucket-key": "id", "compaction.min.file-num": "50", "compaction.file-num-limit": "4"}
    setup = Setup(**options, **{"full-compaction.delta-commits": "4"})
    watch = CompactionWatch(setup.ref, MetadataStore(setup.ref))
    setup.append(0)
    assert watch.plan() == ()
    for _ in range(4):
        setup.writer.append(pa.table({"id": pa.array(range(64), pa.int64())}))
    (failed,) = watch.plan()  # the other bucket is beyond the limit
    watch.finish(failed, is_done=False)
    assert watch.plan() == ()
    setup.append(0, 0, 0, 0)  # all in one bucket
    first = watch.plan()
    assert len(first) == 1
    setup.append(0, 0, 0, 0)
    assert {task.bucket for task in (*first, *watch.plan())} == {0, 1}


@pytest.mark.parametrize("options", [{}, {"bucket": "4", "bucket-key": "id"}], ids=["scalable", "queue"])
def test_what_is_being_merged_is_not_planned_again_when_options_change(options: dict[str, str]) -> None:
    setup = Setup(**options)
    for _ in range(6):
        setup.writer.append(pa.table({"id": pa.array(range(64), pa.int64())}))
    watch = CompactionWatch(setup.ref, MetadataStore(setup.ref))
    (first, *others) = watch.plan()
    changed = setup.catalog.alter_table("db.t", SetOption(key="snapshot.num-retained.min", value="11"))
    watch.use(changed._ref)
    assert watch.plan() == ()
    watch.finish(first, is_done=False)
    assert watch.plan() == (first,)
    done = [rewrite(task, setup.ref) for task in (first, *others)]
    assert not commit_compacted(open_committer(setup.ref), done, commit_user="u").lost
    for task in (first, *others):
        watch.finish(task, is_done=True)
    assert watch.plan() == ()


def test_changed_options_hold_from_the_next_round_on(queue: Setup) -> None:
    queue.append(*range(4))
    beside = queue.start()
    until(lambda: beside.state.waiting_files == 4)
    queue.catalog.alter_table("db.t", SetOption(key="compaction.min.file-num", value="3"))
    until(lambda: beside.state.committed_merges == 1)
    assert queue.table.to_arrow()["id"].to_pylist() == list(range(4))


@pytest.mark.parametrize("options", [{}, {"bucket": "1", "bucket-key": "id"}])
def test_merges_make_files_of_the_size_that_is_wanted_by_then(options: dict[str, str]) -> None:
    setup = Setup(**{"target-file-size": "2 kb", "source.split.open-file-cost": "1 kb"}, **options)
    for first in range(0, 12_000, 1_000):
        setup.writer.append(pa.table({"id": pa.array(range(first, first + 1_000), pa.int64())}))
    setup.catalog.alter_table("db.t", SetOption(key="target-file-size", value="1 mb"))
    beside = setup.start()
    beside.finish()
    assert beside.state.committed_merges == 1
    assert setup.table.files().num_rows == 1


# The first merge ends while Python, whose main thread is alive still, waits for the second one.
EXITS_DURING_A_MERGE = """
import atexit, itertools, sys, threading, time
from penstock import Catalog
from penstock.table.compact.background import BackgroundCompactor
from penstock.table.compact.job import merge_one

def merge(task, ref):
    number = next(numbers)
    if number == 2:
        started.set()
    time.sleep(number / 4)
    return merge_one(task, ref)

numbers, started = itertools.count(1), threading.Event()
catalog = Catalog(sys.argv[1])
catalog.create_database("db")
table = catalog.create_table("db.t", "id INT, p INT", partition_by=["p"], options={"compaction.min.file-num": "2"})
for number in range(8):
    table.with_options({"write-only": "true"}).append([{"id": number, "p": number % 4}])
beside = BackgroundCompactor(table._ref, merge, commit_user="query", max_tasks=2)
atexit.register(beside.stop)
beside.start()
started.wait()
"""


def test_a_program_that_exits_during_a_merge_prints_no_traceback(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", EXITS_DURING_A_MERGE, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    table = Catalog(tmp_path).load_table("db.t")
    assert sorted(table.to_arrow().column("id").to_pylist()) == list(range(8))
