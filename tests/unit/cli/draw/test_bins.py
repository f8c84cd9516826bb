from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.table.inspect.history.histories import commit, history

from penstock.cli.draw.bins import to_bins, window_of
from penstock.cli.draw.labels import DAY, HOUR, MINUTE
from penstock.format.snapshot import CommitKind

T0 = 1_790_000_000_000
KINDS = st.sampled_from([CommitKind.APPEND, CommitKind.OVERWRITE, CommitKind.COMPACT])


@given(
    st.lists(st.tuples(st.integers(0, 10 * DAY), st.integers(1, 9), st.integers(0, 9), KINDS), min_size=1, max_size=30),
    st.integers(-HOUR, 100 * DAY),
    st.integers(10, 200),
)
def test_every_commit_is_in_one_bin(times: list[tuple[int, int, int, CommitKind]], waited: int, most: int) -> None:
    # Clocks of committers differ, so times go up and down.
    commits = [
        commit(number, T0 + time, rows=rows, removed=removed, kind=kind)
        for number, (time, rows, removed, kind) in enumerate(times, start=1)
    ]
    seen = history(*commits, seen_millis=commits[-1].snapshot.time_millis + waited)
    window = window_of(seen, most)
    bins = to_bins(seen.commits, window)
    assert len(bins) == window.count <= most + 1
    assert [each.first for each in bins] == list(range(window.first, window.last, window.step_ms))
    assert sum(len(each.commits) for each in bins) == len(commits)
    assert all(each.first <= member.snapshot.time_millis <= each.last for each in bins for member in each.commits)
    by_kind = {kind: [each.change for each in commits if each.snapshot.commit_kind is kind] for kind in CommitKind}
    assert sum(each.appended_rows for each in bins) == sum(change.added.rows for change in by_kind[CommitKind.APPEND])
    assert sum(each.removed_rows for each in bins) == sum(
        change.removed.rows for change in by_kind[CommitKind.OVERWRITE]
    )
    assert sum(each.new_bytes + each.merged_bytes for each in bins) == 100 * len(commits)


def test_a_bin_without_commits_knows_what_the_table_held() -> None:
    first, last = commit(1, T0), commit(2, T0 + 90 * MINUTE)
    bins = to_bins((first, last), window_of(history(first, last), 100))
    ends = [each.end for each in bins]
    held = ends[ends.index(first) : ends.index(last)]
    assert len(held) > 10
    assert set(held) == {first}


def test_the_window_extends_to_now_unless_that_leaves_no_space() -> None:
    commits = (commit(1, T0), commit(2, T0 + HOUR))
    soon = window_of(history(*commits, seen_millis=T0 + HOUR + 29 * MINUTE), 100)
    assert soon.shows_now
    assert soon.last >= T0 + HOUR + 29 * MINUTE
    late = window_of(history(*commits, seen_millis=T0 + 30 * DAY), 100)
    assert not late.shows_now
    assert late.last <= T0 + HOUR + late.step_ms


def test_one_commit_gets_a_minute() -> None:
    window = window_of(history(commit(1, T0), seen_millis=T0 + 10), 100)
    assert window.last - window.first >= MINUTE
    assert window.last <= T0 + 10 + window.step_ms, "what is to come is not drawn"
