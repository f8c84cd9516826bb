"""Random histories by several writers, followed in pieces and over restarts, held against a model of the stream."""

from __future__ import annotations

from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.property.stream_world import OPS, World, expected


@given(
    ops=st.lists(OPS, min_size=10, max_size=40),
    quiet=st.sampled_from([10, 0, 20, 30]),
    buckets=st.sampled_from([1, 2, -1]),
    mode=st.sampled_from(["latest-full", "earliest", "latest-full", "latest"]),
    by_value=st.booleans(),
    overwrites=st.booleans(),
)
@settings(deadline=None, max_examples=2 * settings().max_examples)
def test_a_stream_delivers_every_appended_row_once_and_in_order(
    *, ops: list[Any], quiet: int, buckets: int, mode: str, by_value: bool, overwrites: bool
) -> None:
    world = World(
        buckets=buckets,
        options={
            "scan.mode": mode,
            "scan.plan-sort-partition": str(by_value).lower(),
            "streaming-read-append-overwrite": str(overwrites).lower(),
        },
    )
    for step, (name, *arguments) in enumerate(ops):
        if name == "read" and step < quiet:
            continue  # else nearly every stream would begin with the first few snapshots
        getattr(world, name)(*arguments)
    while world.read(2, restarts=False):
        pass
    if world.offset.start is None:
        assert not world.history
        return
    start = (world.offset.start.snapshot_id, world.offset.start.phase)
    rows = expected(world.history, start, by_value=by_value, overwrites=overwrites)
    event(f"{len(world.ranges)} micro-batches, {sum(map(len, rows.values()))} rows")
    if buckets > 0:
        assert world.delivered == rows
    else:
        assert sorted(world.delivered.get(-1, [])) == sorted(rows.get(0, []))
        check_commit_order(world)
    for _, begun, ended, tasks in world.ranges:
        first = (begun.position or ended.start).snapshot_id
        if first > world.expired:
            assert world.fresh().plan_range(begun, ended) == tasks


def check_commit_order(world: World) -> None:
    """Without buckets a later snapshot never comes before an earlier one."""
    ids = [split.snapshot_id for *_, tasks in world.ranges for task in tasks for split in task.splits]
    assert ids == sorted(ids)
