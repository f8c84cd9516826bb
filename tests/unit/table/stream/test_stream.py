from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.table.stream.queues import Queue, batches, flat, names

from penstock.errors import FormatError, OptionWarning
from penstock.format.layout import TableLayout
from penstock.format.snapshot import CommitKind
from penstock.predicate.parse import parse_filter
from penstock.table.ref import ExternalPaths
from penstock.table.stream.limits import NO_LIMITS, ReadLimits
from penstock.table.stream.offset import UNRESOLVED, Phase, Position, decode_offset, encode_offset

EARLIEST = {"scan.mode": "earliest"}


def delivered(queue: Queue, **options: str) -> list[str]:
    """Files that a stream from the earliest snapshot delivers now."""
    return flat(batches(queue.with_options({**EARLIEST, **options}))[0])


def test_a_stream_delivers_the_first_snapshot_whole_and_then_what_is_added() -> None:
    queue = Queue()
    queue.append("0:a", "1:b")
    queue.append("0:c")
    follower = queue.with_options({})
    found, offset = batches(follower)
    assert found == [[["a", "c"], ["b"]]]
    queue.append("1:d", "0:e")
    found, offset = batches(follower, offset=offset)
    assert found == [[["e"], ["d"]]]
    assert batches(queue.with_options({}), offset=offset) == ([], offset)


def test_a_table_without_snapshots_starts_the_stream_when_it_has_one() -> None:
    queue = Queue()
    follower = queue.with_options({})
    assert follower.advance(UNRESOLVED, NO_LIMITS) == UNRESOLVED
    assert (follower.latest_id(), follower.plan_range(UNRESOLVED, UNRESOLVED)) == (None, ())
    queue.append("0:a")
    assert flat(batches(follower)[0]) == ["a"]
    assert follower.latest_id() == 1


def test_where_a_stream_begins_is_kept_before_there_are_rows() -> None:
    queue = Queue()
    queue.append("0:a")
    latest = {"scan.mode": "latest"}
    offset = queue.with_options(latest).advance(UNRESOLVED, NO_LIMITS)
    assert offset.position == Position(snapshot_id=2)
    queue.append("0:b")
    # A restart from the checkpoint does not begin at what is the latest then.
    restarted = queue.with_options(latest)
    assert flat(batches(restarted, offset=decode_offset(encode_offset(offset)))[0]) == ["b"]
    assert restarted.plan_range(UNRESOLVED, offset) == ()


def test_the_first_micro_batch_is_planned_from_its_end_alone() -> None:
    queue = Queue()
    queue.append("0:a", "0:b", "0:c")
    for options in ({}, EARLIEST):
        end = queue.with_options(options).advance(UNRESOLVED, ReadLimits(max_files=2))
        queue.append("1:later")
        assert names(queue.with_options(options).plan_range(UNRESOLVED, end)) == [["a", "b"]]


def test_compactions_and_empty_snapshots_deliver_nothing() -> None:
    queue = Queue()
    queue.append("0:a")
    queue.compact("0:merged")
    queue.append()
    queue.append("0:b")
    queue.commit(queue.entry_of("0:analyzed"), commit_kind=CommitKind.ANALYZE)
    assert delivered(queue) == ["a", "b"]


def test_overwrites_are_delivered_when_asked_for() -> None:
    queue = Queue()
    queue.append("0:a")
    gone = queue.entry_of("0:a")
    queue.commit(replace(gone, kind=1), queue.entry_of("0:new"), commit_kind=CommitKind.OVERWRITE)
    assert delivered(queue) == ["a"]
    assert delivered(queue, **{"streaming-read-append-overwrite": "true"}) == ["a", "new"]


def test_a_range_keeps_its_overwrites_when_the_option_changes() -> None:
    queue = Queue()
    queue.append("0:a")
    queue.overwrite("0:b", "0:c", "0:d")
    on = {**EARLIEST, "streaming-read-append-overwrite": "true"}
    cut = queue.with_options(on).advance(UNRESOLVED, ReadLimits(max_files=2))
    off = queue.with_options(EARLIEST)
    assert names(off.plan_range(UNRESOLVED, cut)) == [["a", "b"]]
    # What was begun is finished, then the option counts.
    queue.overwrite("0:e")
    found, _ = batches(off, offset=cut)
    assert flat(found) == ["c", "d"]


def test_partitions_come_by_creation_or_by_value() -> None:
    queue = Queue(partition_keys=("dt",))
    queue.append("b/0:b1@5")
    queue.append("a/0:a1@7", "a/1:a2@7", "b/0:b2@9", "b/1:b3@9", "c/0:c1@8")
    assert [task for batch in batches(queue.with_options(EARLIEST))[0] for task in batch] == [
        ["b1", "b2", "a1", "c1"],
        ["b3", "a2"],
    ]
    by_value = {"scan.plan-sort-partition": "true"}
    assert delivered(queue, **by_value) == ["b1", "a1", "b2", "c1", "a2", "b3"]
    for options, expected in (({}, "bac"), (by_value, "abc")):
        full = names(queue.with_options(options).plan_range(UNRESOLVED, batches(queue.with_options(options))[1]))
        assert list(dict.fromkeys(name[0] for name in full[0])) == list(expected)


def test_a_partition_keeps_the_creation_of_its_live_files_for_all_readers() -> None:
    queue = Queue(partition_keys=("dt",))
    queue.append("b/0:old@1", "a/0:first@2")
    old = queue.entry_of("b/0:old@1")
    queue.commit(replace(old, kind=1), queue.entry_of("b/0:merged@50"), commit_kind=CommitKind.COMPACT)
    queue.append("b/0:b2@60", "a/0:a2@61")
    queue.append("b/0:b3@70", "a/0:a3@71")
    together = delivered(queue)
    assert together == ["old", "first", "a2", "b2", "a3", "b3"]
    offset, found = UNRESOLVED, []
    while (reached := queue.with_options(EARLIEST).advance(offset, ReadLimits(max_files=1))) != offset:
        found += flat([names(queue.with_options(EARLIEST).plan_range(offset, reached))])
        offset = reached
    assert found == together


def test_the_order_of_partitions_stays_with_the_query() -> None:
    queue = Queue(partition_keys=("dt",))
    queue.append("b/0:b@1", "a/0:a@2")
    offset = queue.with_options(EARLIEST).advance(UNRESOLVED, ReadLimits(max_files=1))
    changed = queue.with_options({**EARLIEST, "scan.plan-sort-partition": "true"})
    with pytest.warns(OptionWarning, match="keeps the order"):
        found, _ = batches(changed, offset=offset)
    assert flat(found) == ["a"]


def test_files_of_a_bucket_come_in_write_order_and_equal_numbers_in_manifest_order() -> None:
    queue = Queue()
    entries = [
        queue.entry(queue.file(name, min_sequence_number=number), bucket=bucket, total_buckets=2)
        for name, number, bucket in [("c", 20, 0), ("a", 0, 0), ("x", 7, 1), ("b2", 5, 0), ("b1", 5, 0), ("w", 7, 1)]
    ]
    queue.commit(*entries)
    expected = [["a", "b2", "b1", "c"], ["x", "w"]]
    for options in ({}, EARLIEST):
        assert batches(queue.with_options(options))[0] == [expected]
        cut, _ = batches(queue.with_options(options), ReadLimits(max_files=1))
        assert flat(cut) == ["a", "x", "b2", "w", "b1", "c"]


def test_a_task_reads_one_bucket_number_over_partitions_and_snapshots() -> None:
    queue = Queue(partition_keys=("dt",))
    queue.append("a/0:a0", "b/1:b1")
    queue.append("a/0:a0x", "a/0:a0y", "b/0:b0")
    end = queue.with_options(EARLIEST).advance(UNRESOLVED, NO_LIMITS)
    first, second = pickle.loads(pickle.dumps(queue.with_options(EARLIEST).plan_range(UNRESOLVED, end)))
    assert (first.bucket, second.bucket) == (0, 1)
    found = [(split.snapshot_id, split.values, [file.file_name for file in split.files]) for split in first.splits]
    assert found == [
        (1, ("a",), ["a0.parquet"]),
        (2, ("a",), ["a0x.parquet", "a0y.parquet"]),
        (2, ("b",), ["b0.parquet"]),
    ]
    external = ExternalPaths.of(queue.ref)
    assert first.splits[0].path_of(first.splits[0].files[0], external).endswith("/dt=a/bucket-0/a0.parquet")


@pytest.mark.parametrize("options", [{"buckets": -1}, {"buckets": 2, "options": {"bucket-append-ordered": "false"}}])
def test_tables_without_an_order_are_read_in_runs_of_commits(options: dict[str, Any]) -> None:
    queue = Queue(partition_keys=("dt",), **options)
    for number in range(3):
        queue.append(f"a/0:a{number}", f"b/0:b{number}")
    sized = {**EARLIEST, "source.split.target-size": "2 kb", "source.split.open-file-cost": "1 kb"}
    ((*tasks,),) = batches(queue.with_options(sized))[0]
    assert tasks == [["a0", "b0"], ["a1", "b1"], ["a2", "b2"]]
    end = queue.with_options(sized).advance(UNRESOLVED, NO_LIMITS)
    assert {task.bucket for task in queue.with_options(sized).plan_range(UNRESOLVED, end)} == {-1}


def test_a_micro_batch_over_a_rescale_has_one_task_in_the_order_of_the_commits() -> None:
    queue = Queue()
    queue.append("0:a", "1:b")
    queue.buckets = 3
    queue.append("0:c", "2:d")
    whole, end = batches(queue.with_options(EARLIEST))
    assert whole == [[["a", "b", "c", "d"]]]
    queue.append("0:e", "2:f")
    assert batches(queue.with_options(EARLIEST), NO_LIMITS, end)[0] == [[["e"], ["f"]]]


def test_external_paths_reach_the_task() -> None:
    queue = Queue()
    file = queue.file("far", external_path="s3://elsewhere/far.parquet")
    queue.commit(queue.entry(file, bucket=0, total_buckets=2))
    end = queue.with_options(EARLIEST).advance(UNRESOLVED, NO_LIMITS)
    (task,) = queue.with_options(EARLIEST).plan_range(UNRESOLVED, end)
    assert task.splits[0].files[0].external_path == "s3://elsewhere/far.parquet"


def test_filters_prune_tasks_but_move_no_place() -> None:
    queue = Queue(partition_keys=("dt",))
    queue.append("a/0:a1", "b/0:b1", "a/0:a2", "b/1:b2")
    queue.append("a/0:a3")
    queue.append("b/0:b3")
    filtered = queue.follower("dt = 'b'", scan__mode="earliest")
    cut = filtered.advance(UNRESOLVED, ReadLimits(max_files=1))
    assert names(filtered.plan_range(UNRESOLVED, cut)) == [["b1"]]
    # Without the filter the rest of the table's order follows.
    assert flat(batches(queue.with_options(EARLIEST), offset=cut)[0]) == ["a3", "b3", "b2"]
    assert flat(batches(queue.follower("dt = 'b'"), offset=cut)[0]) == ["b3", "b2"]


def test_a_start_by_file_creation_leaves_older_files_out_for_good() -> None:
    queue = Queue()
    created = {"old": 10**12, "young": 10**12 + 2 * 86_400_000}
    for name, millis in created.items():
        queue.append(f"0:{name}@{millis}")
    options = {"scan.file-creation-time-millis": str(10**12 + 86_400_000)}
    found, offset = batches(queue.with_options(options))
    assert flat(found) == ["young"]
    queue.append(f"0:backdated@{10**12}", f"0:new@{10**12 + 2 * 86_400_000}")
    assert flat(batches(queue.with_options(options), offset=offset)[0]) == ["new"]


def test_snapshots_can_be_left_to_age() -> None:
    queue = Queue()
    queue.append("0:a")
    queue.append("0:b")
    follower = queue.follower(clock=3_500, scan__mode="earliest", streaming__read__snapshot__delay="2 s")
    found, offset = batches(follower)
    assert flat(found) == ["a"]
    later = queue.follower(clock=4_000, scan__mode="earliest", streaming__read__snapshot__delay="2 s")
    assert flat(batches(later, offset=offset)[0]) == ["b"]


def test_a_run_can_stop_at_a_snapshot() -> None:
    queue = Queue()
    for name in "abc":
        queue.append(f"0:{name}")
    found, offset = batches(queue.with_options(EARLIEST), until=2)
    assert flat(found) == ["a", "b"]
    assert not offset.ended
    assert flat(batches(queue.with_options(EARLIEST), offset=offset)[0]) == ["c"]


def test_a_range_is_planned_alike_after_whatever_happens_to_the_table() -> None:
    queue = Queue(partition_keys=("dt",))
    queue.append("b/0:b1@1", "a/0:a1@2", "a/1:a2@2")
    queue.append("a/0:a3@3", "b/1:b2@4")
    ranges = []
    for options in ({}, EARLIEST):
        offset, follower = UNRESOLVED, queue.with_options(options)
        while (reached := follower.advance(offset, ReadLimits(max_files=2))) != offset:
            ranges.append((offset, reached, follower.plan_range(offset, reached)))
            offset = reached
    queue.compact("a/0:merged@0")
    queue.append("a/0:a9@9", "b/0:b9@0")
    queue.put_schema(replace(queue.schema, id=1))
    for start, end, tasks in ranges:
        assert queue.with_options({}).plan_range(start, end) == tasks


def test_an_idle_reader_moves_after_fifty_snapshots_without_rows() -> None:
    queue = Queue()
    queue.append("0:a")
    follower = queue.with_options({})
    _, offset = batches(follower)
    for _ in range(49):
        queue.append()
        assert follower.advance(offset, NO_LIMITS) == offset
    queue.append()
    moved = follower.advance(offset, NO_LIMITS)
    assert moved.position == Position(snapshot_id=52)
    assert follower.plan_range(offset, moved) == ()


def test_other_index_files_are_no_obstacle(empty_index_manifest: bytes) -> None:
    queue = Queue()
    queue.file_io.write(TableLayout(queue.location).manifest_path("index-1"), empty_index_manifest)
    queue.append("0:a", index_manifest="index-1")
    assert delivered(queue) == ["a"]


def test_a_damaged_manifest_is_reported_as_damaged() -> None:
    queue = Queue()
    snapshot = queue.append("0:a")
    queue.file_io.write(TableLayout(queue.location).manifest_path(snapshot.delta_manifest_list), b"broken")
    with pytest.raises(FormatError):
        queue.with_options(EARLIEST).advance(UNRESOLVED, NO_LIMITS)


def test_the_full_phase_has_places_of_its_own() -> None:
    queue = Queue()
    queue.append("0:a", "0:b", "0:c")
    follower = queue.with_options({})
    cut = follower.advance(UNRESOLVED, ReadLimits(max_files=1))
    assert cut.position == Position(snapshot_id=1, index=1, phase=Phase.FULL)
    queue.append("0:d")
    queue.compact("0:merged")
    assert flat(batches(queue.with_options({}), offset=cut)[0]) == ["b", "c", "d"]


def test_a_filter_of_a_micro_batch_prunes_what_it_reads_and_not_where_it_ends() -> None:
    queue = Queue(partition_keys=("dt",))
    queue.append("x/0:a", "y/0:b", "x/1:c", "y/1:d")
    follower = queue.with_options(EARLIEST)
    limits = ReadLimits(max_files=3)
    first = follower.advance(UNRESOLVED, limits)
    whole, pruned = (
        flat([names(follower.plan_range(UNRESOLVED, first, each))]) for each in (None, parse_filter("dt = 'y'"))
    )
    second = follower.advance(first, limits)
    rest, rest_pruned = (
        flat([names(follower.plan_range(first, second, each))]) for each in (None, parse_filter("dt = 'y'"))
    )
    assert sorted(whole + rest) == ["a", "b", "c", "d"]
    assert len(whole) == 3
    assert pruned == [name for name in whole if name in "bd"]
    assert rest_pruned == [name for name in rest if name in "bd"]
