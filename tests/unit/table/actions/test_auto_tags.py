"""Tags that commits make by themselves: which snapshot gets which name, and what it costs."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.table.commit_tables import append, committer, new_table, on, rows

from penstock import Table
from penstock.errors import InvalidOptionError
from penstock.format.snapshot import CommitKind, encode_snapshot
from penstock.options import TagCreation, TagOptions
from penstock.table.actions.auto_tags import TagMaker
from penstock.table.actions.changes import open_committer
from penstock.table.commit.delta import CommitRequest
from penstock.table.expire.rollback import apply_rollback, plan_rollback
from penstock.table.partition_scope import WrittenPartitions
from penstock.table.store import MetadataStore
from penstock.table.tags import create_tag, tag_periods
from penstock.testing.file_io import RecordingFileIO

if TYPE_CHECKING:
    from penstock.format.snapshot import Snapshot
    from penstock.table.ref import TableRef

HOUR = 3_600_000
DAY = 24 * HOUR
START = 1_767_225_600_000  # 2026-01-01 00:00 UTC
BY_WATERMARK = {"tag.automatic-creation": "watermark"}
BY_CLOCK = {"tag.automatic-creation": "process-time", "sink.process-time-zone": "UTC"}


class Job:
    """A process that commits to a table, and has tags made; its clock stands still."""

    def __init__(self, ref: TableRef, now: int = START) -> None:
        self.now = now
        self.committer = committer(ref)
        self.committer.clock_millis = lambda: self.now

    def commit(self, watermark: int | None = None, user: str = "user", p: str = "a") -> Snapshot:
        made = self.committer.commit(append(rows(1, p=p), user=user, watermark=watermark))
        assert made is not None
        return made


def tags(ref: TableRef) -> dict[str, int]:
    store = MetadataStore(ref)
    return {name: store.load_tag(name).snapshot.id for name in store.list_tags()}


def test_the_first_snapshot_behind_a_day_gets_its_tag() -> None:
    ref = new_table(BY_WATERMARK)
    job = Job(ref)
    job.commit(None)
    job.commit(START + 5 * HOUR)  # the first tag is of the day before the first watermark
    job.commit(START + DAY - 1)
    assert tags(ref) == {"2025-12-31": 2}
    job.commit(START + DAY)
    job.commit(START + DAY + 1)
    job.commit(START + 4 * DAY)  # of the days between nothing is known
    assert tags(ref) == {"2025-12-31": 2, "2026-01-01": 4, "2026-01-04": 6}


def test_the_clock_of_commits_gives_the_hour_in_the_configured_zone() -> None:
    ref = new_table({**BY_CLOCK, "tag.creation-period": "hourly", "sink.process-time-zone": "Asia/Kolkata"})
    job = Job(ref)
    for minutes in (0, 29, 30, 31, 90):
        job.now = START + minutes * 60_000
        job.commit()
    assert tags(ref) == {"2026-01-01 04": 1, "2026-01-01 05": 3, "2026-01-01 06": 5}


def test_a_watermark_gives_the_day_in_utc_unless_another_zone_is_configured() -> None:
    berlin = {"sink.watermark-time-zone": "Europe/Berlin"}
    for options, name in (({}, "2025-12-30"), (berlin, "2025-12-31")):
        ref = new_table({**BY_WATERMARK, **options})
        Job(ref).commit(START - HOUR)
        assert tags(ref) == {name: 1}


def test_a_delay_waits_for_rows_that_come_late() -> None:
    ref = new_table({**BY_WATERMARK, "tag.creation-delay": "2 h"})
    job = Job(ref)
    for hours in (0, 25, 26, 27):
        job.commit(START + hours * HOUR)
    assert tags(ref) == {"2025-12-31": 1, "2026-01-01": 3}


def test_days_that_were_missed_get_tags_one_a_snapshot_where_that_is_asked_for() -> None:
    ref = new_table({**BY_WATERMARK, "tag.automatic-completion": "true"})
    job = Job(ref)
    for days in (0, 3, 3, 3, 3):
        job.commit(START + days * DAY)
    assert tags(ref) == {"2025-12-31": 1, "2026-01-01": 2, "2026-01-02": 3, "2026-01-03": 4}


def test_the_oldest_of_them_go_and_no_others() -> None:
    ref = new_table({**BY_WATERMARK, "tag.num-retained-max": "2"})
    job = Job(ref)
    job.commit(START)
    create_tag(MetadataStore(ref), "mine")
    for days in range(1, 5):
        job.commit(START + days * DAY)
    assert tags(ref) == {"2026-01-03": 4, "2026-01-04": 5, "mine": 1}


def test_empty_snapshots_of_a_silent_stream_make_tags_too() -> None:
    ref = new_table(BY_WATERMARK)
    job = Job(ref)
    job.commit(START)
    silent = committer(ref)
    silent.commit(
        CommitRequest(
            commit_user="q-idle", commit_identifier=1, kind=CommitKind.APPEND, messages=(), watermark=START + DAY
        )
    )
    assert tags(ref) == {"2025-12-31": 1, "2026-01-01": 2}


def test_the_snapshot_of_another_job_gets_the_tag_when_it_was_the_first() -> None:
    ref = new_table(BY_WATERMARK)
    job, other = Job(ref), Job(ref.with_options({"write-only": "true"}))
    job.commit(START)
    other.commit(START + HOUR)
    other.commit(START + DAY)
    other.commit(START + DAY)
    job.commit(None)
    assert tags(ref) == {"2025-12-31": 1, "2026-01-01": 3}


def test_a_tag_that_is_there_already_stays_as_it_is() -> None:
    ref = new_table(BY_WATERMARK)
    job, other = Job(ref), Job(ref)
    job.commit(START)
    other.commit(START + HOUR)
    job.commit(START + DAY)
    other.commit(START + DAY)  # has not seen that one being made
    assert tags(ref) == {"2025-12-31": 1, "2026-01-01": 3}


def test_no_snapshot_expires_before_it_has_its_tag() -> None:
    quick = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1", "snapshot.time-retained": "0 s"}
    ref = new_table({**BY_WATERMARK, **quick})
    job = Job(ref)
    for days in range(4):
        job.now += 10
        job.commit(START + days * DAY)
    assert tags(ref) == {"2025-12-31": 1, "2026-01-01": 2, "2026-01-02": 3, "2026-01-03": 4}
    assert MetadataStore(ref).list_snapshot_ids() == (4,)


def test_after_a_rollback_the_tags_that_went_are_made_again() -> None:
    ref = new_table(BY_WATERMARK)
    job = Job(ref)
    for days in range(3):
        job.commit(START + days * DAY)
    store = MetadataStore(ref)
    apply_rollback(store, plan_rollback(store, snapshot_id=1))
    assert tags(ref) == {"2025-12-31": 1}
    job.commit(START + HOUR)
    job.commit(START + DAY)
    assert tags(ref) == {"2025-12-31": 1, "2026-01-01": 3}


def test_the_tags_live_as_long_as_the_option_says_and_have_files_that_say_so() -> None:
    ref = new_table({**BY_WATERMARK, "tag.default-time-retained": "7 d", "tag.create-success-file": "true"})
    Job(ref).commit(START)
    table, path = Table(ref), ref.layout.tag_success_path("2025-12-31")
    table.create_tag("by-hand")
    table.create_tag("short", time_retained="1 h")
    store = MetadataStore(ref)
    assert {name: store.load_tag(name).retained_seconds for name in store.list_tags()} == {
        "2025-12-31": Decimal(7 * 86_400),
        "by-hand": Decimal(7 * 86_400),
        "short": Decimal(3_600),
    }
    said = json.loads(ref.file_io.read(path))
    assert set(said) == {"creationTime", "modificationTime"}
    assert said["creationTime"] == said["modificationTime"] > START - 10 * DAY
    table.versions.delete_tag("2025-12-31")
    assert not ref.file_io.exists(path)
    assert ref.file_io.exists(ref.layout.tag_success_path("by-hand"))
    # They lie where nobody takes them for tags, or for left-overs.
    assert store.list_tags() == ("by-hand", "short")
    table.remove_orphan_files(older_than=START, allow_recent=True, dry_run=False)
    assert ref.file_io.exists(ref.layout.tag_success_path("by-hand"))


def test_a_rollback_takes_the_files_of_tags_with_them() -> None:
    ref = new_table({"tag.create-success-file": "true"})
    job = Job(ref)
    job.commit()
    job.commit()
    Table(ref).create_tag("two")
    Table(ref).rollback_to(snapshot_id=1)
    assert not ref.file_io.exists(ref.layout.tag_success_path("two"))


def test_names_of_digits_alone_are_right_for_these() -> None:
    ref = new_table({**BY_WATERMARK, "tag.period-formatter": "without_dashes"})
    Job(ref).commit(START)
    assert tags(ref) == {"20251231": 1}
    assert Table(ref).inspect.tags().column("tag_name").to_pylist() == ["20251231"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({**BY_WATERMARK, "tag.creation-delay": "1 d"}, "'tag.creation-delay' = '1 d': expected less than"),
        (
            {**BY_WATERMARK, "sink.watermark-time-zone": "Mars"},
            "'sink.watermark-time-zone' = 'Mars': expected the name",
        ),
        ({**BY_CLOCK, "sink.process-time-zone": "Mars"}, "'sink.process-time-zone' = 'Mars': expected the name"),
        (
            {"tag.automatic-creation": "batch", "sink.process-time-zone": "Mars"},
            "'sink.process-time-zone' = 'Mars': expected the name",
        ),
    ],
)
def test_options_that_cannot_be_are_refused_before_anything_is_written(options: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidOptionError, match=says):
        open_committer(new_table(options))


def test_a_failed_mark_fails_no_commit_and_is_made_by_a_later_one(caplog: pytest.LogCaptureFixture) -> None:
    ref = new_table(BY_WATERMARK)
    ref.file_io.write(ref.layout.tag_path("2025-12-31"), b"{")
    job = Job(ref)
    with caplog.at_level(logging.WARNING):
        job.commit(START)
    assert "tag-2025-12-31" in caplog.text
    ref.file_io.delete(ref.layout.tag_path("2025-12-31"))
    job.commit(START + HOUR)
    assert tags(ref) == {"2025-12-31": 1}


# What it costs


def test_commits_between_two_tags_ask_the_storage_nothing_for_it() -> None:
    ref = new_table({**BY_WATERMARK, "tag.time-expire-enabled": "false"})
    recording = RecordingFileIO(ref.file_io)
    job = Job(on(ref, recording))
    job.commit(START)
    job.commit(START + 1)
    plain = len(recording.calls)
    job.commit(START + 2)
    first = len(recording.calls) - plain
    quiet = RecordingFileIO(ref.file_io)
    other = Job(on(ref.with_options({"tag.automatic-creation": "none"}), quiet))
    other.commit(START + 3)
    plain = len(quiet.calls)
    other.commit(START + 4)
    assert first == len(quiet.calls) - plain
    assert recording.paths(containing="/tag/tag-2026") == ()


def test_a_job_that_starts_reads_two_of_many_tags_and_none_of_the_snapshots_since() -> None:
    ref = new_table(BY_WATERMARK)
    job = Job(ref)
    for days in range(20):
        job.commit(START + days * DAY)
    for minutes in range(20):
        job.commit(START + 19 * DAY + minutes)
    recording = RecordingFileIO(ref.file_io)
    store = MetadataStore(on(ref, recording))
    latest = store.load_snapshot(40)
    maker = TagMaker(on(ref, recording), store, TagOptions.parse(ref.options))
    assert maker.run(latest) == ()
    assert len(recording.paths(containing="/tag/tag-")) == 2
    assert recording.paths(containing="/snapshot/") == (ref.layout.snapshot_path(40),)


def test_tags_by_hand_that_read_like_later_days_do_not_hide_the_last_one() -> None:
    ref = new_table(BY_WATERMARK)
    job = Job(ref)
    job.commit(START)
    for name in ("2030-01-01", "2031-01-01"):
        create_tag(MetadataStore(ref), name, snapshot_id=1)
    job.commit(START + DAY)
    Job(ref).commit(START + 2 * DAY)
    assert tags(ref) == {"2025-12-31": 1, "2030-01-01": 1, "2031-01-01": 1, "2026-01-01": 2, "2026-01-02": 3}


def test_a_snapshot_without_a_watermark_hides_none_before_it() -> None:
    ref = new_table({**BY_WATERMARK, "write-only": "true"})
    store = MetadataStore(ref)
    maker = TagMaker(ref, store, TagOptions.parse(ref.options))
    for number, watermark in enumerate([START, START + DAY, None, START + DAY + HOUR], start=1):
        snapshot = replace(Job(ref).commit(), watermark=watermark)
        ref.file_io.write(ref.layout.snapshot_path(number), encode_snapshot(snapshot))
        if number != 2:  # another job's
            maker.run(snapshot)
    assert tags(ref) == {"2025-12-31": 1, "2026-01-01": 2}


# Against the rule, looked at snapshot by snapshot


def model(snapshots: list[tuple[int, int | None]], options: TagOptions) -> dict[str, int]:
    """What the reference makes of snapshots by their (time, watermark), told without any shortcut."""
    periods = tag_periods(options, "db.t")
    delay = timedelta(milliseconds=options.creation_delay_ms)
    made: dict[str, int] = {}
    coming: datetime | None = None
    for number, (clock, watermark) in enumerate(snapshots, start=1):
        millis = watermark if options.automatic_creation is TagCreation.WATERMARK else clock
        if millis is None:
            continue
        time = datetime.fromtimestamp(millis / 1000, UTC).replace(tzinfo=None)
        if coming is not None and time - delay < coming + periods.length:
            continue
        period = coming if options.automatic_completion and coming is not None else periods.last_ended(time)
        made.setdefault(periods.name_of(period), number)
        coming = period + periods.length
        if options.num_retained_max is not None:
            made = dict(list(made.items())[-options.num_retained_max :])
    return made


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[int, int | None, bool]]:
    """Snapshots by clock and watermark, and whether one who makes tags has committed it."""
    steps = st.sampled_from([0, 1, 20 * 60_000, HOUR, 5 * HOUR, DAY, 3 * DAY])
    clock, watermark = START, START
    history = []
    for _ in range(draw(st.integers(1, 12))):
        clock += draw(steps)
        watermark += draw(steps)
        history.append((clock, draw(st.sampled_from([watermark, watermark, None])), draw(st.booleans())))
    return [*history, (clock + 1, watermark, True)]


@given(
    history=histories(),
    creation=st.sampled_from(["watermark", "process-time"]),
    period=st.sampled_from(["daily", "hourly", "two-hours"]),
    delay=st.sampled_from(["0 s", "10 min"]),
    more=st.sampled_from([{}, {"tag.automatic-completion": "true"}, {"tag.num-retained-max": "2"}]),
    restarts=st.sets(st.integers(0, 12)),
)
def test_who_commits_and_when_jobs_start_make_no_difference(
    history: list[tuple[int, int | None, bool]],
    creation: str,
    period: str,
    delay: str,
    more: dict[str, str],
    restarts: set[int],
) -> None:
    options = {
        "tag.automatic-creation": creation,
        "tag.creation-period": period,
        "tag.creation-delay": delay,
        "sink.process-time-zone": "UTC",
        "tag.time-expire-enabled": "false",
        **more,
    }
    ref = new_table({**options, "write-only": "true"})
    store = MetadataStore(ref)
    parsed = TagOptions.parse(options)
    maker = TagMaker(ref, store, parsed)
    for number, (clock, watermark, makes_tags) in enumerate(history):
        if number in restarts:
            maker = TagMaker(ref, store, parsed)
        snapshot = replace(Job(ref, clock).commit(), watermark=watermark)
        ref.file_io.write(ref.layout.snapshot_path(snapshot.id), encode_snapshot(snapshot))
        if makes_tags:
            maker.run(snapshot)
    assert tags(ref) == model([(clock, watermark) for clock, watermark, _ in history], parsed)


# Batches


def test_a_batch_leaves_the_tag_of_its_day_at_the_last_of_them() -> None:
    ref = new_table({"tag.automatic-creation": "batch", "sink.process-time-zone": "UTC"})
    job = Job(ref)
    job.commit()
    job.commit()
    job.now += DAY
    job.commit()
    assert tags(ref) == {"batch-write-2026-01-01": 2, "batch-write-2026-01-02": 3}


def test_neither_streams_nor_merges_nor_what_only_removes_rows_are_batches() -> None:
    ref = new_table({"tag.automatic-creation": "batch", "tag.batch.customized-name": "last"})
    job = Job(ref)
    job.committer.commit(append(rows(1), commit_identifier=7))
    assert tags(ref) == {}
    message = rows(1)
    job.committer.commit(append(message))
    assert tags(ref) == {"last": 2}
    merged = rows(2)
    added = replace(message, new_files=(), compact_before=message.new_files, compact_after=merged.new_files)
    job.committer.commit(CommitRequest(commit_user="c", kind=CommitKind.COMPACT, messages=(added,)))
    Table(ref).truncate()
    assert MetadataStore(ref).latest_snapshot_id() == 4
    assert tags(ref) == {"last": 2}
    job.committer.commit(
        CommitRequest(commit_user="c", kind=CommitKind.OVERWRITE, messages=(rows(3),), scope=WrittenPartitions())
    )
    assert tags(ref) == {"last": 5}


def test_beyond_the_maximum_the_tags_of_the_oldest_snapshots_expire_whichever_writer_made_them() -> None:
    ref = new_table({"tag.automatic-creation": "batch", "tag.num-retained-max": "2", "sink.process-time-zone": "UTC"})
    job = Job(ref)
    job.commit()
    create_tag(MetadataStore(ref), "mine")
    for _ in range(2):
        job.now += DAY
        job.commit()
    assert tags(ref) == {"batch-write-2026-01-02": 2, "batch-write-2026-01-03": 3}
