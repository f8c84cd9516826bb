"""Column types with canonical values that sit at their edges, for tables that every engine has to read alike."""

from dataclasses import dataclass
from typing import Any, Final

import pytest


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A column type as SQL, as a schema file has it, and values of it in ascending order; null comes on top.

    Attributes:
        json_type: what the engines' own ``create`` takes.
        is_ordered: min and max mean something, so that filters can prune by them.
    """

    sql: str
    json_type: Any
    values: tuple[Any, ...]
    is_ordered: bool = True

    @property
    def name(self) -> str:
        """Name in a test's id."""
        return self.sql.replace(" ", "_")

    def values_in(self, file_format: str) -> tuple[Any, ...]:
        """Return the values that the format keeps in every engine.

        ORC holds a timestamp as seconds and nanoseconds apart, and the engines differ on them before 1970 (Java 1.4.2
        does not read its own back) and where int64 nanoseconds end.
        """
        if file_format == "orc" and "TIMESTAMP" in self.sql and self.is_ordered:
            return tuple(value for value in self.values if "1970" <= value < "2262")
        return self.values


def plain(sql: str, *values: Any) -> Case:
    """Return a case whose two type texts are one."""
    return Case(sql=sql, json_type=sql, values=values)


def times(sql: str, fraction: str, *, zone: str = "") -> Case:
    """Return a timestamp type with values from year 1 to 9999 at the fraction's precision."""
    digits = fraction.ljust(9, "0")
    texts = (
        "0001-01-01T00:00:00.000000000",
        f"1969-12-31T23:59:59.{digits}",
        "1970-01-01T00:00:00.000000000",
        f"2024-03-10T02:30:00.{digits}",
        f"9999-12-31T23:59:59.{digits}",
    )
    if len(fraction) > 6:  # int64 nanoseconds, in which Arrow hands these out, end in 1677 and 2262
        texts = texts[1:-1]
    return Case(sql=sql, json_type=sql, values=tuple(text + zone for text in texts))


def nested(sql: str, json_type: Any, *values: Any) -> Case:
    """Return a type without an order."""
    return Case(sql=sql, json_type=json_type, values=values, is_ordered=False)


def row_type(*fields: tuple[str, Any]) -> Any:
    """Return the JSON of a ROW."""
    return {"type": "ROW", "fields": [{"id": i, "name": name, "type": kind} for i, (name, kind) in enumerate(fields)]}


# Longer than the 16 characters that statistics keep, with a character of four bytes at the cut.
LONG: Final = "a" * 15 + "\U0001f600" + "z" * 9

SCALARS: Final = (
    plain("BOOLEAN", False, True),  # noqa: FBT003 - the values
    plain("TINYINT", -128, 0, 127),
    plain("SMALLINT", -32768, 0, 32767),
    plain("INT", -(2**31), 0, 2**31 - 1),
    plain("BIGINT", -(2**63), 0, 2**63 - 1),
    plain("FLOAT", "-Infinity", -1.5, 0.0, 3.4028234663852886e38, "Infinity"),
    plain("DOUBLE", -1.7976931348623157e308, 5e-324, 0.1, "Infinity"),
    plain("DECIMAL(5, 2)", "-999.99", "0.00", "999.99"),
    plain("DECIMAL(9, 0)", "-999999999", "1"),
    plain("DECIMAL(18, 4)", "-99999999999999.9999", "0.0001"),
    plain("DECIMAL(20, 3)", "-99999999999999999.999", "0.000", "12345678901234567.890"),
    plain("DECIMAL(38, 10)", "-9999999999999999999999999999.9999999999", "9999999999999999999999999999.9999999999"),
    plain("CHAR(4)", "abcd", "éàü☃"),
    plain("VARCHAR(30)", "", "a", LONG),
    plain("STRING", "", " ", LONG, LONG + "!", "é", "\U0010ffff"),
    plain("BINARY(3)", "0x000102", "0xfffefd"),
    plain("VARBINARY(20)", "0x", "0x00", "0x" + "ff" * 20),
    plain("BYTES", "0x", "0x" + "7f" * 40),
    plain("DATE", "0001-01-01", "1969-12-31", "1970-01-01", "9999-12-31"),
    plain("TIME(0)", "00:00:00.000", "23:59:59.000"),
    plain("TIME(3)", "00:00:00.001", "23:59:59.999"),
    times("TIMESTAMP(0)", ""),
    times("TIMESTAMP(3)", "999"),
    times("TIMESTAMP(6)", "999999"),
    times("TIMESTAMP(9)", "999999999"),
    times("TIMESTAMP(0) WITH LOCAL TIME ZONE", "", zone="Z"),
    times("TIMESTAMP(3) WITH LOCAL TIME ZONE", "999", zone="Z"),
    times("TIMESTAMP(6) WITH LOCAL TIME ZONE", "999999", zone="Z"),
    times("TIMESTAMP(9) WITH LOCAL TIME ZONE", "999999999", zone="Z"),
)

NESTED: Final = (
    nested("ARRAY<INT>", {"type": "ARRAY", "element": "INT"}, [], [1], [1, None, 3]),
    nested("ARRAY<STRING NOT NULL>", {"type": "ARRAY", "element": "STRING NOT NULL"}, ["", LONG]),
    nested(
        "ARRAY<TIMESTAMP(3)>", {"type": "ARRAY", "element": "TIMESTAMP(3)"}, ["2024-01-01T00:00:00.123000000", None]
    ),
    nested("MAP<STRING, INT>", {"type": "MAP", "key": "STRING", "value": "INT"}, [], [["a", 1], ["b", None]]),
    nested("MAP<INT, STRING>", {"type": "MAP", "key": "INT", "value": "STRING"}, [], [[1, "x"], [2, None]]),
    nested("MULTISET<STRING>", {"type": "MULTISET", "element": "STRING"}, [], [["a", 2], ["b", 1]]),
    nested("ROW<a INT, b STRING>", row_type(("a", "INT"), ("b", "STRING")), {"a": 1, "b": "x"}, {"a": None, "b": None}),
    nested(
        "ARRAY<ROW<a INT, b DECIMAL(20, 2)>>",
        {"type": "ARRAY", "element": row_type(("a", "INT"), ("b", "DECIMAL(20, 2)"))},
        [{"a": 1, "b": "1.25"}, None, {"a": None, "b": None}],
    ),
    nested(
        "MAP<STRING, ARRAY<ROW<a INT>>>",
        {"type": "MAP", "key": "STRING", "value": {"type": "ARRAY", "element": row_type(("a", "INT"))}},
        [["k", [{"a": 1}, {"a": 2}, {"a": 3}]]],
    ),
    nested(
        "ROW<r ROW<a INT, l ARRAY<INT>>, s STRING>",
        row_type(("r", row_type(("a", "INT"), ("l", {"type": "ARRAY", "element": "INT"}))), ("s", "STRING")),
        {"r": {"a": 1, "l": [1, 2, 3]}, "s": "x"},
        {"r": None, "s": "y"},
    ),
    # An int8 of 42 over an empty dictionary.
    nested("VARIANT", "VARIANT", {"value": "0x0c2a", "metadata": "0x010000"}),
)

CASES: Final = SCALARS + NESTED
FORMATS: Final = ("parquet", "orc", "avro")
# Refused when the table is created, by Java too.
UNSUPPORTED: Final = {
    ("TIMESTAMP(9)", "avro"),
    ("TIMESTAMP(9) WITH LOCAL TIME ZONE", "avro"),
    ("VARIANT", "orc"),
    ("VARIANT", "avro"),
}


def in_every_format(cases: tuple[Case, ...]) -> list[Any]:
    """Return the parameters ``case, file_format`` of a test, without what no engine supports."""
    return [
        pytest.param(case, file_format, id=f"{case.name}-{file_format}")
        for case in cases
        for file_format in FORMATS
        if (case.sql, file_format) not in UNSUPPORTED
    ]
