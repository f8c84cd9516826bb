"""Directory names: laws that hold for every value, beside the names that Java gave (tests/golden)."""

import math
import re
from datetime import date, timedelta
from decimal import Decimal
from urllib.parse import unquote

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.format.layout import FileFormat, TableLayout, data_file_name, format_of, schema_id_of, snapshot_id_of
from penstock.format.text.java_floats import format_double, format_float
from penstock.format.text.java_times import (
    civil_date,
    format_date,
    format_iso_timestamp,
    format_time,
    format_timestamp,
)
from penstock.format.text.partitions import escape_path_name, partition_dir
from penstock.format.types.data_types import STRING, DataField, decimal_type

NANOS_OF_YEARS_1_TO_9999 = st.integers(-62_135_596_800 * 10**9, 253_402_300_800 * 10**9 - 1)
LONGS = st.integers(-(2**63) + 1, 2**63 - 1)


@given(st.text(min_size=1))
def test_escaped_names_stay_one_component_and_can_be_undone(name: str) -> None:
    escaped = escape_path_name(name)
    assert not set(escaped) & set("/=:\\?*\"'#[]{}^\x00\n\x7f")
    assert unquote(escaped, errors="strict") == name


@given(st.lists(st.tuples(st.text(min_size=1), st.none() | st.text()), max_size=4))
def test_partition_directory_has_one_component_a_column(columns: list[tuple[str, str | None]]) -> None:
    fields = [DataField(id=place, name=name, type=STRING) for place, (name, _) in enumerate(columns)]
    path = partition_dir(fields, [value for _, value in columns])
    components = path.split("/") if path else []
    assert len(components) == len(columns)
    for component, (name, value) in zip(components, columns, strict=True):
        key, _, text = component.partition("=")
        assert unquote(key) == name
        assert unquote(text) == value or (text == "__DEFAULT_PARTITION__" and not (value or "").strip())


@given(st.floats(allow_nan=False))
def test_double_text_reads_back(value: float) -> None:
    text = format_double(value)
    assert float(text) == value
    assert math.copysign(1, float(text)) == math.copysign(1, value)
    if math.isfinite(value):
        assert_shape_is_javas(text)


@given(st.floats(allow_nan=False, width=32))
def test_float_text_reads_back(value: float) -> None:
    text = format_float(value)
    with np.errstate(over="ignore"):
        assert np.float32(text) == np.float32(value)
    if math.isfinite(value):
        assert_shape_is_javas(text)


def assert_shape_is_javas(text: str) -> None:
    assert re.fullmatch(r"-?\d+\.\d+|-?[1-9]\.\d+E-?[1-9]\d*", text)
    assert "E" in text or 1e-3 <= abs(float(text)) < 1e7 or float(text) == 0
    assert re.search(r"\.(\d|\d*[1-9])(E|$)", text), "zeros at the end"


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**28), max_value=10**28, places=10))
def test_decimal_text_has_every_digit_of_the_scale(value: Decimal) -> None:
    text = partition_dir((DataField(id=0, name="p", type=decimal_type(38, 10)),), (value,)).removeprefix("p=")
    assert Decimal(text) == value
    assert len(text.partition(".")[2]) == 10
    assert not re.fullmatch(r"-[0.]+", text)


@given(st.dates())
def test_date_agrees_with_the_calendar(day: date) -> None:
    epoch_day = (day - date(1970, 1, 1)).days
    assert civil_date(epoch_day) == (day.year, day.month, day.day)
    assert format_date(epoch_day) == day.isoformat()


@given(st.integers(-(2**31), 2**31 - 2))
def test_dates_of_any_year_follow_each_other(epoch_day: int) -> None:
    year, month, day = civil_date(epoch_day)
    following = civil_date(epoch_day + 1)
    assert following in {(year, month, day + 1), (year, month + 1, 1), (year + 1, 1, 1)}
    # The calendar repeats every 400 years.
    assert civil_date(epoch_day + 146_097) == (year + 400, month, day)


@given(st.integers(0, 86_399_999), st.integers(0, 9))
def test_time_text_drops_digits_only_behind_its_precision(milli_of_day: int, precision: int) -> None:
    clock, _, fraction = format_time(milli_of_day, precision).partition(".")
    hour, minute, second = map(int, clock.split(":"))
    kept = 10 ** (3 - min(precision, 3))
    millis = int(fraction.ljust(3, "0")) if fraction else 0
    assert ((hour * 60 + minute) * 60 + second) * 1000 + millis == milli_of_day - milli_of_day % kept
    assert bool(fraction) == (precision > 0)
    assert len(fraction) <= precision


@given(NANOS_OF_YEARS_1_TO_9999 | LONGS, st.integers(0, 9))
def test_timestamp_text_is_the_instant_with_at_least_its_precision(nanos: int, precision: int) -> None:
    text = format_timestamp(nanos, precision)
    _, _, fraction = text.partition(".")
    assert len(fraction) >= precision
    assert len(fraction) == precision or not fraction.endswith("0")
    if -(2**63) < nanos < 2**63:
        assert np.datetime64(text.replace(" ", "T"), "ns").astype(np.int64) == nanos


@given(NANOS_OF_YEARS_1_TO_9999 | LONGS)
def test_iso_timestamp_is_the_instant_in_groups_of_three_digits(nanos: int) -> None:
    text = format_iso_timestamp(nanos)
    clock, _, fraction = text.partition("T")[2].partition(".")
    assert len(fraction) in {0, 3, 6, 9}
    assert (clock.count(":") == 1) == (nanos % (60 * 10**9) == 0)
    assert not fraction.endswith("000")
    if -(2**63) < nanos < 2**63:
        assert np.datetime64(text, "ns").astype(np.int64) == nanos
    assert text.startswith((date(1970, 1, 1) + timedelta(seconds=nanos // 10**9)).isoformat())


@given(st.integers(0, 2**63 - 1))
def test_names_of_numbered_files_give_the_number_back(number: int) -> None:
    assert snapshot_id_of(TableLayout("/t").snapshot_path(number).rpartition("/")[2]) == number
    assert schema_id_of(TableLayout("/t").schema_path(number).rpartition("/")[2]) == number


@given(st.text(), st.uuids(), st.integers(0, 10**6), st.sampled_from(FileFormat), st.none() | st.just("zst"))
def test_any_prefix_leaves_the_format_readable(
    prefix: str, uuid: object, number: int, file_format: FileFormat, suffix: str | None
) -> None:
    assert format_of(data_file_name(prefix, str(uuid), number, file_format, suffix)) is file_format
