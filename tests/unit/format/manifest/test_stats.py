"""What statistics keep, how they cut long values, and how they are read back."""

from dataclasses import replace
from decimal import Decimal

import pytest

from penstock.errors import FormatError, InvalidOptionError
from penstock.format.manifest.entry import EMPTY_STATS, SimpleStats
from penstock.format.manifest.stats import (
    NO_STATS,
    ColumnStats,
    StatsKind,
    StatsMode,
    build_stats,
    choose_modes,
    decode_stats,
    partition_stats,
    truncate_stats,
)
from penstock.format.row.row import decode_row, encode_row
from penstock.format.types.data_types import (
    BIGINT,
    BYTES,
    DATE,
    DOUBLE,
    INT,
    STRING,
    ArrayType,
    DataField,
    DataType,
    decimal_type,
    timestamp_type,
)

COUNTS = StatsMode(kind=StatsKind.COUNTS)
FULL = StatsMode(kind=StatsKind.FULL)
FOUR = StatsMode(kind=StatsKind.TRUNCATE, length=4)

FIELDS = (
    DataField(id=0, name="id", type=BIGINT),
    DataField(id=1, name="name", type=STRING),
    DataField(id=2, name="tags", type=ArrayType(element=INT)),
)
COLUMNS = (
    ColumnStats(min=1, max=9, null_count=0),
    ColumnStats(min="alphabet", max="omega", null_count=2),
    None,
)


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("none", NO_STATS),
        ("Counts", COUNTS),
        (" FULL ", FULL),
        ("TRUNCATE(4)", FOUR),
        ("truncate(16)", StatsMode(kind=StatsKind.TRUNCATE, length=16)),
    ],
)
def test_modes_parse_in_any_case(text: str, mode: StatsMode) -> None:
    assert StatsMode.parse(text) == mode


@pytest.mark.parametrize("text", ["", "truncate", "truncate()", "truncate(0)", "truncate(-1)", "ful", "truncate(4) x"])
def test_other_modes_are_refused(text: str) -> None:
    with pytest.raises(InvalidOptionError, match="truncate"):
        StatsMode.parse(text)


def test_a_mode_of_its_own_wins_and_counts_among_the_first_columns() -> None:
    names = ["a", "b", "c", "d"]
    assert choose_modes(names, FULL) == (FULL,) * 4
    assert choose_modes(names, FULL, {"d": COUNTS, "a": NO_STATS}, 2) == (NO_STATS, FULL, NO_STATS, COUNTS)
    assert choose_modes(names, FULL, keep_first=0) == (NO_STATS,) * 4


def test_statistics_leave_out_columns_that_nothing_is_known_of() -> None:
    stats, cols = build_stats(FIELDS, COLUMNS, (FULL,) * 3, dense=True)
    assert cols == ("id", "name")
    assert decode_row(stats.min_values, (BIGINT, STRING)) == (1, "alphabet")
    assert decode_row(stats.max_values, (BIGINT, STRING)) == (9, "omega")
    assert stats.null_counts == (0, 2)


def test_without_the_dense_store_all_columns_are_listed() -> None:
    stats, cols = build_stats(FIELDS, COLUMNS, (FULL,) * 3, dense=False)
    assert cols is None
    types = [field.type for field in FIELDS]
    assert decode_row(stats.min_values, types) == (1, "alphabet", None)
    assert stats.null_counts == (0, 2, None)
    nothing, cols = build_stats(FIELDS, COLUMNS, (NO_STATS,) * 3, dense=False)
    assert cols is None
    assert nothing.null_counts == (None,) * 3
    assert nothing != EMPTY_STATS


def test_all_columns_covered_is_not_the_same_as_none() -> None:
    covered = build_stats(FIELDS[:2], COLUMNS[:2], (FULL, COUNTS), dense=True)
    assert covered[1] is None
    assert decode_row(covered[0].min_values, (BIGINT, STRING)) == (1, None)
    assert build_stats(FIELDS[:2], COLUMNS[:2], (NO_STATS,) * 2, dense=True) == (EMPTY_STATS, ())
    assert build_stats((), (), (), dense=True) == (EMPTY_STATS, ())


def test_each_mode_keeps_its_part() -> None:
    fields = tuple(DataField(id=i, name=str(i), type=STRING) for i in range(4))
    column = ColumnStats(min="abcdef", max="uvwxyz", null_count=3)
    modes = (FULL, FOUR, COUNTS, NO_STATS)
    stats, cols = build_stats(fields, (column,) * 4, modes, dense=True)
    view = decode_stats(stats, cols, fields)
    assert dict(view) == {
        "0": column,
        "1": ColumnStats(min="abcd", max="uvwy", null_count=3),
        "2": ColumnStats(null_count=3),
    }


def test_ranges_of_binaries_are_not_stored() -> None:
    # Readers before Java 2.0 compare bytes as signed numbers.
    fields = (DataField(id=0, name="b", type=BYTES),)
    stats, cols = build_stats(fields, (ColumnStats(min=b"a", max=b"b", null_count=1),), (FULL,), dense=True)
    assert dict(decode_stats(stats, cols, fields)) == {"b": ColumnStats(null_count=1)}
    assert partition_stats([encode_row((b"\x80",), (BYTES,))], (BYTES,)) == SimpleStats(
        min_values=encode_row((None,), (BYTES,)), max_values=encode_row((None,), (BYTES,)), null_counts=(0,)
    )


@pytest.mark.parametrize(
    ("low", "high", "length", "expected"),
    [
        ("name-1", "name-4-a-long-string-to-truncate", 16, ("name-1", "name-4-a-long-su")),
        ("abcd", "abcd", 4, ("abcd", "abcd")),
        ("abcde", "abcde", 4, ("abcd", "abce")),
        ("日本語文字", "日本語文字", 4, ("日本語文", "日本語斈")),
        ("a\U0010ffff\U0010ffffz", "a\U0010ffff\U0010ffffz", 3, ("a\U0010ffff\U0010ffff", "b")),
        ("\U0010ffff" * 3, "\U0010ffff" * 3, 2, (None, None)),
        ("\ud7ffx", "\ud7ffx", 1, ("\ud7ff", "\ue000")),
        ("", "é" * 4, 4, ("", "é" * 4)),
        (b"abcde", b"abcde", 4, (b"abcd", b"abce")),
        (b"a\xff\xff\xff", b"a\xff\xff\xff", 3, (b"a\xff\xff", b"b")),
        (b"\xff" * 3, b"\xff" * 3, 2, (None, None)),
        (b"ab", b"ab", 2, (b"ab", b"ab")),
        (10**9, 10**9, 1, (10**9, 10**9)),
        (Decimal("123.45"), Decimal("123.45"), 1, (Decimal("123.45"), Decimal("123.45"))),
        (None, None, 4, (None, None)),
    ],
)
def test_cut_ranges_still_hold_their_values(
    low: object, high: object, length: int, expected: tuple[object, object]
) -> None:
    cut = truncate_stats(ColumnStats(min=low, max=high, null_count=5), length)
    assert (cut.min, cut.max, cut.null_count) == (*expected, 5)


def test_reading_no_statistics_and_statistics_of_all_columns() -> None:
    stats, _ = build_stats(FIELDS[:2], COLUMNS[:2], (FULL,) * 2, dense=True)
    assert dict(decode_stats(stats, None, FIELDS[:2])) == {"id": COLUMNS[0], "name": COLUMNS[1]}
    assert dict(decode_stats(EMPTY_STATS, (), FIELDS)) == {}
    assert dict(decode_stats(EMPTY_STATS, None, FIELDS)) == {}


def test_reading_finds_columns_by_name_and_only_those_it_knows() -> None:
    stats, cols = build_stats(FIELDS, COLUMNS, (FULL,) * 3, dense=True)
    view = decode_stats(stats, cols, (FIELDS[1],))
    assert view["name"] == COLUMNS[1]
    assert (list(view), len(view)) == (["name"], 1)
    assert view.get("id") is None
    assert view.get("tags") is None


def test_missing_null_counts_are_unknown() -> None:
    stats, cols = build_stats(FIELDS, COLUMNS, (FULL,) * 3, dense=True)
    assert decode_stats(replace(stats, null_counts=()), cols, FIELDS)["id"] == ColumnStats(min=1, max=9)


def test_statistics_of_other_columns_are_refused() -> None:
    stats, cols = build_stats(FIELDS, COLUMNS, (FULL,) * 3, dense=True)
    with pytest.raises(FormatError, match=r"2 columns .* 3 columns \(id, name, tags\)"):
        decode_stats(stats, None, FIELDS)
    assert cols is not None
    with pytest.raises(FormatError, match="2 columns"):
        decode_stats(stats, cols[:1], FIELDS)


def test_a_damaged_column_reads_as_unknown_and_its_neighbours_as_they_are() -> None:
    fields = (FIELDS[0], DataField(id=1, name="s", type=STRING))
    columns = (COLUMNS[0], ColumnStats(min="long enough", max="long enough", null_count=1))
    stats, cols = build_stats(fields, columns, (FULL,) * 2, dense=True)
    cut = replace(stats, min_values=stats.min_values[:-16])
    assert dict(decode_stats(cut, cols, fields)) == {"id": COLUMNS[0], "s": ColumnStats(null_count=1)}


def partitions(values: list[object], data_type: DataType) -> list[bytes]:
    return [encode_row((value,), (data_type,)) for value in values]


@pytest.mark.parametrize(
    ("values", "data_type", "expected"),
    [
        ([10, 9, None, -1, None], INT, (-1, 10, 2)),
        (["b", "a" * 40, "", "b"], STRING, ("", "b", 0)),
        ([Decimal("10.00"), Decimal("9.50")], decimal_type(30, 2), (Decimal("9.50"), Decimal("10.00"), 0)),
        ([None, None], timestamp_type(6), (None, None, 2)),
        ([0.0, -0.0, 1.5], DOUBLE, (-0.0, 1.5, 0)),
        ([float("-inf"), 3.0], DOUBLE, (float("-inf"), 3.0, 0)),
        ([19723, 5], DATE, (5, 19723, 0)),
    ],
)
def test_partition_statistics_compare_by_type_and_count_nulls(
    values: list[object], data_type: DataType, expected: tuple[object, object, int]
) -> None:
    stats = partition_stats(partitions(values, data_type), (data_type,))
    low, high, nulls = expected
    assert stats.min_values == encode_row((low,), (data_type,))
    assert stats.max_values == encode_row((high,), (data_type,))
    assert stats.null_counts == (nulls,)


def test_nan_is_the_largest_partition() -> None:
    stats = partition_stats(partitions([float("nan"), 1.0, float("inf")], DOUBLE), (DOUBLE,))
    assert decode_row(stats.min_values, (DOUBLE,)) == (1.0,)
    assert stats.max_values == encode_row((float("nan"),), (DOUBLE,))


def test_partition_statistics_count_entries_not_partitions() -> None:
    types = (STRING, INT)
    rows = [("a", None)] * 3 + [("b", 1)]
    stats = partition_stats([encode_row(row, types) for row in rows], types)
    assert stats.null_counts == (0, 3)
    assert decode_row(stats.min_values, types) == ("a", 1)
    assert decode_row(stats.max_values, types) == ("b", 1)


def test_unpartitioned_tables_have_empty_partition_statistics() -> None:
    assert partition_stats([bytes(12)] * 3, ()) == EMPTY_STATS
