"""The reference engines read a table and its files beside our branches."""

from pathlib import Path

from tests.interop import ours
from tests.interop.canonical import sort_rows
from tests.interop.engines import Engine, Row


def test_an_engine_reads_the_main_branch_before_and_after_a_fast_forward(engine: Engine, location: Path) -> None:
    ours.create(location, "k INT, n INT", options={"bucket": "-1"})
    rows: list[Row] = [{"k": k, "n": k} for k in range(6)]
    ours.append(location, rows[:2])
    engine.append(location, rows[2:4])
    table = ours.load(location)
    latest = table.latest_snapshot()
    assert latest is not None
    table.create_branch("b", snapshot_id=latest.id)
    table.with_options({"branch": "b"}).append(rows[4:])
    table.with_options({"branch": "b"}).delete("k = 0")
    assert engine.read(location) == sort_rows(rows[:4])
    assert table.fast_forward("b") == 2
    for reader in (ours, engine):
        assert reader.read(location) == sort_rows(rows[1:])
    engine.append(location, rows[:1])
    assert ours.read(location) == sort_rows(rows)


def test_partitions_that_only_the_fallback_branch_has_are_read_as_java_reads_them(java: Engine, location: Path) -> None:
    """pypaimon 2.1 has no fallback branches."""
    ours.create(location, "k INT, dt STRING", partition_by=["dt"], options={"bucket": "-1"})
    table = ours.load(location)
    table.create_branch("b")
    main: list[Row] = [{"k": 1, "dt": "a"}, {"k": 2, "dt": None}]
    other: list[Row] = [{"k": 10, "dt": "a"}, {"k": 20, "dt": None}, {"k": 30, "dt": "b"}, {"k": 31, "dt": "b"}]
    ours.append(location, main)
    ours.append(location, other, {"branch": "b"})
    java.ask("alter", location, changes=[["set", "scan.fallback-branch", "b"]])
    for reader in (ours, java):
        assert reader.read(location) == sort_rows([*main, *other[2:]])
    java.append(location, [{"k": 3, "dt": "b"}])  # from now on main has the partition
    for reader in (ours, java):
        assert reader.read(location) == sort_rows([*main, {"k": 3, "dt": "b"}])
