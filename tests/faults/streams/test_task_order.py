"""Order where a parallel sink sees it: inside its tasks, with buckets of more rows than come in one batch of Arrow."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from tests.faults.streams.checker import LANE_OF_PRODUCER, check_rows, load_placed_rows
from tests.faults.streams.harness import count_snapshots
from tests.faults.streams.rows import BATCH_ROWS, BUCKETS, PARTITIONS, Producer, make_queue

import penstock
from penstock.format.snapshot import CommitKind

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.streams.harness import Drivers

pytestmark = pytest.mark.spark
COMMITS = 2
ROWS = 15 * BATCH_ROWS
FILES_AT_ONCE = 20


@pytest.fixture(scope="module")
def queue(tmp_path_factory: pytest.TempPathFactory) -> tuple[penstock.Catalog, penstock.Table]:
    """Commits of one producer each, which has the number of the commit; partitions begin in the order 100, 9, 10."""
    catalog = penstock.Catalog(str(tmp_path_factory.mktemp("order")))
    catalog.create_database("d")
    table = make_queue(catalog, "d.queue", {"source.split.open-file-cost": "1 kb", "source.split.target-size": "16 kb"})
    for number, partition in enumerate((100, 9, 10)):
        table.append(Producer(number).rows(100 * BUCKETS, (partition,)))
    for number in range(3, 3 + COMMITS):
        table.append(Producer(number).rows(ROWS))
    return catalog, table


def _most_rows_at_once(table: penstock.Table) -> Counter[int]:
    """Rows of each bucket in that micro-batch that brought most of them."""
    most: Counter[int] = Counter()
    appends = (each for each in table._store.snapshots_between() if each.commit_kind is CommitKind.APPEND)
    for snapshot in appends:
        rows: Counter[int] = Counter()
        for entry in table._store.load_delta(snapshot):
            rows[entry.bucket] += entry.file.row_count
        most |= rows
    return most


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """How a stream starts, and the order that its tasks see.

    Attributes:
        ascending: columns in which rows ascend; the producer's number is that of the commit.
        partitions: in their order.
    """

    name: str
    options: dict[str, str]
    ascending: tuple[str, ...]
    partitions: tuple[int, ...]

    def query(self, source: penstock.Table, target: penstock.Table, checkpoint: Path, files: int = 0) -> dict[str, Any]:
        """Return the query, whose micro-batches have so many files at most; 0 for any number."""
        limit = {"read.stream.maxFilesPerTrigger": str(files)} if files else {}
        return {
            "name": self.name,
            "source": source.location,
            "options": {**self.options, **limit},
            "ascending": self.ascending,
            "partitions": self.partitions,
            "table": target.location,
            "checkpoint": str(checkpoint),
            "trigger": {"availableNow": True},
        }


BY_VALUE = {"scan.plan-sort-partition": "true"}
EARLIEST = {"scan.mode": "earliest"}
CREATED = (100, 9, 10)
INCREMENTS, AT_ONCE = ("producer", "p"), ("p", "producer")
CASES = [
    Case(name="increments_by_value", options=EARLIEST | BY_VALUE, ascending=INCREMENTS, partitions=PARTITIONS),
    Case(name="increments_by_creation", options=EARLIEST, ascending=INCREMENTS, partitions=CREATED),
    Case(name="at_once_by_value", options=BY_VALUE, ascending=AT_ONCE, partitions=PARTITIONS),
    Case(name="at_once_by_creation", options={}, ascending=AT_ONCE, partitions=CREATED),
]
ALWAYS = {("increments_by_creation", FILES_AT_ONCE), ("at_once_by_value", 0)}


@pytest.mark.parametrize(
    ("case", "files"),
    [
        pytest.param(
            case,
            files,
            id=f"{case.name}-{'cut' if files else 'whole'}",
            # One start always cut into micro-batches, and the other one whole, in the other order of partitions.
            marks=[] if (case.name, files) in ALWAYS else [pytest.mark.slow],
        )
        for case in CASES
        for files in (0, FILES_AT_ONCE)
    ],
)
def test_tasks_of_a_parallel_sink_see_each_bucket_in_its_order(
    case: Case, files: int, queue: tuple[penstock.Catalog, penstock.Table], drivers: Drivers, tmp_path: Path
) -> None:
    catalog, table = queue
    target = make_queue(catalog, f"d.{case.name}_{files}")
    assert drivers.run([[case.query(table, target, tmp_path / "checkpoint", files)]]).errors == {}
    most = _most_rows_at_once(target)
    assert set(most) == set(range(BUCKETS))
    assert min(most.values()) > BATCH_ROWS
    assert count_snapshots(target, CommitKind.APPEND) == (1 if not files else -(-table.files().num_rows // files))
    verdict = check_rows(load_placed_rows(table), load_placed_rows(target), lane=LANE_OF_PRODUCER)
    assert verdict.is_clean, verdict
    assert verdict.rows == COMMITS * ROWS + 3 * 100 * BUCKETS


def test_tasks_that_get_rows_of_another_order_fail_the_query(
    queue: tuple[penstock.Catalog, penstock.Table], drivers: Drivers, tmp_path: Path
) -> None:
    catalog, table = queue
    target = make_queue(catalog, "d.wrong")
    case = Case(name="wrong", options=BY_VALUE, ascending=("p",), partitions=CREATED)
    errors = drivers.run([[case.query(table, target, tmp_path / "checkpoint")]]).errors
    assert "came after rows of" in errors["wrong"]
    assert target.latest_snapshot() is None
