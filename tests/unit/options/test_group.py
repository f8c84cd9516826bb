"""Texts of option values are read as Paimon reads them."""

from enum import StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InvalidOptionError
from penstock.options.group import (
    MAX_INT,
    MAX_LONG,
    ValueKind,
    at_least,
    choice,
    format_bytes,
    format_duration_ms,
    parse_bool,
    parse_bytes,
    parse_duration_ms,
    parse_float,
    parse_int,
    parse_long,
    parse_lower,
    parse_names,
)


class Colour(StrEnum):
    RED = "red"
    DARK_BLUE = "dark-Blue"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("1024", 1024),
        ("7 b", 7),
        ("7bytes", 7),
        ("2k", 2048),
        ("64kb", 65536),
        ("64 KB", 65536),
        ("1 kibibytes", 1024),
        ("128 mb", 128 * 1024**2),
        ("  8  Mb ", 8 * 1024**2),
        ("3m", 3 * 1024**2),
        ("2 g", 2 * 1024**3),
        ("2gb", 2 * 1024**3),
        ("1 t", 1024**4),
        ("1 TB", 1024**4),
        ("9223372036854775807", MAX_LONG),
    ],
)
def test_sizes(text: str, value: int) -> None:
    assert parse_bytes(text) == value


@pytest.mark.parametrize(
    "text", ["", " ", "big", "mb", "-1", "1.5 gb", "1 pb", "1 m b", "9223372036854775808", "9 mb!"]
)
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"expected a size such as '128 mb'"):
        parse_bytes(text)


def test_a_size_that_overflows_is_refused() -> None:
    assert parse_bytes("8388607 tb") == 8388607 * 1024**4
    with pytest.raises(InvalidOptionError):
        parse_bytes("8388608 tb")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("500", 500),
        ("10 s", 10_000),
        ("10S", 10_000),
        ("1 sec", 1_000),
        ("2 seconds", 2_000),
        ("1 h", 3_600_000),
        ("2hours", 7_200_000),
        ("2 d", 172_800_000),
        ("1 day", 86_400_000),
        ("5 min", 300_000),
        ("5m", 300_000),
        ("3 minutes", 180_000),
        ("10 ms", 10),
        ("10 millis", 10),
        ("1500 µs", 1),
        ("1500 μs", 1),
        ("1999999 ns", 1),
        ("999 nanos", 0),
    ],
)
def test_durations(text: str, value: int) -> None:
    assert parse_duration_ms(text) == value


@pytest.mark.parametrize("text", ["", "soon", "s", "-1 s", "1.5 s", "1 week", "PT10S", "1 h 5 min", "10 M s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"expected a duration such as '10 s'"):
        parse_duration_ms(text)


@pytest.mark.parametrize(("text", "value"), [("true", True), ("TRUE", True), ("False", False)])
def test_booleans(text: str, *, value: bool) -> None:
    assert parse_bool(text) is value


@pytest.mark.parametrize("text", ["", "yes", "1", " true"])
def test_what_is_no_boolean_is_refused(text: str) -> None:
    with pytest.raises(InvalidOptionError, match="expected true or false"):
        parse_bool(text)


@pytest.mark.parametrize(("text", "value"), [("8", 8), ("-1", -1), ("+3", 3), ("007", 7), (str(MAX_INT), MAX_INT)])
def test_whole_numbers(text: str, value: int) -> None:
    assert parse_int(text) == value


@pytest.mark.parametrize("text", ["", "1_000", " 8", "8.0", "٣", "0x8", "2147483648", "-2147483649"])
def test_what_is_no_whole_number_is_refused(text: str) -> None:
    with pytest.raises(InvalidOptionError, match="expected a whole number"):
        parse_int(text)


def test_long_numbers_have_64_bits() -> None:
    assert parse_long("-9223372036854775808") == -(2**63)
    with pytest.raises(InvalidOptionError):
        parse_long("9223372036854775808")


@pytest.mark.parametrize(("text", "value"), [("0.7", 0.7), ("1", 1.0), (".5", 0.5), ("1e-3", 0.001)])
def test_numbers(text: str, value: float) -> None:
    assert parse_float(text) == value


@pytest.mark.parametrize("text", ["", "nan", "inf", "0,7", "1_0.0"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"a number such as '0\.7'"):
        parse_float(text)


def test_choices_are_matched_in_any_case() -> None:
    colour = choice(Colour, {"navy": Colour.DARK_BLUE})
    assert colour("RED") is Colour.RED
    assert colour("dark-blue") is Colour.DARK_BLUE
    assert colour("Navy") is Colour.DARK_BLUE
    assert colour.encode(Colour.DARK_BLUE) == "dark-Blue"
    with pytest.raises(InvalidOptionError, match="'green': expected one of red, dark-Blue"):
        colour("green")


def test_a_lower_bound_is_named_in_the_unit_of_the_value() -> None:
    assert at_least(1024, parse_bytes)("1 kb") == 1024
    with pytest.raises(InvalidOptionError, match="expected 1 kb or more"):
        at_least(1024, parse_bytes)("1023")
    with pytest.raises(InvalidOptionError, match="expected a whole number"):
        at_least(1, parse_int)("x")


def test_names_keep_their_blanks() -> None:
    assert parse_names("a, b,c") == ("a", " b", "c")
    assert parse_names("") == ()
    assert parse_lower(" ZSTD ") == "zstd"


@given(value=st.integers(0, MAX_LONG - 1))
def test_sizes_and_durations_are_read_as_they_are_written(value: int) -> None:
    kinds: list[ValueKind[int]] = [parse_bytes, parse_duration_ms]
    assert [kind(kind.encode(value)) for kind in kinds] == [value, value]


def test_values_are_written_in_the_largest_unit_that_fits() -> None:
    assert [format_bytes(value) for value in (0, 1023, 1024, 1536, 256 * 1024**2, MAX_LONG)] == [
        "0 b",
        "1023 b",
        "1 kb",
        "1536 b",
        "256 mb",
        "unlimited",
    ]
    assert [format_duration_ms(value) for value in (0, 10, 1_500, 10_000, 3_600_000)] == [
        "0 ms",
        "10 ms",
        "1500 ms",
        "10 s",
        "1 h",
    ]
