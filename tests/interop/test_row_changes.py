"""The reference engines read a table after our DELETE and UPDATE, in a queue in the same order, and go on with it."""

from pathlib import Path

import pytest
from tests.interop import ours
from tests.interop.canonical import sort_rows
from tests.interop.engines import Engine, JavaPaimon, Row
from tests.interop.test_compaction import QUEUE, SCALABLE, fill, streamed

import penstock


@pytest.mark.parametrize("options", [SCALABLE, QUEUE], ids=["scalable", "queue"])
def test_every_engine_reads_what_we_changed_and_goes_on(
    java: JavaPaimon, pypaimon: Engine, location: Path, options: dict[str, str]
) -> None:
    rows = fill(location, java, options)
    table = ours.load(location)
    assert table.delete("n >= 20 AND n < 40").rows_deleted == 20
    assert table.update({"n": 1_000}, "n = 77").rows_updated == 1
    left: list[Row] = [{**row, "n": 1_000} if row["n"] == 77 else row for row in rows if not 20 <= row["n"] < 40]
    for engine in (ours, java, pypaimon):
        assert engine.read(location) == sort_rows(left)
    if options is QUEUE:
        mine = [(row["p"], row["n"]) for row in table.to_arrow().to_pylist() if row["k"] == 3]
        theirs = [(p, n) for p, _, n in streamed(java, location, "changed", {}) if n % 5 == 3]
        assert [n for p, n in mine if p == "x"] == [n for p, n in theirs if p == "x"]
    more: list[Row] = [{"k": n % 5, "n": n, "p": "x"} for n in range(120, 140)]
    java.append(location, more[:10])
    ours.append(location, more[10:])
    java.ask("compact", location)
    assert ours.load(location).delete("n >= 130").rows_deleted == 11
    left = [row for row in [*left, *more] if row["n"] < 130]
    for engine in (ours, java, pypaimon):
        assert engine.read(location) == sort_rows(left)


@pytest.mark.parametrize("options", [SCALABLE, QUEUE], ids=["scalable", "queue"])
def test_every_engine_reads_what_we_merged(
    java: JavaPaimon, pypaimon: Engine, location: Path, options: dict[str, str]
) -> None:
    rows = fill(location, java, options)
    source: list[Row] = [{"k": 9, "n": n, "p": "z"} for n in (7, 50, 500)]
    result = ours.load(location).merge(
        source, "n", matched=penstock.MergeUpdate(set={"p": "z"}), not_matched=penstock.MergeInsert()
    )
    assert (result.rows_updated, result.rows_inserted) == (2, 1)
    left: list[Row] = [{**row, "p": "z"} if row["n"] in {7, 50} else row for row in rows]
    left.append({"k": 9, "n": 500, "p": "z"})
    for engine in (ours, java, pypaimon):
        assert engine.read(location) == sort_rows(left)
