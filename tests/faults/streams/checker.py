"""Whether rows arrived: all of them, once, where they belong, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from penstock.table.read.batches import TableReader
from penstock.table.read.query import plan_query
from penstock.table.read.split import plan_splits

if TYPE_CHECKING:
    from collections.abc import Sequence

    import penstock

IDENTITY: Final = ("p", "b", "producer", "n")
LANE: Final = ("p", "b")
"""One order for all rows of a partition and bucket."""
LANE_OF_PRODUCER: Final = ("p", "b", "producer")
"""Producers wrote at once, so only the rows of each by itself have an order."""
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is wrong with rows that arrived.

    Attributes:
        lost: rows that did not arrive.
        doubled: rows that arrived, less once each.
        unknown: rows that nobody sent.
        misplaced: rows that are in another bucket than their key says.
        disordered: neighbours, in one lane, of which the later one was sent first.
        examples: some of these, in words.
    """

    rows: int
    lost: int
    doubled: int
    unknown: int
    misplaced: int
    disordered: int
    examples: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        """Nothing is wrong."""
        return not (self.lost or self.doubled or self.unknown or self.misplaced or self.disordered)


def check_rows(sent: pa.Table, found: pa.Table, *, lane: Sequence[str] = LANE) -> Verdict:
    """Compare what arrived with what was sent.

    Args:
        sent: with the columns ``IDENTITY``, no row twice; the rows of a lane in the order promised.
        found: the same columns, the rows of a lane in the order found; also ``bucket``, where each was found.
        lane: columns whose values tell the rows that have an order among each other.
    """
    sent_ids, found_ids = _packed(sent, IDENTITY), _packed(found, IDENTITY)
    order = np.argsort(sent_ids, kind="stable")
    assert len(np.unique(sent_ids)) == len(sent_ids), "a row was sent twice: the producer is broken"
    known = np.isin(found_ids, sent_ids)
    lost = ~np.isin(sent_ids, found_ids)
    _, first, counts = np.unique(found_ids, return_index=True, return_counts=True)
    twice = first[counts > 1]
    wrong = np.zeros(len(found_ids), bool)
    if "bucket" in found.column_names:
        wrong = _numbers(found, "bucket") != _numbers(found, "b")
    late = _late(order[np.searchsorted(sent_ids[order], found_ids[known])], _packed(found, lane)[known])
    late = np.flatnonzero(known)[late]
    return Verdict(
        rows=len(found_ids),
        lost=int(lost.sum()),
        doubled=int((counts - 1).sum()),
        unknown=int((~known).sum()),
        misplaced=int(wrong.sum()),
        disordered=len(late),
        examples=(
            *_examples("lost", sent, np.flatnonzero(lost)),
            *_examples("doubled", found, twice),
            *_examples("unknown", found, np.flatnonzero(~known)),
            *_examples("misplaced", found, np.flatnonzero(wrong)),
            *_examples("out of order", found, late),
        ),
    )


def load_placed_rows(table: penstock.Table) -> pa.Table:
    """Read a queue with the bucket of every row, the rows of each partition and bucket in write order."""
    query = plan_query(table._ref, table._store)
    reader = TableReader(query.ref, table._store)
    pieces = [
        pa.Table.from_batches([batch]).append_column("bucket", pa.array([split.bucket] * batch.num_rows, pa.int32()))
        for split in plan_splits(query.ref, query.plan)
        for batch in reader.read_split(split)
    ]
    return pa.concat_tables(pieces) if pieces else reader.schema.append(pa.field("bucket", pa.int32())).empty_table()


def _late(positions: np.ndarray, lanes: np.ndarray) -> np.ndarray:
    """Return the indexes of the rows whose position is before that of the row ahead of them in their lane."""
    by_lane = np.argsort(lanes, kind="stable")
    sorted_lanes, sorted_positions = lanes[by_lane], positions[by_lane]
    is_late = (sorted_lanes[1:] == sorted_lanes[:-1]) & (sorted_positions[1:] < sorted_positions[:-1])
    return by_lane[1:][is_late]


def _packed(rows: pa.Table, columns: Sequence[str]) -> np.ndarray:
    """Return one number for the values of some columns: 2**36 rows a lane, 64 buckets, 64 producers."""
    bits = {"p": 14, "b": 6, "producer": 6, "n": 36}
    packed = np.zeros(rows.num_rows, np.int64)
    for name in columns:
        packed = (packed << bits[name]) | _numbers(rows, name)
    return packed


def _numbers(rows: pa.Table, name: str) -> np.ndarray:
    return rows[name].to_numpy().astype(np.int64)


def _examples(what: str, rows: pa.Table, places: np.ndarray) -> list[str]:
    return [f"{what}: {row}" for row in rows.take(places[:_SHOWN]).select(IDENTITY).to_pylist()]
