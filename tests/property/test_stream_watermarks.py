"""Random histories of producers that run far apart: no snapshot's watermark passes a row that comes after it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Final

import pyarrow as pa
from hypothesis import event, given, settings
from hypothesis import strategies as st

import penstock
from penstock.format.row.bucket import bucket_of
from penstock.format.types.data_types import INT
from penstock.table.read.batches import TableReader
from penstock.table.store import MetadataStore
from penstock.table.stream.checkpoint import BatchEnds
from penstock.table.stream.limits import ReadLimits
from penstock.table.stream.offset import UNRESOLVED, decode_offset, encode_offset
from penstock.table.stream.scanner import StreamScanner
from penstock.table.stream_sink.watermark import SinkWatermark

BUCKETS: Final = 3
DELAY_SECONDS: Final = 5
NOON: Final = datetime(2026, 1, 1, 12)  # noqa: DTZ001 - a wall clock
# One producer a bucket; the last is a day behind.
BEHIND: Final = (timedelta(), timedelta(hours=1), timedelta(days=1))
KEYS: Final = tuple(next(key for key in count() if bucket_of([key], [INT], BUCKETS) == n) for n in range(BUCKETS))
NAMES: Final = count()

# Seconds that each producer goes on, None for one that is silent; how far the row is behind; its partition.
COMMITS: Final = st.tuples(
    st.tuples(*[st.none() | st.integers(0, 100)] * BUCKETS).filter(lambda steps: steps != (None,) * BUCKETS),
    st.integers(0, DELAY_SECONDS),
    st.integers(0, 2),
)
FIRST: Final = ((0,) * BUCKETS, 0, 0)


@dataclass(slots=True)
class Producers:
    """Write rows whose times go forwards but for the delay."""

    table: penstock.Table
    seconds: list[int] = field(default_factory=lambda: [0] * BUCKETS)

    def commit(self, steps: tuple[int | None, ...], late: int, day: int) -> None:
        """Append a row of each producer that goes on."""
        rows = []
        for number, step in enumerate(steps):
            if step is not None:
                self.seconds[number] += step
                rows.append((number, NOON - BEHIND[number] + timedelta(seconds=self.seconds[number] - late)))
        self.table.append(
            pa.table(
                {
                    "k": pa.array([KEYS[number] for number, _ in rows], pa.int32()),
                    "t": pa.array([time for _, time in rows], pa.timestamp("ms")),
                    "day": pa.array([day] * len(rows), pa.int32()),
                }
            )
        )


@settings(max_examples=max(40, settings().max_examples // 8))
@given(
    commits=st.lists(COMMITS, min_size=1, max_size=8),
    mode=st.sampled_from(["earliest", "latest-full"]),
    begun=st.integers(0, 4),
    max_files=st.integers(1, 4),
    restarts=st.booleans(),
)
def test_no_row_is_behind_the_watermark_of_a_batch_before_it(
    commits: list[tuple[tuple[int | None, ...], int, int]], mode: str, begun: int, max_files: int, *, restarts: bool
) -> None:
    catalog = penstock.Catalog(f"memory://watermarks/{next(NAMES)}")
    catalog.create_database("d")
    table = catalog.create_table(
        "d.t",
        "k INT, t TIMESTAMP(3), day INT",
        partition_by=["day"],
        watermark=("t", f"INTERVAL '{DELAY_SECONDS}' SECOND"),
        options={"bucket": str(BUCKETS), "bucket-key": "k"},
    )
    producers = Producers(table)
    for commit in [FIRST, *commits[:begun]]:
        producers.commit(*commit)
    ref = table._ref.with_options({"scan.mode": mode})
    store = MetadataStore(ref)
    reader = TableReader(ref, store, ["t"])
    follower, sink = StreamScanner(ref, store), SinkWatermark(table="d.t", waits_for_spark=False)
    offset, found, rows = UNRESOLVED, [], 0
    waiting = commits[begun:]
    while True:
        end = follower.advance(offset, ReadLimits(max_files=max_files))
        if end == offset:
            if not waiting:
                break
            producers.commit(*waiting.pop(0))
            continue
        for task in follower.plan_range(offset, end):
            for split in task.splits:
                for batch in reader.read_split(split):
                    millis = batch["t"].cast(pa.int64()).to_pylist()
                    assert all(each >= max(found, default=each) for each in millis)
                    rows += len(millis)
        watermark = sink.of(BatchEnds(sources=(end,), spark_watermark=None, takes_least=True))
        if watermark is not None:
            found.append(watermark)
        offset = decode_offset(json.loads(json.dumps(encode_offset(end))))
        if restarts:
            follower, sink = StreamScanner(ref, store), SinkWatermark(table="d.t", waits_for_spark=False)
    assert rows == table.to_arrow().num_rows
    # At the end it stands where the slowest producer's newest row is, less the delay.
    slowest = min(max(row["t"] for row in table.to_arrow().to_pylist() if row["k"] == key) for key in KEYS) - timedelta(
        seconds=DELAY_SECONDS
    )
    assert found[-1] == (slowest - datetime(1970, 1, 1)) // timedelta(milliseconds=1)  # noqa: DTZ001 - see above
    event(f"{len(set(found))} watermarks")
