from __future__ import annotations

from tests.unit.table.stream.queues import Queue, batches, flat

from penstock.table.stream.limits import ReadLimits
from penstock.table.stream.offset import UNRESOLVED


def test_a_stream_delivers_the_first_snapshot_whole_and_then_what_is_added() -> None:
    queue = Queue()
    queue.append("0:a", "1:b")
    queue.append("0:c")
    follower = queue.follower()
    found, offset = batches(follower)
    assert found == [[["a", "c"], ["b"]]]
    queue.append("1:d", "0:e")
    queue.compact("0:f")
    found, offset = batches(follower, offset=offset)
    assert found == [[["e"], ["d"]]]
    assert batches(queue.follower(), offset=offset) == ([], offset)


def test_a_table_without_snapshots_starts_the_stream_when_it_has_one() -> None:
    queue = Queue()
    follower = queue.follower()
    assert follower.advance(UNRESOLVED, ReadLimits()) == UNRESOLVED
    queue.append("0:a")
    assert flat(batches(follower)[0]) == ["a"]


def test_limits_cut_inside_of_a_snapshot() -> None:
    queue = Queue()
    queue.append("0:a", "0:b", "0:c", "1:d", "1:e")
    queue.append("0:f")
    for fresh in (False, True):
        follower = queue.follower()
        offset, found = UNRESOLVED, []
        while (reached := follower.advance(offset, ReadLimits(max_files=2))) != offset:
            planner = queue.follower() if fresh else follower
            found.append(
                [
                    name
                    for task in planner.plan_range(offset, reached)
                    for split in task.splits
                    for name in [f.file_name[0] for f in split.files]
                ]
            )
            offset = reached
        assert found == [["a", "d"], ["b", "e"], ["c", "f"]]
