"""The reference reads tables after our compaction: the same rows, in a queue in the same order; and it goes on."""

from pathlib import Path

import pytest
from tests.interop import ours
from tests.interop.canonical import sort_rows
from tests.interop.engines import Engine, JavaPaimon, Row

QUEUE = {"bucket": "2", "bucket-key": "k", "write-only": "true"}
SCALABLE = {"bucket": "-1", "write-only": "true"}


def fill(location: Path, java: Engine, options: dict[str, str]) -> list[Row]:
    """Turns of both writers in two partitions."""
    ours.create(location, "k INT, n INT, p STRING", partition_by=["p"], options=options)
    rows: list[Row] = [{"k": n % 5, "n": n, "p": "xy"[n % 2]} for n in range(120)]
    for turn in range(8):
        (ours, java)[turn % 2].append(location, rows[turn * 15 : turn * 15 + 15])
    return rows


def streamed(java: JavaPaimon, location: Path, user: str, options: dict[str, str]) -> list[tuple[str, int, int]]:
    """What Java's stream delivers, in its order: partition, bucket and number of each row."""
    plans = java.follow(location, user, {"scan.mode": "latest-full", **options})["plans"]
    return [
        (row["p"], split["bucket"], row["n"]) for plan in plans for split in plan["splits"] for row in split["rows"]
    ]


@pytest.mark.parametrize("options", [SCALABLE, QUEUE], ids=["scalable", "queue"])
@pytest.mark.parametrize("strategy", ["minor", "full"])
def test_every_engine_reads_what_we_compacted_and_goes_on(
    java: JavaPaimon, pypaimon: Engine, location: Path, options: dict[str, str], strategy: str
) -> None:
    rows = fill(location, java, options)
    before = ours.load(location).to_arrow().to_pylist()
    result = ours.load(location).compact(strategy=strategy, options={"compaction.min.file-num": "3"})
    assert sum(row.files_in for row in result.partitions) > sum(row.files_out for row in result.partitions)
    assert result.snapshots[-1].commit_kind == "COMPACT"
    for engine in (java, pypaimon):
        assert engine.read(location) == sort_rows(rows)
    if options is QUEUE:
        assert ours.load(location).to_arrow().to_pylist() == before
    more: list[Row] = [{"k": n % 5, "n": n, "p": "x"} for n in range(120, 140)]
    java.append(location, more[:10])
    ours.append(location, more[10:])
    java.ask("compact", location)
    for reader in (ours, java, pypaimon):
        assert reader.read(location) == sort_rows([*rows, *more])


def test_java_reads_a_queue_in_the_same_order_before_and_after(java: JavaPaimon, location: Path) -> None:
    fill(location, java, QUEUE)
    before = streamed(java, location, "before", {})
    ours.load(location).compact()
    after = streamed(java, location, "after", {})
    assert ours.load(location).files().num_rows == 4
    for place in {(p, bucket) for p, bucket, _ in before}:
        numbers = [n for *where, n in after if tuple(where) == place]
        assert numbers == [n for *where, n in before if tuple(where) == place]
        assert numbers == sorted(numbers)
    assert sorted(after) == sorted(before)


def test_java_compacts_a_queue_that_we_compacted_and_the_order_stays(java: JavaPaimon, location: Path) -> None:
    fill(location, java, QUEUE)
    ours.load(location).compact()
    for turn in range(5):
        (ours, java)[turn % 2].append(location, [{"k": k, "n": 1_000 + turn * 5 + k, "p": "x"} for k in range(5)])
    before = streamed(java, location, "before", {})
    java.ask("compact", location)
    after = streamed(java, location, "after", {})
    for place in {(p, bucket) for p, bucket, _ in before}:
        assert [n for *where, n in after if tuple(where) == place] == [
            n for *where, n in before if tuple(where) == place
        ]


def test_every_engine_agrees_on_the_order_of_a_queue_whose_appends_merge(
    java: JavaPaimon, pypaimon: Engine, location: Path
) -> None:
    ours.create(location, "k INT, n INT, p STRING", partition_by=["p"], options={"bucket": "2", "bucket-key": "k"})
    rows: list[Row] = [{"k": n % 5, "n": n, "p": "x"} for n in range(150)]
    for turn in range(10):
        (java if turn == 6 else ours).append(location, rows[turn * 15 : turn * 15 + 15])
    table = ours.load(location)
    assert "COMPACT" in table.snapshots()["commit_kind"].to_pylist()
    assert table.files().num_rows < 20
    delivered = streamed(java, location, "after", {})
    for bucket in {bucket for _, bucket, _ in delivered}:
        numbers = [n for _, each, n in delivered if each == bucket]
        assert numbers == sorted(numbers)
    assert sorted(n for *_, n in delivered) == list(range(150))
    assert pypaimon.read(location) == sort_rows(rows)
