from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.table.inspect.history.histories import commit

from penstock.table.inspect.history.watermarks import find_stalled_watermarks

WATERMARKS = st.one_of(st.none(), st.integers(0, 3))


def test_rows_that_do_not_move_it_make_a_standstill() -> None:
    found = find_stalled_watermarks([commit(1, 0, 10), commit(2, 100, 20), commit(3, 200, 20), commit(4, 350, 30)])
    assert [(each.watermark, each.from_millis, each.to_millis, each.commits, each.is_open) for each in found] == [
        (20, 100, 200, 1, False)
    ]
    assert found[0].duration_ms == 100


def test_the_last_one_is_open_until_something_moves_it() -> None:
    found = find_stalled_watermarks([commit(1, 0, 10), commit(2, 100, 10), commit(3, 300, 10)])
    assert [(each.from_millis, each.to_millis, each.commits, each.is_open) for each in found] == [(0, 300, 2, True)]


def test_time_in_which_nothing_comes_does_not_count() -> None:
    later = 10**9
    found = find_stalled_watermarks(
        [commit(1, 0, 10), commit(2, 100, 10), commit(3, later, 10, rows=0), commit(4, later, 20)]
    )
    assert [(each.from_millis, each.to_millis) for each in found] == [(0, 100)]


def test_merges_do_not_count() -> None:
    merges = [commit(number, number * 100, 10, rows=0) for number in range(2, 5)]
    assert find_stalled_watermarks([commit(1, 0, 10), *merges]) == ()
    assert find_stalled_watermarks([commit(1, 0, 10), *merges, commit(6, 700, 10)])[0].commits == 1


def test_without_a_watermark_nothing_stands_still() -> None:
    assert find_stalled_watermarks([commit(1, 0, None), commit(2, 100, None), commit(3, 200, 5)]) == ()
    assert find_stalled_watermarks([]) == ()


@given(st.lists(st.tuples(WATERMARKS, st.booleans()), max_size=12))
def test_every_commit_with_rows_and_the_watermark_of_the_one_before_it_is_counted_once(
    history: list[tuple[int | None, bool]],
) -> None:
    commits = [
        commit(number, number * 10, watermark, rows=int(has_rows))
        for number, (watermark, has_rows) in enumerate(history, start=1)
    ]
    stuck = sum(
        after[1] and after[0] is not None and after[0] == before[0] for before, after in itertools.pairwise(history)
    )
    found = find_stalled_watermarks(commits)
    assert sum(each.commits for each in found) == stuck
    assert not any(each.is_open for each in found[:-1])
    assert all(before.to_millis <= after.from_millis for before, after in itertools.pairwise(found))
