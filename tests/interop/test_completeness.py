"""Watermarks at work, here and in Java Paimon: rollback, tags made by themselves, marks of partitions."""

import random
import re
import shutil
from pathlib import Path

import pytest
from tests.interop import ours
from tests.interop.engines import JavaPaimon

from penstock.format.snapshot import CommitKind
from penstock.options import TagOptions
from penstock.table.actions.after_commit import make_batch_tag
from penstock.table.actions.auto_tags import TagMaker
from penstock.table.actions.changes import open_committer
from penstock.table.commit.delta import CommitRequest
from penstock.table.store import MetadataStore

HOUR = 3_600_000
START = 1_767_225_600_000  # 2026-01-01 00:00 UTC
# What a source may have come to, one a snapshot: pauses, days that are left out, none yet.
WATERMARKS = [None, -(2**63), 5, 5, 23, 24, 25, 25, 47, 72, 73, 100, 121, 145, 145, 150, 190, 191, 215, 240]
TAG_OPTIONS = [
    {},
    {"tag.creation-delay": "2 h", "tag.period-formatter": "without_dashes"},
    {"tag.automatic-completion": "true"},
    {"tag.creation-period": "hourly", "tag.period-formatter": "without_dashes_and_spaces"},
    {"tag.creation-period": "two-hours", "tag.num-retained-max": "3"},
    {"tag.creation-period-duration": "90 min", "tag.automatic-completion": "true"},
    {"tag.num-retained-max": "2", "tag.automatic-completion": "true", "tag.creation-delay": "23 h"},
    {"sink.watermark-time-zone": "America/Los_Angeles", "sink.process-time-zone": "Asia/Kolkata"},
    {"sink.watermark-time-zone": "+05:45", "sink.process-time-zone": "GMT-3", "tag.create-success-file": "true"},
]


@pytest.mark.parametrize("until", [10_000, 14_999, 20_000, 35_000, 99_000])
def test_java_rolls_back_to_the_same_snapshot(java: JavaPaimon, location: Path, until: int) -> None:
    ours.create(location, "k INT, dt STRING")
    for number, watermark in enumerate([10_000, 15_000, 20_000, 30_000, 40_000]):
        ours.append_until(location, [{"k": number, "dt": "a"}], watermark)
    expected = java.ask("until", location, watermark=until)
    assert ours.load(location).rollback_to(watermark=until, dry_run=True).target.id == expected


def tags_of(location: Path) -> dict[str, int]:
    store = MetadataStore(ours.load(location)._ref)
    return {name: store.load_tag(name).snapshot.id for name in store.list_tags()}


def milliseconds(hours: int | None) -> int | None:
    return hours if hours is None or hours < 0 else START + hours * HOUR


@pytest.mark.parametrize("options", TAG_OPTIONS, ids=lambda options: " ".join(options.values()) or "daily")
def test_commits_of_java_and_of_ours_leave_the_same_tags(
    java: JavaPaimon, location: Path, tmp_path: Path, options: dict[str, str]
) -> None:
    options = {"tag.automatic-creation": "watermark", **options}
    mine = ours.create(location, "k INT, dt STRING", options=options)
    theirs = ours.create(tmp_path / "v" / "d.db" / "t", "k INT, dt STRING", options=options)
    for number, hours in enumerate(WATERMARKS, start=1):
        row = {"k": number, "dt": "a"}
        ours.append_until(mine, [row], milliseconds(hours))
        java.ask("stream", theirs, rows=[row], id=number, watermark=milliseconds(hours), user="s")
    java.ask("close", theirs, user="s")
    found = tags_of(mine)
    assert found == java.ask("tags", theirs) == java.ask("tags", mine)
    assert len(found) >= 2
    assert sorted(each.name for each in (mine / "tag").rglob("*")) == sorted(
        each.name for each in (theirs / "tag").rglob("*") if not each.name.endswith(".crc")
    )


@pytest.mark.parametrize("creation", ["watermark", "process-time"])
def test_over_the_same_snapshots_java_and_we_make_the_same_tags(
    java: JavaPaimon, location: Path, tmp_path: Path, creation: str
) -> None:
    ours.create(location, "k INT, dt STRING", options={"write-only": "true"})
    draw = random.Random(20_260_101)  # noqa: S311 - the same in every run
    committer = open_committer(ours.load(location)._ref)
    clock = watermark = START
    for _ in range(60):
        clock += draw.choice([1, 60_000, HOUR, 7 * HOUR, 30 * HOUR])
        watermark += draw.choice([0, 1, 60_000, HOUR, 26 * HOUR])
        given = watermark if draw.random() < 0.8 else None
        committer.clock_millis = lambda: clock  # noqa: B023 - asked for at once
        committer.commit(
            CommitRequest(commit_user="u", kind=CommitKind.APPEND, messages=(), watermark=given, commit_empty=True)
        )
    for number, more in enumerate(TAG_OPTIONS):
        theirs = tmp_path / str(number) / "d.db" / "t"
        shutil.copytree(location, theirs)
        options = {"tag.automatic-creation": creation, "sink.process-time-zone": "UTC", **more}
        java.ask("auto_tags", theirs, options=options)
        mine = tmp_path / f"{number}-mine" / "d.db" / "t"
        shutil.copytree(location, mine)
        ref = ours.load(mine).with_options(options)._ref
        store = MetadataStore(ref)
        TagMaker(ref, store, TagOptions.parse(options)).run(store.load_snapshot(60))
        assert tags_of(mine) == tags_of(theirs), options
        assert tags_of(mine)


@pytest.mark.parametrize("options", [{}, {"tag.batch.customized-name": "last"}, {"tag.num-retained-max": "2"}])
def test_a_batch_leaves_the_tag_that_a_batch_of_java_leaves(
    java: JavaPaimon, location: Path, tmp_path: Path, options: dict[str, str]
) -> None:
    given = {"tag.automatic-creation": "batch", "sink.process-time-zone": "UTC", **options}
    ours.create(location, "k INT, dt STRING", options={"write-only": "true"})
    table = ours.load(location)
    for number in range(3):
        ours.append(location, [{"k": number, "dt": "a"}])
        table.create_tag(f"by-hand-{number}")
    theirs = tmp_path / "v" / "d.db" / "t"
    shutil.copytree(location, theirs)
    java.ask("batch_tag", theirs, options=given)
    ref = table.with_options(given)._ref
    make_batch_tag(ref, MetadataStore(ref), TagOptions.parse(given))
    assert tags_of(location) == tags_of(theirs)
    assert len(tags_of(location)) == int(options.get("tag.num-retained-max", "4"))


def test_java_reads_our_marks_and_we_read_its(java: JavaPaimon, location: Path) -> None:
    ours.create(location, "k INT, dt STRING", partition_by=["dt"])
    for day in ("a b=c", "2026-01-01"):
        ours.append(location, [{"k": 1, "dt": day}])
    table = ours.load(location)
    mine = table.maintenance.mark_partitions_done([{"dt": "a b=c"}, {"dt": "2026-01-01"}])
    for each in mine:
        assert java.ask("success", location, partition=each.directory) == [
            each.creation_millis,
            each.modification_millis,
        ]
        java.ask("mark_done", location, partition=each.directory)
        created, modified = java.ask("success", location, partition=each.directory)
        assert created == each.creation_millis
        (known,) = table.maintenance.mark_partitions_done(
            [{"dt": "a b=c" if "%3D" in each.directory else "2026-01-01"}]
        )
        assert known.creation_millis == created
        assert known.modification_millis >= modified
    # What Java writes for the first time looks as ours.
    java.ask("mark_done", location, partition="dt=2026-01-02")
    theirs, own = ((location / f"dt=2026-01-0{day}" / "_SUCCESS").read_text() for day in (2, 1))
    assert re.sub(r"\d+", "n", theirs) == re.sub(r"\d+", "n", own)
    assert java.read(location) == ours.read(location)
