"""Python values become values of columns exactly, or are refused with the reason."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from penstock.datafile.python_values import TAKES, python_array
from penstock.errors import SchemaMismatchError
from penstock.format.types.data_types import DataField
from penstock.format.types.text import parse_sql_type
from penstock.predicate.tree import TimestampLiteral

NOON = dt.datetime.fromisoformat("2026-01-31T12:00:00.123456")


def stored(kind: str, *values: object) -> list[object]:
    field = DataField(id=0, name="c", type=parse_sql_type(kind))
    array = python_array(values, field, "db.t")
    array.validate(full=True)
    return list(array.to_pylist())


TAKEN = [
    ("BIGINT", np.int8(5), 5),
    ("INT", 5.0, 5),
    ("INT", pa.scalar(5), 5),
    ("INT", pd.NA, None),
    ("TIMESTAMP(6)", pd.NaT, None),
    ("TIMESTAMP(6)", np.datetime64("NaT", "us"), None),
    ("TIMESTAMP(6)", np.datetime64("2026-01-31T12:00:00.123456"), NOON),
    ("TIMESTAMP(6)", np.datetime64("2026-01-31T12:00:00.123456000"), NOON),
    ("TIMESTAMP(6)", pd.Timestamp(NOON), NOON),
    (
        "TIMESTAMP(3)",
        TimestampLiteral(nanos=10**6, has_zone=False),
        dt.datetime.fromisoformat("1970-01-01T00:00:00.001"),
    ),
    ("DATE", np.datetime64("2026-01-31"), dt.date(2026, 1, 31)),
    ("DOUBLE", Decimal("1e300"), 1e300),
    ("DOUBLE", np.float32(0.5), 0.5),
    ("DECIMAL(5, 2)", 9.99, Decimal("9.99")),
    ("BYTES", bytearray(b"a"), b"a"),
    ("BYTES", memoryview(b"a"), b"a"),
    ("ARRAY<INT>", (1, 2), [1, 2]),
    ("ARRAY<FLOAT>", np.array([0.5, 1.5], np.float32), [0.5, 1.5]),
    ("ARRAY<ARRAY<INT>>", np.array([[1], [2]]), [[1], [2]]),
    ("VECTOR<INT, 2>", [1, 2], [1, 2]),
    ("MAP<STRING, INT>", {"a": 1}, [("a", 1)]),
    ("MAP<STRING, INT>", [("a", 1), ("b", None)], [("a", 1), ("b", None)]),
    ("ROW<a INT, b STRING>", {"b": "x"}, {"a": None, "b": "x"}),
    ("VARIANT", {"value": b"\x00", "metadata": b"\x01"}, {"value": b"\x00", "metadata": b"\x01"}),
]


@pytest.mark.parametrize(("kind", "value", "expected"), TAKEN, ids=str)
def test_a_value_that_the_column_has_is_stored_as_it_is(kind: str, value: object, expected: object) -> None:
    assert stored(kind, None, value) == [None, expected]


REFUSED = [
    ("BOOLEAN", 1, "takes True or False"),
    ("INT", True, "takes a number, not True"),
    ("INT", "1", "takes a number, not '1'"),
    ("INT", np.array([5]), "takes a number"),
    ("BIGINT", 2.0**53, "stands for several whole numbers"),
    ("BIGINT", Decimal("1e999999999"), "BIGINT, which has no value"),
    ("DECIMAL(5, 2)", Decimal("1e-999999999"), "DECIMAL"),
    ("DECIMAL(5, 2)", Decimal("NaN"), "takes a number"),
    ("FLOAT", 1e300, "FLOAT, which has no value 1e"),
    ("FLOAT", 16777217, "FLOAT, which has no value 16777217"),
    ("DOUBLE", 2**53 + 1, "DOUBLE, which has no value 9007199254740993"),
    ("STRING", 1, "takes a text of Unicode characters, not 1"),
    ("STRING", b"a", "takes a text"),
    ("STRING", "\ud800", "takes a text of Unicode"),
    ("BYTES", "a", "takes bytes"),
    ("DATE", NOON, "takes a date"),
    ("DATE", 5, "takes a date"),
    ("TIME(3)", 5, "takes a time of day"),
    ("TIME(3)", dt.time(0, 0, 0, 1), "TIME\\(3\\), which has no value"),
    ("TIME(3)", dt.time(0, tzinfo=dt.UTC), "without a zone"),
    ("TIMESTAMP(3)", NOON, "TIMESTAMP\\(3\\), which has no value"),
    ("TIMESTAMP(6)", NOON.replace(tzinfo=dt.UTC), "a datetime without a zone"),
    ("TIMESTAMP(6)", dt.date(2026, 1, 31), "a datetime without a zone"),
    ("TIMESTAMP_LTZ(6)", NOON, "a datetime with a zone"),
    ("TIMESTAMP(9)", dt.datetime.fromisoformat("9999-01-01"), "TIMESTAMP\\(9\\), which has no value"),
    ("ARRAY<STRING>", "abc", "takes a list, not 'abc'"),
    ("ARRAY<INT>", {1, 2}, "takes a list"),
    ("ARRAY<INT>", [1, 2.5], "element' is INT, which has no value 2.5"),
    ("VECTOR<INT, 2>", [1], "takes 2 elements"),
    ("MAP<STRING, INT>", [["a", 1]], "a dict, or a list of pairs"),
    ("MAP<STRING, INT>", {None: 1}, "keys that are not NULL"),
    ("MAP<STRING, INT>", {"a": "b"}, "value' takes a number"),
    ("ROW<a INT>", {"b": 1}, "has the fields a, and no 'b'"),
    ("ROW<a INT>", (1,), "a dict with the keys a"),
    ("ARRAY<ROW<a INT>>", [{"a": 1, "A": 2}], "element' has the fields a, and no 'A'"),
]


@pytest.mark.parametrize(("kind", "value", "says"), REFUSED, ids=str)
def test_other_values_are_refused_with_their_row(kind: str, value: object, says: str) -> None:
    with pytest.raises(SchemaMismatchError, match=rf"table db\.t: row 1 \(counted from 0\): column 'c.*{says}"):
        stored(kind, None, value)


def test_the_documentation_says_what_each_type_takes() -> None:
    text = Path("docs/types.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([A-Z, _]+) \| (.+?) \|", text.split("## What a column takes")[1], re.MULTILINE))
    documented = {root: kinds for roots, kinds in rows.items() for root in roots.split(", ")}
    for root, (kinds, _) in TAKES.items():
        names = [kind.__name__ for kind in kinds if kind is not TimestampLiteral]
        assert documented[root] == ", ".join(f"`{name}`" for name in names)


@pytest.mark.parametrize(("kind", "value"), [("TINYINT", 300), ("DECIMAL(3, 2)", Decimal(10))])
def test_a_number_out_of_range_needs_another_type(kind: str, value: object) -> None:
    with pytest.raises(SchemaMismatchError, match=r"has no value .*: change the type"):
        stored(kind, value)
