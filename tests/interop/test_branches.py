"""The reference engines read a table and its files beside our branches."""

import time
from pathlib import Path

import pytest
from tests.interop import ours
from tests.interop.canonical import sort_rows
from tests.interop.engines import Engine, EngineError, Row

from penstock import AddColumn, SetOption, UnsupportedFeatureError


def test_an_engine_reads_the_main_branch_before_and_after_a_fast_forward(engine: Engine, location: Path) -> None:
    ours.create(location, "k INT, n INT", options={"bucket": "-1"})
    rows: list[Row] = [{"k": k, "n": k} for k in range(6)]
    ours.append(location, rows[:2])
    engine.append(location, rows[2:4])
    table = ours.load(location)
    latest = table.latest_snapshot()
    assert latest is not None
    table.versions.create_branch("b", snapshot_id=latest.id)
    table.with_options({"branch": "b"}).append(rows[4:])
    table.with_options({"branch": "b"}).delete("k = 0")
    assert engine.read(location) == sort_rows(rows[:4])
    assert table.versions.fast_forward("b") == 2
    for reader in (ours, engine):
        assert reader.read(location) == sort_rows(rows[1:])
    engine.append(location, rows[:1])
    assert ours.read(location) == sort_rows(rows)


def test_partitions_that_only_the_fallback_branch_has_are_read_as_java_reads_them(java: Engine, location: Path) -> None:
    """pypaimon 2.1 has no fallback branches."""
    ours.create(location, "k INT, dt STRING", partition_by=["dt"], options={"bucket": "-1"})
    table = ours.load(location)
    table.versions.create_branch("b")
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


def test_java_reads_our_fallback_branch_after_columns_of_both_have_changed(java: Engine, location: Path) -> None:
    ours.create(location, "k INT, dt STRING", partition_by=["dt"], options={"bucket": "-1"})
    ours.load(location).versions.create_branch("b")
    ours.append(location, [{"k": 1, "dt": "a"}])
    ours.append(location, [{"k": 10, "dt": "a"}, {"k": 20, "dt": "b"}], {"branch": "b"})
    ours.alter(location, [SetOption(key="scan.fallback-branch", value="b")])
    ours.alter(location, [AddColumn(column="more", type="INT")])
    with pytest.raises(EngineError, match="does not have the same row type"):
        java.read(location)
    with pytest.raises(UnsupportedFeatureError, match="whose columns differ"):
        ours.read(location)
    name = f"{ours.name_of(location)}$branch_b"
    ours.catalog_of(location).alter_table(name, AddColumn(column="more", type="INT"))
    ours.append(location, [{"k": 30, "dt": "c", "more": 7}], {"branch": "b"})
    ours.append(location, [{"k": 2, "dt": "a", "more": 8}])
    rows: list[Row] = [{"k": 1, "dt": "a", "more": None}, {"k": 2, "dt": "a", "more": 8}]
    others: list[Row] = [{"k": 20, "dt": "b", "more": None}, {"k": 30, "dt": "c", "more": 7}]
    for reader in (ours, java):
        assert reader.read(location) == sort_rows([*rows, *others])
    time.sleep(0.01)
    late: list[Row] = [{"k": 40, "dt": "d", "more": 9}]
    ours.append(location, late, {"branch": "b"})
    ours.append(location, late)
    # The snapshot of the branch is the last one that is no later than snapshot 2 of main.
    for at_two in (ours.read(location, snapshot_id=2), java.read(location, snapshot=2)):
        assert at_two == sort_rows([*rows, *others])
    for reader in (ours, java):
        assert reader.read(location) == sort_rows([*rows, *others, *late])
