"""What a table holds and what a reader got, against what the producers wrote down."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from tests.faults.chaos.scene import ROWS, Row, Scene, batch_rows, bucket_of_key, whole_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

Place = tuple[str, int]
"""Partition and bucket."""


@dataclass
class Contents:
    """The rows of a whole table, in the order in which each bucket has them."""

    sequences: dict[Place, list[tuple[str, int]]]
    batches: dict[str, int]

    @staticmethod
    def encode_rows(batch: pa.RecordBatch) -> str:
        return json.dumps({"rows": _rows_of(batch)})

    @classmethod
    def of(cls, table: pa.Table, buckets: int) -> Self:
        """Every producer's rows have to be those of its first batches, each once; in a queue in their order."""
        sequences: dict[Place, list[tuple[str, int]]] = defaultdict(list)
        found: dict[str, set[Row]] = defaultdict(set)
        last: dict[tuple[Place, str], int] = {}
        for row in _rows_of(table):
            producer, number, k, p = row
            assert row not in found[producer], f"{row} is there twice"
            found[producer].add(row)
            place = (p, bucket_of_key(k, buckets))
            sequences[place].append((producer, number))
            assert buckets <= 0 or number > last.get((place, producer), -1), f"{row} comes too late in {place}"
            last[place, producer] = number
        for producer, rows in found.items():
            assert len(rows) % ROWS == 0
            expected = {row for batch in range(len(rows) // ROWS) for row in batch_rows(producer, batch)}
            assert rows == expected, f"{producer}: missing {expected - rows}, too many {rows - expected}"
        return cls(sequences=sequences, batches={producer: len(rows) // ROWS for producer, rows in found.items()})

    def check(self, acknowledged: Mapping[str, int]) -> None:
        """What was acknowledged before the look is there."""
        for producer, count in acknowledged.items():
            assert self.batches.get(producer, 0) >= count

    def check_extends(self, before: Contents) -> None:
        """Every bucket has the rows that it had, in the same order, before all new ones."""
        for place, sequence in before.sequences.items():
            assert self.sequences[place][: len(sequence)] == sequence


@dataclass
class Delivered:
    """What the reader has got so far, checked as it comes; read from its log, which it keeps over restarts."""

    scene: Scene
    sequences: dict[Place, list[tuple[str, int]]] = field(default_factory=lambda: defaultdict(list))
    batches: Counter[str] = field(default_factory=Counter)
    replays: int = 0
    _offset: int = 0
    _snapshot_id: int = 0
    _rows: list[Row] = field(default_factory=list)
    _replayed: list[Row] = field(default_factory=list)
    _is_restarted: bool = False

    def check(self, producers: Iterable[str]) -> None:
        """Take in what is new; nothing may come that no producer has begun.

        The last snapshot is looked at when the next has begun.
        """
        path = self.scene.root / "delivered"
        data = path.read_bytes()[self._offset :] if path.exists() else b""
        lines = whole_lines(data)
        for line in lines:
            self._take(json.loads(line))
        self._offset += sum(len(line.encode()) + 1 for line in lines)
        for producer in producers:
            assert self.batches[producer] <= self.scene.acknowledged(producer) + 1

    def finish(self, producers: Iterable[str]) -> None:
        """Take in all; everything has to be there now."""
        self.check(producers)
        self._finish_snapshot()
        for producer in producers:
            assert self.batches[producer] == self.scene.acknowledged(producer)

    def _take(self, line: dict[str, object]) -> None:
        if "restart" in line:
            self._is_restarted = True
        elif "begin" in line:
            assert line["phase"] == "changes"
            self._begin(int(str(line["begin"])))
        else:
            assert isinstance(line["rows"], list)
            self._rows += [tuple(row) for row in line["rows"]]

    def _begin(self, snapshot_id: int) -> None:
        if snapshot_id == self._snapshot_id:
            # Killed on the way through it, or before the consumer moved: it comes again as it came.
            assert self._is_restarted
            self.replays += 1
            self._replayed = max(self._rows, self._replayed, key=len)
            self._rows = []
        else:
            assert snapshot_id > self._snapshot_id
            self._finish_snapshot()
            self._snapshot_id = snapshot_id
        self._is_restarted = False

    def _finish_snapshot(self) -> None:
        """A snapshot is one batch of one producer, the one after its last."""
        rows, self._rows = self._rows, []
        replayed, self._replayed = self._replayed, []
        if not rows:
            assert self._snapshot_id == 0
            return
        assert rows[: len(replayed)] == replayed
        producer = rows[0][0]
        assert sorted(rows) == sorted(batch_rows(producer, self.batches[producer])), f"snapshot {self._snapshot_id}"
        self.batches[producer] += 1
        news: dict[Place, list[tuple[str, int]]] = defaultdict(list)
        for _, number, k, p in rows:
            news[p, bucket_of_key(k, self.scene.buckets)].append((producer, number))
        for place, sequence in news.items():
            assert not self.scene.is_queue or sequence == sorted(sequence)
            self.sequences[place] += sequence


def _rows_of(rows: pa.Table | pa.RecordBatch) -> list[Row]:
    return list(zip(*(rows.column(name).to_pylist() for name in ("producer", "number", "k", "p")), strict=True))
