"""Jobs that receive no rows."""

from __future__ import annotations

import time

from tests.unit.table.commit_tables import new_table, on
from tests.unit.table.mark_done.marking import BY_WATERMARK, DAILY, DAY, FIRST, HOUR, START, UTC_START, Job, marks

from penstock import Table
from penstock.table.actions.changes import open_committer
from penstock.table.store import MetadataStore
from penstock.testing.file_io import RecordingFileIO


def test_an_idle_job_marks_by_the_clock_without_earlier_requests() -> None:
    ref = new_table(DAILY)
    recording = RecordingFileIO(ref.file_io)
    job = Job(on(ref, recording))
    job.commit(FIRST)
    job.committer.on_idle()
    before = len(recording.calls)
    job.now = START + 30_000
    job.committer.on_idle()
    assert len(recording.calls) == before
    job.now = START + 90_000
    job.committer.on_idle()
    assert [call.path.rpartition("/")[2] for call in recording.calls[before:]] == ["tag"]  # once a minute
    job.now = START + DAY + HOUR
    job.committer.on_idle()
    assert list(marks(ref)) == [FIRST]
    assert MetadataStore(ref).latest_snapshot_id() == 1


def test_an_idle_starting_job_checks_earlier_partitions() -> None:
    ref = new_table(DAILY)
    Job(ref).commit(FIRST)
    Job(ref, START + DAY + HOUR).committer.on_idle()
    assert list(marks(ref)) == [FIRST]
    Job(new_table(DAILY)).committer.on_idle()  # nothing was committed yet


def test_an_idle_job_does_nothing_that_needs_a_snapshot() -> None:
    tags = {"tag.automatic-creation": "process-time", "sink.process-time-zone": "UTC"}
    ref = new_table({**BY_WATERMARK, **tags})
    job = Job(ref)
    job.commit(FIRST, watermark=UTC_START)
    made = MetadataStore(ref).list_tags()
    job.now = START + 9 * DAY
    job.committer.on_idle()
    assert marks(ref) == {}
    assert MetadataStore(ref).list_tags() == made


def test_an_idle_job_expires_snapshots_and_tags() -> None:
    quick = {"snapshot.num-retained.min": "1", "snapshot.time-retained": "1 h"}
    ref = new_table(quick)
    job = Job(ref)
    for _ in range(3):
        job.commit(FIRST)
    Table(ref).create_tag("short", time_retained="1 ms")
    time.sleep(0.01)
    job.now = START + 2 * HOUR
    job.committer.on_idle()
    store = MetadataStore(ref)
    assert store.list_snapshot_ids() == (3,)
    assert store.list_tags() == ()


def test_an_idle_job_of_a_write_only_table_without_marks_does_nothing() -> None:
    recording = RecordingFileIO(new_table().file_io)
    ref = on(new_table({"write-only": "true"}), recording)
    open_committer(ref).on_idle()
    assert recording.calls == ()
