"""Operations that name a partition take the partition of that value, whatever its directory is called."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock
from penstock.format.text.partitions import parse_partition

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock import Table

Spec: TypeAlias = "Any"
NUMBERS = itertools.count()
NAME = "__DEFAULT_PARTITION__"
VALUES = (None, "", " ", NAME, "null", "__HIVE_DEFAULT_PARTITION__", "x")
SQL = penstock.Catalog(f"memory://partition-values-{next(NUMBERS)}")
SQL.create_database("d")


def ids_of(table: Table, **options: str) -> set[int]:
    return {row["id"] for row in table.to_arrow(options=options).to_pylist()}


def sql_spec(spec: Spec) -> str:
    value = spec["p"]
    return "p = " + ("NULL" if value is None else f"'{value}'")


def dropped(table: Table, spec: Spec) -> set[int]:
    before = ids_of(table)
    table.drop_partitions(spec)
    return before - ids_of(table)


def dropped_by_sql(table: Table, spec: Spec) -> set[int]:
    before = ids_of(table)
    penstock.sql(None, SQL, f"ALTER TABLE {table.name} DROP IF EXISTS PARTITION ({sql_spec(spec)})")
    return before - ids_of(table)


def overwritten(table: Table, spec: Spec) -> set[int]:
    before = ids_of(table)
    table.overwrite(table.arrow_schema.empty_table(), partition=spec)
    return before - ids_of(table)


def scanned(table: Table, spec: Spec) -> set[int]:
    return ids_of(table, **{"scan.partitions": spec})


def deleted(table: Table, spec: Spec) -> set[int]:
    before = ids_of(table)
    table.delete("p IS NULL" if spec["p"] is None else f"p = '{spec['p']}'")
    return before - ids_of(table)


def greatest(table: Table, _: Spec) -> set[int]:
    return ids_of(table, **{"scan.partitions": "max_pt()"})


BY_VALUE: dict[str, Callable[[Table, Spec], set[int]]] = {
    "drop": dropped,
    "drop in SQL": dropped_by_sql,
    "overwrite": overwritten,
    "delete": deleted,
    "greatest": greatest,
}
BY_PATH: dict[str, Callable[[Table, Spec], set[int]]] = {
    "drop": dropped,
    "overwrite": overwritten,
    "scan": scanned,
}


NAMES = (NAME, "null", "x")
OPTIONS = st.fixed_dictionaries(
    {"partition.default-name": st.sampled_from(NAMES)},
    optional={"bucket": st.just("2"), "bucket-key": st.just("id")},
).filter(lambda options: ("bucket" in options) == ("bucket-key" in options))


def filled(options: dict[str, str]) -> tuple[Table, str]:
    """Return a table with one row for each value, and its default name."""
    table = SQL.create_table(f"d.t{next(NUMBERS)}", "id INT, p STRING", partition_by=["p"], options=options)
    table.append([{"id": place, "p": value} for place, value in enumerate(VALUES)])
    return table, options["partition.default-name"]


@given(OPTIONS, st.sampled_from(VALUES), st.sampled_from(sorted(BY_VALUE)))
def test_a_value_names_the_partition_of_that_value(options: dict[str, str], value: str | None, operation: str) -> None:
    table, _ = filled(options)
    wanted = "x" if operation == "greatest" else value
    assert BY_VALUE[operation](table, {"p": value}) == {VALUES.index(wanted)}


@given(OPTIONS, st.sampled_from(NAMES), st.sampled_from(sorted(BY_PATH)))
def test_the_default_name_in_a_path_is_null(options: dict[str, str], text: str, operation: str) -> None:
    table, name = filled(options)
    assert BY_PATH[operation](table, f"p={text}") == {VALUES.index(None if text == name else text)}


@given(st.sampled_from(NAMES), st.sampled_from(NAMES), st.booleans())
def test_maintenance_takes_one_partition(name: str, text: str, by_path: bool) -> None:  # noqa: FBT001
    table, _ = filled({"partition.default-name": name})
    spec: Spec = parse_partition(f"p={text}") if by_path else {"p": text}
    table.append([{"id": 9, "p": None if by_path and text == name else text}])
    kept = table.preview.existing_partitions(spec)
    assert [table.preview.drop_partitions(each).rows for each in kept] == [2]
    assert [each.rows for each in table.maintenance.mark_partitions_done([spec], dry_run=True)] == [2]
    assert [each.files_in for each in table.compact(partitions=[spec], dry_run=True).partitions] == [2]


@given(OPTIONS)
def test_what_the_greatest_partition_is_called_does_not_matter(options: dict[str, str]) -> None:
    table, name = filled(options)
    table.drop_partitions(*({"p": value} for value in VALUES if value not in (None, name)))
    assert greatest(table, None) == {VALUES.index(name)}


@pytest.mark.parametrize("operation", ["drop", "overwrite", "scan"])
def test_a_partition_of_zero_is_not_that_of_the_other_zero(operation: str) -> None:
    for place, value in enumerate((0.0, -0.0, math.nan)):
        table = SQL.create_table(f"d.t{next(NUMBERS)}", "id INT, p DOUBLE", partition_by=["p"])
        table.append([{"id": place, "p": value} for place, value in enumerate((0.0, -0.0, math.nan, 1.0, None))])
        assert BY_PATH[operation](table, f"p={'NaN' if place == 2 else value}") == {place}
