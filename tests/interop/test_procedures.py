"""Procedures have the same effect here and in Java Paimon."""

import json
import shutil
from pathlib import Path

from tests.interop import ours
from tests.interop.engines import JavaPaimon

from penstock.table.read.travel import watermark_of
from penstock.table.store import MetadataStore
from penstock.table.tags import first_since, first_with_watermark


def filled(location: Path) -> MetadataStore:
    ours.create(location, "k INT, dt STRING", options={"write-only": "true"})
    for number, watermark in enumerate([10, 20, 20, 50]):
        ours.append_until(location, [{"k": number, "dt": "a"}], watermark)
    return MetadataStore(ours.load(location)._ref)


def test_times_and_watermarks_mean_the_same_snapshots(java: JavaPaimon, location: Path) -> None:
    store = filled(location)
    times = [store.load_snapshot(each).time_millis for each in store.list_snapshot_ids()]
    for time in {*times, times[0] + 1, times[-1]} & set(range(times[0], times[-1] + 1)):
        assert ours.load(location).rollback_to(timestamp=time, dry_run=True).target.id == java.ask(
            "at", location, time=time
        )
    for time, watermark in zip([0, *times[1:]], [1, 10, 11, 50], strict=True):
        found = [first_since(store, time), first_with_watermark(store, watermark)]
        theirs = java.ask("since", location, time=time, watermark=watermark)
        assert found[0].id == theirs[0]
        assert watermark_of(found[1]) == watermark_of(store.load_snapshot(theirs[1]))


def test_tags_are_moved_and_renamed_to_the_same_files(java: JavaPaimon, location: Path, tmp_path: Path) -> None:
    filled(location)
    theirs = tmp_path / "v" / "d.db" / "t"
    shutil.copytree(location, theirs)
    for each in (location, theirs):
        ours.load(each).create_tag("one", snapshot_id=1)
    ours.load(location).versions.replace_tag("one", snapshot_id=2)
    ours.load(location).versions.rename_tag("one", "two")
    java.ask("replace_tag", theirs, name="one", snapshot=2)
    java.ask("rename_tag", theirs, name="one", to="two")
    assert [each.name for each in (location / "tag").iterdir()] == ["tag-two"]
    mine, other = (json.loads((each / "tag" / "tag-two").read_text()) for each in (location, theirs))
    # Java's tags are of its own kind of snapshot, without our two keys.
    assert {key: mine[key] for key in mine.keys() - {"uuid", "writerVersion"}} == other
    assert java.ask("tags", location) == java.ask("tags", theirs) == {"two": 2}


def test_manifests_are_merged_to_the_same_number(java: JavaPaimon, location: Path, tmp_path: Path) -> None:
    filled(location)
    theirs = tmp_path / "v" / "d.db" / "t"
    shutil.copytree(location, theirs)
    ours.load(location).maintenance.compact_manifests()
    java.ask("compact_manifests", theirs)
    mine, other = (ours.load(each).latest_snapshot() for each in (location, theirs))
    assert mine is not None
    assert other is not None
    assert (mine.id, mine.commit_kind, mine.commit_identifier) == (other.id, other.commit_kind, other.commit_identifier)
    assert (mine.total_record_count, mine.delta_record_count) == (other.total_record_count, other.delta_record_count)
    assert ours.load(location).inspect.manifests().num_rows == ours.load(theirs).inspect.manifests().num_rows == 1
    assert java.read(location) == java.read(theirs)


def test_java_reads_a_queue_with_another_number_of_buckets(java: JavaPaimon, location: Path) -> None:
    options = {"bucket": "2", "bucket-key": "k"}
    table = ours.create(location, "k INT, dt STRING", options=options)
    for number in range(3):
        ours.append_until(table, [{"k": each, "dt": str(number)} for each in range(10)], None)
    before = java.read(location)
    ours.load(location).maintenance.rescale(5)
    assert java.read(location) == before
    assert java.count_rows_elsewhere(location) == 0
    ours.load(location).versions.rollback_to_as_latest(snapshot_id=1)
    assert java.read(location) == java.read(location, snapshot=1)


def test_java_reads_a_table_again_that_had_lost_a_manifest(java: JavaPaimon, location: Path) -> None:
    store = filled(location)
    (lost,) = store.load_delta_manifests(store.load_snapshot(3))
    (location / "manifest" / lost.file_name).unlink()
    ours.load(location).maintenance.remove_missing_manifests(dry_run=False)
    latest = ours.load(location).latest_snapshot()
    assert latest is not None
    # Of the first rows, and of the last ones, but not of the third.
    assert sorted(row["k"] for row in java.read(location)) == [0, 1, 3]
    assert latest.total_record_count == 3
    ours.append_until(location, [{"k": 4, "dt": "a"}], None)
    assert sorted(row["k"] for row in java.read(location)) == [0, 1, 3, 4]
