"""The reference engines read a table after our DELETE, UPDATE and MERGE, and go on with it."""

import math
from pathlib import Path

import pytest
from tests.interop import ours
from tests.interop.canonical import sort_rows
from tests.interop.engines import Engine, JavaPaimon, Row
from tests.interop.test_compaction import QUEUE, SCALABLE, fill, streamed

import penstock


@pytest.mark.parametrize("options", [SCALABLE, QUEUE], ids=["scalable", "queue"])
def test_an_engine_reads_what_we_changed_and_goes_on(engine: Engine, location: Path, options: dict[str, str]) -> None:
    rows = fill(location, engine, options)
    table = ours.load(location)
    assert table.delete("n >= 20 AND n < 40").rows_deleted == 20
    assert table.update({"n": 1_000}, "n = 77").rows_updated == 1
    left: list[Row] = [{**row, "n": 1_000} if row["n"] == 77 else row for row in rows if not 20 <= row["n"] < 40]
    for reader in (ours, engine):
        assert reader.read(location) == sort_rows(left)
    more: list[Row] = [{"k": n % 5, "n": n, "p": "x"} for n in range(120, 140)]
    engine.append(location, more[:10])
    ours.append(location, more[10:])
    assert ours.load(location).delete("n >= 130").rows_deleted == 11
    left = [row for row in [*left, *more] if row["n"] < 130]
    for reader in (ours, engine):
        assert reader.read(location) == sort_rows(left)


@pytest.mark.parametrize("options", [SCALABLE, QUEUE], ids=["scalable", "queue"])
def test_an_engine_reads_what_we_merged(engine: Engine, location: Path, options: dict[str, str]) -> None:
    rows = fill(location, engine, options)
    source: list[Row] = [{"k": 9, "n": n, "p": "z"} for n in (7, 50, 500)]
    result = ours.load(location).merge(
        source, "n", matched=penstock.MergeUpdate(set={"p": "z"}), not_matched=penstock.MergeInsert()
    )
    assert (result.rows_updated, result.rows_inserted) == (2, 1)
    left: list[Row] = [{**row, "p": "z"} if row["n"] in {7, 50} else row for row in rows]
    left.append({"k": 9, "n": 500, "p": "z"})
    for reader in (ours, engine):
        assert reader.read(location) == sort_rows(left)


def test_java_streams_a_queue_that_we_changed_in_the_same_order(java: JavaPaimon, location: Path) -> None:
    """Java's own full compaction takes files in heap order afterwards, see docs/spec/compaction.md section 3.3."""
    fill(location, java, QUEUE)
    before = streamed(java, location, "before", {})
    ours.load(location).delete("n >= 20 AND n < 40")
    wanted = [each for each in before if not 20 <= each[2] < 40]
    found = streamed(java, location, "after", {})
    for place in {each[:2] for each in wanted}:
        assert [each for each in found if each[:2] == place] == [each for each in wanted if each[:2] == place]
    ours.load(location).compact()
    compacted = streamed(java, location, "compacted", {})
    for place in {each[:2] for each in wanted}:
        assert [each for each in compacted if each[:2] == place] == [each for each in wanted if each[:2] == place]


@pytest.mark.parametrize("column", ["FLOAT", "DOUBLE"])
@pytest.mark.parametrize("text", ["0.0", "-0.0", "0", "NaN", "Infinity", "__DEFAULT_PARTITION__"])
def test_java_drops_the_same_partition_of_a_number(java: JavaPaimon, tmp_path: Path, column: str, text: str) -> None:
    catalog = penstock.Catalog(str(tmp_path))
    catalog.create_database("d")
    left = []
    for name in ("ours", "theirs"):
        table = catalog.create_table(f"d.{name}", f"id INT, p {column}", partition_by=["p"])
        values = (0.0, -0.0, math.nan, math.inf, 1.0, None)
        table.append([{"id": place, "p": value} for place, value in enumerate(values)])
        if name == "ours":
            table.drop_partitions(f"p={text}")
        else:
            java.ask("drop_partitions", table.location, partitions=[{"p": text}])
        left.append(sorted(table.to_arrow()["id"].to_pylist()))
    assert left[0] == left[1]
    assert len(left[0]) == 5
