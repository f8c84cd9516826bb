"""The tables of a soak, its rows, and what must hold of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

import penstock
from penstock.format.row.bucket import BucketFunction
from penstock.format.types.data_types import AtomicType, TypeRoot
from penstock.table.write.bucket_keys import assign_buckets

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

COLUMNS: Final = "n BIGINT NOT NULL, k INT NOT NULL, slot INT NOT NULL, body STRING"
KEYS: Final = 16
BUCKETS: Final = 4
BATCH_ROWS: Final = 400
BATCH_SECONDS: Final = 2.0
KEPT_SLOTS: Final = 4
BODY: Final = "x" * 120
SOURCE, QUEUE, WIDE = "soak.source", "soak.queue", "soak.wide"
TABLES: Final = (SOURCE, QUEUE, WIDE)
HOUSE: Final = {"snapshot.num-retained.min": "10", "snapshot.num-retained.max": "40", "snapshot.time-retained": "45 s"}
QUEUE_OPTIONS: Final = {"bucket": str(BUCKETS), "bucket-key": "k", "write-only": "true"}
# Partitions by their value: a micro-batch may hold the end of one slot and the beginning of the next.
READ: Final = {"scan.plan-sort-partition": "true"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A directory with everything that the parts of a soak share.

    Attributes:
        slot_batches: appends into one slot; a slot is a partition, and the newest few of them are kept.
        warehouse: its location; empty for a directory of the root.
        files: directory of this machine that has the files of the warehouse, if a server has the location.
    """

    root: Path
    slot_batches: int
    warehouse: str = ""
    files: str = ""

    @staticmethod
    def make(root: Path, *, slot_batches: int, warehouse: str = "", files: str = "") -> Scene:
        """Make the tables, or find those of the part before."""
        root.mkdir(parents=True, exist_ok=True)
        settings = root / "settings.json"
        if settings.exists():
            return Scene.at(root)
        catalog = penstock.Catalog(warehouse or str(root / "warehouse"))
        catalog.create_database("soak")
        catalog.create_table(SOURCE, COLUMNS, partition_by=["slot"], options=QUEUE_OPTIONS)
        catalog.create_table(QUEUE, COLUMNS, partition_by=["slot"], options=QUEUE_OPTIONS)
        catalog.create_table(WIDE, COLUMNS, partition_by=["slot"], options=HOUSE)
        settings.write_text(json.dumps({"slot_batches": slot_batches, "warehouse": warehouse, "files": files}))
        return Scene.at(root)

    @staticmethod
    def at(root: Path) -> Scene:
        """Return the scene of a directory."""
        return Scene(root=root, **json.loads((root / "settings.json").read_text()))

    def table(self, name: str) -> penstock.Table:
        """Load a table of the soak."""
        return penstock.Catalog(self.warehouse or str(self.root / "warehouse")).load_table(name)

    def directory(self, table: penstock.Table) -> Path:
        """Return the directory of this machine that has a table's files."""
        return Path(f"{self.files}{table.location.removeprefix(self.warehouse)}" if self.files else table.location)

    @property
    def slot_rows(self) -> int:
        """Rows of a slot."""
        return BATCH_ROWS * self.slot_batches

    def rows(self, first: int) -> pa.Table:
        """Return the rows of the append that begins with a number."""
        numbers = np.arange(first, first + BATCH_ROWS, dtype=np.int64)
        return pa.table(
            {
                "n": numbers,
                "k": (numbers % KEYS).astype(np.int32),
                "slot": (numbers // self.slot_rows).astype(np.int32),
                "body": [f"{number} {BODY}" for number in range(first, first + BATCH_ROWS)],
            }
        )

    def is_stopped(self, role: str) -> bool:
        """Whether a role has been asked to end."""
        return (self.root / f"{role}.stop").exists()

    def stop(self, role: str) -> None:
        """Ask a role to end."""
        (self.root / f"{role}.stop").touch()


def buckets_of_keys() -> Ints:
    """Return the bucket of each key."""
    types = (AtomicType(root=TypeRoot.INT, nullable=False),)
    keys = pa.array(range(KEYS), pa.int32())
    return assign_buckets([keys], types, BUCKETS, BucketFunction.DEFAULT).astype(np.int64)


class WrongRows(Exception):  # noqa: N818 - what it found, no failure of its own
    """Rows are missing, doubled or out of order."""


class Delivered:
    """The rows of a stream as they come: each once, and in each bucket in order.

    Args:
        following: the next number of each key; None where the stream begins with whatever there is.
    """

    def __init__(self, following: list[int] | None = None) -> None:
        self.following = np.array(following if following is not None else range(KEYS), dtype=np.int64)
        self._begin = self.following.copy()
        self._bucket = buckets_of_keys()
        self._last = np.full(BUCKETS, -1, dtype=np.int64)
        self.rows = 0

    def check(self, numbers: Ints) -> None:
        """Take rows in the order in which they came.

        What this reader's predecessor had already may come again at the beginning: a consumer's place is noted at the
        end of a snapshot.

        Raises:
            WrongRows: they do not follow those before.
        """
        for key in range(KEYS):
            mine = numbers[numbers % KEYS == key]
            mine = mine[mine >= self._begin[key]]
            expected = self.following[key] + KEYS * np.arange(len(mine), dtype=np.int64)
            if not np.array_equal(mine, expected):
                raise WrongRows(f"key {key}: after {self.following[key] - KEYS} came {mine[:8]}, not {expected[:8]}")
            self.following[key] += KEYS * len(mine)
        for bucket in range(BUCKETS):
            mine = numbers[self._bucket[numbers % KEYS] == bucket]
            if len(mine) and (np.any(np.diff(mine) <= 0) or (self.rows and mine[0] <= self._last[bucket])):
                raise WrongRows(f"bucket {bucket}: out of order after {self._last[bucket]}: {mine[:8]} ...")
            if len(mine):
                self._last[bucket] = mine[-1]
        self.rows += len(numbers)


def check_snapshot(numbers: Ints, slots: Ints, scene: Scene, *, is_ordered: bool) -> None:
    """Hold the rows of one snapshot to what must be there: whole slots, but for the end of the last one.

    Raises:
        WrongRows: rows are missing, doubled, or in a bucket out of order.
    """
    if not len(numbers):
        return
    first, last = int(numbers.min()), int(numbers.max())
    if first % scene.slot_rows:
        raise WrongRows(f"the first slot begins with row {first}")
    if not np.array_equal(np.sort(numbers), np.arange(first, last + 1)):
        distinct = len(np.unique(numbers))
        raise WrongRows(f"{len(numbers)} rows, {distinct} distinct, from {first} to {last}")
    if not np.array_equal(numbers // scene.slot_rows, slots):
        raise WrongRows("rows lie in other slots than their own")
    if not is_ordered:
        return
    bucket = buckets_of_keys()[numbers % KEYS]
    for slot in np.unique(slots):
        for each in range(BUCKETS):
            if np.any(np.diff(numbers[(slots == slot) & (bucket == each)]) <= 0):
                raise WrongRows(f"slot {slot}, bucket {each}: rows are out of order")
