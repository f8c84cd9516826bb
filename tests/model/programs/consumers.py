"""Readers that keep their position in the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.model.calls import Call, Note, read, write
from tests.model.guards import Guard
from tests.model.programs.commit import load_latest
from tests.model.values import CONSUMER, Delivered, Failed, snapshot_path

if TYPE_CHECKING:
    from tests.model.calls import Program
    from tests.model.guards import Guards


def consume(guards: Guards, snapshots: int) -> Program:
    """``Table.follow`` with a consumer id: deliver some snapshots, and note the position after each."""
    position = yield read(CONSUMER)
    for _ in range(snapshots):
        if Guard.POSITION_AFTER_ROWS not in guards:
            yield write(CONSUMER, position + 1)
        snapshot = yield read(snapshot_path(position))
        if snapshot is None:
            latest = yield Call(load_latest, (guards,))
            if latest is not None and latest.id >= position:
                yield Note(Failed("the position has expired"))
            return
        metadata = yield read(snapshot.metadata)
        if metadata is None:
            yield Note(Failed("the position has expired"))
            return
        added = [entry for entry in metadata.live if entry not in metadata.base]
        for entry in added:
            if (yield read(entry.path)) is None:
                yield Note(Failed("the position has expired"))
                return
        yield Note(Delivered(position, tuple(row for entry in added for row in entry.rows)))
        position += 1
        if Guard.POSITION_AFTER_ROWS in guards:
            yield write(CONSUMER, position)
