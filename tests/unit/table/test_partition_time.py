"""Which time the values of a partition stand for."""

from __future__ import annotations

from datetime import datetime

import pytest

from penstock.errors import InvalidOptionError
from penstock.format.types.ddl import parse_columns
from penstock.table.partition_time import partition_time_parser


def time_of(columns: str, *values: object, pattern: str | None = None, formatter: str | None = None) -> str | None:
    fields = parse_columns(columns)
    found = partition_time_parser(fields, pattern=pattern, formatter=formatter, table="db.t")(values)
    assert found is None or isinstance(found, datetime)
    return None if found is None else found.isoformat(sep=" ")


def test_the_first_column_is_a_day_or_a_moment() -> None:
    assert time_of("dt STRING", "2026-01-31") == "2026-01-31 00:00:00"
    assert time_of("dt STRING", "2026-1-3") == "2026-01-03 00:00:00"
    assert time_of("dt STRING, hr INT", "2026-01-31 4:05:06.5", 7) == "2026-01-31 04:05:06.500000"


def test_a_date_needs_no_text() -> None:
    assert time_of("dt DATE", 20_000) == "2024-10-04 00:00:00"


def test_a_pattern_takes_columns_by_their_longest_name() -> None:
    assert time_of("d STRING, dh INT", "2026-01-31", 7, pattern="$d $dh:00:00") == "2026-01-31 07:00:00"


def test_a_formatter_says_how_the_time_is_written() -> None:
    assert time_of("dt STRING", "20260131", formatter="yyyyMMdd") == "2026-01-31 00:00:00"
    assert time_of("dt INT", 2026013123, formatter="yyyyMMddHH") == "2026-01-31 23:00:00"
    assert time_of("dt STRING", "2026-01-31T05:06", formatter="yyyy-MM-dd'T'HH:mm") == "2026-01-31 05:06:00"


@pytest.mark.parametrize("value", [None, "", "today", "2026-13-01", "2026-01-31x", "__DEFAULT_PARTITION__", "20260131"])
def test_what_is_no_time_has_none(value: str | None) -> None:
    assert time_of("dt STRING", value) is None


def test_a_formatter_refuses_values_of_another_length() -> None:
    assert time_of("dt STRING", "2026131", formatter="yyyyMMdd") is None


def test_a_pattern_without_a_column_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match=r"names no partition column: take \$dt"):
        time_of("dt STRING", "x", pattern="$day")


@pytest.mark.parametrize("formatter", ["EEE", "yyyy-yyyy", "yyyy-MM-dd'T"])
def test_letters_that_are_not_known_are_refused(formatter: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"only y, M, d, H, m, s, S"):
        time_of("dt STRING", "x", formatter=formatter)
