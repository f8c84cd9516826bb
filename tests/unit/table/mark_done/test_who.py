"""Who marks partitions, and what is refused."""

from __future__ import annotations

import logging
import time

import pyarrow as pa
import pytest
from tests.unit.table.commit_tables import new_table, on
from tests.unit.table.mark_done.marking import DAILY, DAY, FIRST, HOUR, SECOND, START, Job, local, marks

from penstock import Table
from penstock.errors import InvalidOptionError, StorageError, UnsupportedFeatureError
from penstock.table.actions.changes import open_committer
from penstock.testing.file_io import RecordingFileIO


def test_a_table_for_writing_only_is_marked_by_its_writers_and_not_by_who_merges() -> None:
    ref = new_table({**DAILY, "write-only": "true"})
    job = Job(ref)
    job.commit(FIRST)
    job.commit(FIRST)
    merger = Job(ref.with_options({"write-only": "false"}), START + DAY + HOUR)
    merger.merge(FIRST)
    assert marks(ref) == {}
    job.commit(SECOND, at=START + DAY + HOUR)
    assert list(marks(ref)) == [FIRST]


def test_a_thread_of_its_own_does_it_when_that_is_wanted() -> None:
    ref = new_table({**DAILY, "snapshot.expire.execution-mode": "async"})
    Job(ref.with_options({"partition.mark-done.recover-from-state": "false"}), local("2001-01-02")).commit("2001-01-01")
    job = Job(ref)
    job.commit("2999-01-01")
    job.committer.after_commit.__self__.wait()  # type: ignore[attr-defined] # a bound method
    # Its clock is that of the process, which is far behind the first of them.
    assert list(marks(ref, "2001-01-01", "2999-01-01")) == ["2001-01-01"]


@pytest.mark.parametrize(
    ("action", "says"),
    [
        ("done-partition", "'done-partition' needs a metastore, which no table has here: take 'success-file'"),
        ("success-file,mark-event", "'mark-event' needs a metastore"),
        ("http-report", "'http-report' sends requests"),
        ("CUSTOM", "'custom' names a Java class"),
    ],
)
def test_other_marks_are_refused_before_anything_is_written(action: str, says: str) -> None:
    ref = new_table({**DAILY, "partition.mark-done-action": action})
    with pytest.raises(UnsupportedFeatureError, match=f"option 'partition.mark-done-action' = {says}"):
        open_committer(ref)
    with pytest.raises(UnsupportedFeatureError, match=says):
        Table(ref).maintenance.mark_partitions_done([{"p": FIRST}])
    open_committer(ref.with_options({"partition.mark-done-action": "success-file"}))
    open_committer(new_table({"partition.mark-done-action": action}))  # nothing is to be marked


def test_who_adds_no_rows_need_not_know_how_to_mark() -> None:
    ref = new_table({**DAILY, "partition.mark-done-action": "done-partition", "partition.expiration-time": "1 d"})
    writer = Table(ref.with_options({"partition.mark-done-action": "success-file"}))
    for number in range(6):
        writer.append(pa.Table.from_pylist([{"id": number, "p": "2001-01-01"}], writer.arrow_schema))
    assert len(Table(ref).compact().snapshots) == 1
    assert [each.directory for each in Table(ref).maintenance.expire_partitions()] == ["p=2001-01-01"]


def test_marks_that_nobody_knows_are_refused() -> None:
    with pytest.raises(
        InvalidOptionError, match=r"expected one of success-file, done-partition, .*, or several of them"
    ):
        open_committer(new_table({**DAILY, "partition.mark-done-action": "success-file,shout"}))


def test_a_pattern_that_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match=r"'partition.timestamp-pattern' = '.day' names no partition column"):
        open_committer(new_table({**DAILY, "partition.timestamp-pattern": "$day"}))


def test_an_idle_time_without_an_interval_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    ref = new_table({"partition.idle-time-to-done": "1 h"})
    Job(ref).commit(FIRST)
    Job(ref, START + 9 * DAY).commit(SECOND)
    assert marks(ref) == {}
    assert "marks no partition done without 'partition.time-interval'" in caplog.text


class ReadOnlyMarks(RecordingFileIO):
    """Takes no marks until it is told to."""

    is_down = True

    def write(self, path: str, data: bytes) -> None:
        if self.is_down and path.endswith("_SUCCESS"):
            raise StorageError(f"{path}: no")
        super().write(path, data)


def test_what_goes_wrong_fails_no_commit_and_is_done_by_a_later_one(caplog: pytest.LogCaptureFixture) -> None:
    ref = new_table(DAILY)
    storage = ReadOnlyMarks(ref.file_io)
    job = Job(on(ref, storage))
    job.commit(FIRST)
    with caplog.at_level(logging.WARNING):
        job.commit(SECOND, at=START + DAY + HOUR)
    assert marks(ref) == {}
    storage.is_down = False
    assert "after snapshot 2" in caplog.text
    at = START + DAY + 2 * HOUR
    job.commit(SECOND, at=at)
    assert marks(ref) == {FIRST: (at, at)}


def test_neither_orphan_removal_nor_fsck_nor_expiration_minds_the_marks() -> None:
    ref = new_table({**DAILY, "snapshot.clean-empty-directories": "true"})
    job = Job(ref)
    job.commit(FIRST, SECOND)
    job.commit(at=START + 9 * DAY)
    table = Table(ref)
    table.drop_partitions({"p": FIRST})
    far = 4_000_000_000_000
    table.expire_snapshots(retain_min=1, older_than=far)
    found = table.remove_orphan_files(older_than=int(time.time() * 1000), allow_recent=True, dry_run=False)
    assert [each.path for each in found.orphans if "_SUCCESS" in each.path or ".penstock" in each.path] == []
    assert set(marks(ref)) == {FIRST, SECOND}
    assert ref.file_io.exists(ref.layout.done_ledger_path)
