"""Column types with edge values, and literals near these values."""

from __future__ import annotations

import datetime as dt
import math
import struct
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import pyarrow as pa

_EPOCH_DAY: Final = dt.date(1970, 1, 1).toordinal()
_DAYS: Final = (
    "0001-01-01",
    "1000-01-01",
    "1582-10-04",
    "1582-10-10",
    "1582-10-15",
    "1969-12-31",
    "2024-02-29",
    "9999-12-31",
)
_DAY_MICROS: Final = 86_400 * 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A column type for the fuzzer.

    Attributes:
        sql: type as in DDL.
        arrow: Arrow type of the values.
        values: values to choose from, besides null; dates are days, times milliseconds, timestamps microseconds.
        literals: SQL literals with their values; empty for types without comparison.
        wider: SQL types that the column may be widened to.
        too_long: values that must be refused.
    """

    sql: str
    arrow: Any
    values: tuple[Any, ...]
    literals: tuple[tuple[str, Any], ...] = ()
    wider: tuple[str, ...] = ()
    too_long: tuple[Any, ...] = field(default=())

    @property
    def is_float(self) -> bool:
        """Whether values may be NaN."""
        return self.sql in {"FLOAT", "DOUBLE"}


def single(number: float) -> float:
    """Round to the nearest FLOAT."""
    return float(struct.unpack("<f", struct.pack("<f", number))[0])


def _days(text: str) -> int:
    return dt.date.fromisoformat(text).toordinal() - _EPOCH_DAY


def _whole(sql: str, bits: int, wider: tuple[str, ...]) -> Kind:
    values = (0, 1, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)))
    literals = (*values, 2**63, 1000, Fraction(5, 2))
    return Kind(
        sql=sql,
        arrow=getattr(pa, f"int{bits}")(),
        values=values,
        literals=tuple((str(float(value)) if isinstance(value, Fraction) else str(value), value) for value in literals),
        wider=wider,
    )


def _texts(sql: str, *, is_bytes: bool = False) -> Kind:
    texts: tuple[str, ...] = (
        "",
        " ",
        "a",
        "ab ",
        "äöü",
        "a'b",
        "a%b",
        "a_b",
        "a\\b",
        "a/b=%2F",
        "..",
        "null",
        "a\tb\n",
        "zz",
    )
    # UTF-8 and UTF-16 sort the last two differently.
    texts = (*texts, "__DEFAULT_PARTITION__", "\uff5e", "\U0001f600")
    if is_bytes:
        raw = (b"", b"\x00", b"\xff\xfe", b"ab")
        return Kind(sql=sql, arrow=pa.binary(), values=raw, literals=tuple((f"X'{each.hex()}'", each) for each in raw))
    literals = tuple(("'" + text.replace("'", "''") + "'", text) for text in texts)
    return Kind(sql=sql, arrow=pa.string(), values=texts, literals=literals)


def _moments(sql: str, zone: str | None) -> Kind:
    shift_micros = 5_400_000_000 if "(0)" in sql else 5_400_001_000
    micros = tuple(_days(text) * _DAY_MICROS + shift for text in _DAYS for shift in (0, shift_micros))
    literals = []
    for value in micros:
        moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=value)
        literals.append((f"TIMESTAMP '{moment.replace(tzinfo=None).isoformat(sep=' ')}{'Z' if zone else ''}'", value))
    return Kind(sql=sql, arrow=pa.timestamp("us", zone), values=micros, literals=tuple(literals))


CLOCK: Final = {"00:00:00": 0, "00:00:01": 1000, "01:30:00.001": 5_400_001, "23:59:59.999": 86_399_999}
_NUMBERS: Final = (0.0, -0.0, 1.0, -0.5, 16777216.0, math.inf, -math.inf, math.nan)
_NUMBER_LITERALS: Final = (
    *((str(number), Fraction(number)) for number in (0, 1, 5, -1, 16777216, 16777217)),
    ("1e39", Fraction(10**39)),
    ("-1e39", Fraction(-(10**39))),
)
_NINES: Final = Decimal("9" * 28)
KINDS: Final = (
    _whole("TINYINT", 8, ("INT",)),
    _whole("SMALLINT", 16, ("INT", "BIGINT")),
    _whole("INT", 32, ("BIGINT",)),
    _whole("BIGINT", 64, ()),
    Kind(
        sql="FLOAT",
        arrow=pa.float32(),
        values=(*_NUMBERS, single(0.1)),
        literals=(*_NUMBER_LITERALS, ("0.1", Fraction(single(0.1)))),
        wider=("DOUBLE",),
    ),
    Kind(
        sql="DOUBLE",
        arrow=pa.float64(),
        values=(*_NUMBERS, 0.1, 1.7e308),
        literals=(*_NUMBER_LITERALS, ("0.1", Fraction(0.1)), ("1e400", Fraction(10**400))),
    ),
    Kind(
        sql="DECIMAL(38, 10)",
        arrow=pa.decimal128(38, 10),
        values=(Decimal(0), Decimal("-0.0000000001"), Decimal("1.5"), _NINES, -_NINES),
        literals=(("0", Decimal(0)), ("1.5", Decimal("1.5")), ("9" * 28 + ".5", Decimal("9" * 28 + ".5"))),
    ),
    Kind(
        sql="DECIMAL(9, 2)",
        arrow=pa.decimal128(9, 2),
        values=(Decimal("0.00"), Decimal("-0.01"), Decimal("1.50"), Decimal("9999999.99")),
        literals=(("0", Decimal(0)), ("1.5", Decimal("1.5")), ("-0.01", Decimal("-0.01")), ("1.005", Decimal("1.005"))),
    ),
    _texts("STRING"),
    Kind(
        sql="VARCHAR(3)",
        arrow=pa.string(),
        values=("", "a", "äöü", "abc"),
        literals=(("'abc'", "abc"), ("'b'", "b")),
        wider=("VARCHAR(5)",),
        too_long=("abcdefgh", "äöüß"),
    ),
    # Spark's catalog pads shorter values.
    Kind(sql="CHAR(3)", arrow=pa.string(), values=("abc", "a b", "äöü"), literals=(("'abc'", "abc"), ("'abd'", "abd"))),
    Kind(sql="VARBINARY(2)", arrow=pa.binary(), values=(b"", b"ab"), wider=("VARBINARY(3)",), too_long=(b"abcdef",)),
    _texts("BYTES", is_bytes=True),
    Kind(
        sql="DATE",
        arrow=pa.date32(),
        values=tuple(map(_days, _DAYS)),
        literals=tuple((f"DATE '{text}'", _days(text)) for text in (*_DAYS, "1582-10-09")),
    ),
    *(_moments(f"TIMESTAMP({precision})", None) for precision in (6, 3, 0)),
    *(_moments(f"TIMESTAMP_LTZ({precision})", "UTC") for precision in (6, 3)),
    Kind(
        sql="TIME(3)",
        arrow=pa.time32("ms"),
        values=tuple(CLOCK.values()),
        literals=tuple((f"TIME '{text}'", millis) for text, millis in CLOCK.items()),
    ),
    Kind(sql="BOOLEAN", arrow=pa.bool_(), values=(True, False), literals=(("TRUE", True), ("FALSE", False))),
    Kind(sql="ARRAY<INT>", arrow=pa.list_(pa.int32()), values=([], [1, None], [2**31 - 1])),
    Kind(
        sql="MAP<STRING, DOUBLE>", arrow=pa.map_(pa.string(), pa.float64()), values=([], [("", math.nan), ("a", None)])
    ),
    Kind(
        sql="ROW<x DATE, y FLOAT>",
        arrow=pa.struct([("x", pa.date32()), ("y", pa.float32())]),
        values=(
            {"x": _days("1000-01-01"), "y": math.nan},
            {"x": None, "y": -0.0},
            {"x": _days("2024-02-29"), "y": None},
        ),
    ),
)
LARGEST: Final = {"BIGINT": 2**62 + 1, "INT": 2**31 - 1, "DOUBLE": 0.1}
"""Values of wider types that do not fit the narrower types."""

PLAIN_NAMES: Final = ("a", "B_2", "_c", "SELECT", "n" * 60, "x1", "y1", "z1")
"""Column names that Avro allows."""

NAMES: Final = ("a", "x y", "a.b", "a`b", "é", "q'q", 'd"d', "#h", "a,b", "a:b", "SELECT", "n" * 60)


def arrow_of(sql: str) -> Any:
    """Return the Arrow type of a column, also of a widened one."""
    known = {kind.sql: kind.arrow for kind in KINDS}
    return known[sql] if sql in known else next(kind for name, kind in known.items() if _family(name) == _family(sql))


def _family(sql: str) -> str:
    return sql.partition("(")[0]
