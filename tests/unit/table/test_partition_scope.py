from __future__ import annotations

import datetime as dt
import itertools
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from penstock.catalog.new_schema import TableDefinition
from penstock.catalog.warehouse import open_warehouse
from penstock.errors import InvalidOptionError
from penstock.format.row.row import encode_row
from penstock.format.text.partitions import parse_partition
from penstock.format.types.ddl import parse_columns
from penstock.predicate.text import format_filter
from penstock.table.actions.changes import overwrite_scope
from penstock.table.partition_scope import (
    MatchingPartitions,
    OverwriteScope,
    WholeTable,
    WrittenPartitions,
    filter_of_specs,
    partition_of_spec,
    partition_test,
    scope_of_filter,
    scope_of_specs,
)
from penstock.table.ref import FileLocator

if TYPE_CHECKING:
    from penstock.table.ref import TableRef

NUMBERS = itertools.count()


def table(columns: str, *keys: str, **options: str) -> TableRef:
    warehouse = open_warehouse(f"memory://scopes-{next(NUMBERS)}")
    warehouse.create_database("db")
    definition = TableDefinition(
        columns=parse_columns(f"v INT, {columns}"), partition_by=keys, options=tuple(options.items())
    )
    return warehouse.create_table("db.t", definition)


def covered(ref: TableRef, scope: OverwriteScope, *partitions: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    types = [field.type for field in ref.schema.partition_fields]
    test = partition_test(scope, touched=frozenset(), ref=ref)
    return [values for values in partitions if test(encode_row(values, types))]


DT_HOUR = "dt STRING, h INT"
HOURS = [("mon", 1), ("mon", 2), ("tue", 1), (None, 1), ("", 1), ("mon", None)]


@pytest.mark.parametrize(
    ("specs", "expected"),
    [
        ([{"dt": "mon", "h": 1}], [("mon", 1)]),
        ([{"dt": "mon"}], [("mon", 1), ("mon", 2), ("mon", None)]),
        ([{"h": 1}], [("mon", 1), ("tue", 1), (None, 1), ("", 1)]),
        ([{"h": "1", "dt": "tue"}], [("tue", 1)]),
        ([{"dt": None}], [(None, 1)]),
        ([{"dt": "__DEFAULT_PARTITION__"}], []),
        ([parse_partition("dt=__DEFAULT_PARTITION__")], [(None, 1)]),
        ([{"dt": ""}], [("", 1)]),
        ([{"dt": "mon", "h": None}], [("mon", None)]),
        ([{"dt": "tue"}, {"dt": "mon", "h": 2}], [("mon", 2), ("tue", 1)]),
        ([{"dt": "wed"}], []),
        ([{}], HOURS),
        ([{"dt": "wed"}, {}], HOURS),
    ],
)
def test_specs_cover_the_partitions_that_agree_with_one_of_them(
    specs: list[dict[str, object]], expected: list[tuple[Any, ...]]
) -> None:
    ref = table(DT_HOUR, "dt", "h")
    assert covered(ref, scope_of_specs(ref, specs), *HOURS) == expected


@pytest.mark.parametrize("name", ["__DEFAULT_PARTITION__", "nil"])
def test_the_name_of_the_null_partition_means_null_only_in_a_path(name: str) -> None:
    ref = table(DT_HOUR, "dt", "h", **{"partition.default-name": "nil"})
    partitions = [(None, 1), ("nil", 1), ("__DEFAULT_PARTITION__", 1)]
    assert covered(ref, scope_of_specs(ref, [{"dt": name}]), *partitions) == [(name, 1)]
    in_path = None if name == "nil" else name
    assert covered(ref, scope_of_specs(ref, [parse_partition(f"dt={name}")]), *partitions) == [(in_path, 1)]


@pytest.mark.parametrize(
    ("column", "text", "value"),
    [
        ("BIGINT", "-7", -7),
        ("TINYINT", "7", 7),
        ("BOOLEAN", " TRUE ", True),
        ("DECIMAL(9, 2)", "1.5", Decimal("1.50")),
        ("DOUBLE", "0.5", 0.5),
        ("DATE", "1970-01-03", 2),
        ("DATE", "2", 2),
        ("TIME(3)", "10:00", 36_000_000),
        ("TIME(3)", "1000", 1_000),
        ("TIME(0)", "86399000", 86_399_000),
        ("VARCHAR(5)", "7", "7"),
    ],
)
def test_text_is_read_as_the_columns_type_says(column: str, text: str, value: object) -> None:
    ref = table(f"p {column}", "p")
    assert covered(ref, scope_of_specs(ref, [{"p": text}]), (value,), (None,)) == [(value,)]


@pytest.mark.parametrize(
    ("column", "text"),
    [("INT", "x"), ("INT", "1.5"), ("BOOLEAN", "yes"), ("DECIMAL(9, 2)", "x"), ("DATE", "soon"), ("TIME", "86400000")],
)
def test_text_that_is_no_such_value_is_refused(column: str, text: str) -> None:
    ref = table(f"p {column}", "p")
    with pytest.raises(InvalidOptionError, match=text):
        scope_of_specs(ref, [{"p": text}])


def test_a_value_of_another_type_is_refused() -> None:
    ref = table("p DATE", "p")
    with pytest.raises(InvalidOptionError, match=r"in the partition that is named: .*'p'"):
        scope_of_specs(ref, [{"p": 1.5}])


def test_a_column_that_is_no_partition_column_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match=r"db\.t: 'v' is not a partition column; partition columns are dt, h"):
        scope_of_specs(table(DT_HOUR, "dt", "h"), [{"v": 1}])
    with pytest.raises(InvalidOptionError, match="none: it is not partitioned"):
        scope_of_specs(table(DT_HOUR), [{"dt": "mon"}])


def test_touched_partitions_are_just_those() -> None:
    ref = table(DT_HOUR, "dt", "h")
    types = [field.type for field in ref.schema.partition_fields]
    touched = encode_row(("mon", 1), types)
    test = partition_test(WrittenPartitions(), touched=frozenset({touched}), ref=ref)
    assert test(touched)
    assert not test(encode_row(("mon", 2), types))


def test_without_a_spec_the_option_and_the_table_say_what_is_replaced() -> None:
    partitioned, plain = table(DT_HOUR, "dt", "h"), table(DT_HOUR)
    assert isinstance(overwrite_scope(partitioned, None), WrittenPartitions)
    static = partitioned.with_options({"dynamic-partition-overwrite": "false"})
    assert isinstance(overwrite_scope(static, None), WholeTable)
    assert isinstance(overwrite_scope(plain, None), WholeTable)
    assert isinstance(overwrite_scope(partitioned, {}), WholeTable)
    assert isinstance(overwrite_scope(partitioned, {"dt": "mon"}), MatchingPartitions)


def test_a_condition_on_partition_columns_covers_the_partitions_for_which_it_holds() -> None:
    ref = table(DT_HOUR, "dt", "h")
    scope = scope_of_filter(ref, "dt >= 'mon' AND h < 2", "replaceWhere")
    assert covered(ref, scope, *HOURS) == [("mon", 1), ("tue", 1)]


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("dt = 'mon' AND v = 1", "'v' is not a partition column, and only whole partitions are replaced; .* are dt, h"),
        ("nothing = 1", "'nothing' is not a partition column"),
        ("dt =", "option 'replaceWhere' = 'dt =': "),
        ("h = 'x'", "option 'replaceWhere' = 'h = 'x'': "),
    ],
)
def test_a_condition_that_whole_partitions_cannot_answer_is_refused(condition: str, message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        scope_of_filter(table(DT_HOUR, "dt", "h"), condition, "replaceWhere")


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("dt=2026-01-01", {"dt": "2026-01-01"}),
        ("dt=2026-01-01/h=3", {"dt": "2026-01-01", "h": "3"}),
        ("dt=2026-01-01,h=3", {"dt": "2026-01-01", "h": "3"}),
        ("dt=20454/h=3/", {"dt": "20454", "h": "3"}),
        ("p=a/b,c", {"p": "a/b,c"}),
        ("p=", {"p": ""}),
    ],
)
def test_a_partition_is_written_as_its_directory_or_with_commas(text: str, spec: dict[str, str]) -> None:
    assert parse_partition(text) == spec


@pytest.mark.parametrize("text", ["", "dt", "=1", "dt=1/dt=2"])
def test_what_names_no_partition_is_refused(text: str) -> None:
    with pytest.raises(InvalidOptionError, match="expected column=value for each column once"):
        parse_partition(text)


@pytest.mark.parametrize("value", ["2026-01-01", "20454", None])
def test_what_is_printed_of_a_partition_names_it_again(value: str | None) -> None:
    ref = table("d DATE, h INT", "d", "h")
    day = None if value is None else 20454
    label = FileLocator.of(ref).partition_label(
        encode_row([day, 3], [each.type for each in ref.schema.partition_fields])
    )
    assert label == f"d={'__DEFAULT_PARTITION__' if value is None else '2026-01-01'}/h=3"
    for spec in (parse_partition(label), {"d": value, "h": "3"}):
        assert covered(ref, scope_of_specs(ref, [spec]), (20454, 3), (20455, 3), (None, 3)) == [(day, 3)]


def test_names_of_partitions_have_instants_in_utc_and_conditions_need_a_zone() -> None:
    ref = table("t TIMESTAMP_LTZ(3)", "t")
    second = (10**9,)
    for text in ("1970-01-01T00:00:01", "1970-01-01 01:00:01+01:00"):
        assert covered(ref, scope_of_specs(ref, [{"t": text}]), second, (0,)) == [second]
    with pytest.raises(InvalidOptionError, match="a time with a zone"):
        scope_of_specs(ref, [{"t": dt.datetime(1970, 1, 1)}])  # noqa: DTZ001 - which is refused
    with pytest.raises(InvalidOptionError, match="a time with a zone"):
        scope_of_filter(ref, "t = TIMESTAMP '1970-01-01 00:00:01'", "replaceWhere")
    with pytest.raises(InvalidOptionError, match="'t' = 'monday'"):
        scope_of_specs(ref, [{"t": "monday"}])


@pytest.mark.parametrize("column", ["FLOAT", "DOUBLE"])
@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.0, "0.0"), (-0.0, "-0.0"), ("0.0", "0.0"), ("-0.0", "-0.0"), (0, "0.0"), (Decimal("-0.0"), "-0.0")],
)
def test_the_zeros_of_numbers_are_two_partitions(column: str, value: object, expected: str) -> None:
    ref = table(f"p {column}", "p")
    scope = scope_of_specs(ref, [{"p": value}])
    assert repr(covered(ref, scope, (0.0,), (-0.0,), (1.0,), (None,))) == f"[({expected},)]"
    types = [field.type for field in ref.schema.partition_fields]
    assert partition_of_spec(ref, {"p": value}) == encode_row([float(expected)], types)
    by_text = scope_of_filter(ref, format_filter(filter_of_specs(ref, [{"p": value}])), "o")
    assert repr(covered(ref, by_text, (0.0,), (-0.0,), (1.0,), (None,))) == f"[({expected},)]"
    assert covered(ref, scope_of_filter(ref, "p = 0", "o"), (0.0,), (-0.0,)) == [(0.0,), (-0.0,)]
