"""What is printed, parsed back: JSON and CSV lose nothing, tables show everything."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pytest

from penstock import Table, UnsupportedFeatureError
from penstock.api.exchange.json_files import from_json, read_lines, reading_type

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Command

GOLDEN: Final = Path(__file__).parents[3] / "golden" / "data" / "warehouse"
TABLES: Final = sorted(schema.parent.parent for schema in GOLDEN.glob("*.db/*/schema/schema-0"))
EVERYTHING: Final = """
    c_boolean BOOLEAN, c_tiny TINYINT, c_small SMALLINT, c_int INT, c_big BIGINT, c_float FLOAT, c_double DOUBLE,
    c_decimal DECIMAL(38, 10), c_char CHAR(3), c_string STRING, c_bytes BYTES, c_date DATE, c_time TIME(3),
    c_ts0 TIMESTAMP(0), c_ts3 TIMESTAMP(3), c_ts6 TIMESTAMP(6), c_ts9 TIMESTAMP(9), c_ltz TIMESTAMP_LTZ(6),
    c_array ARRAY<TIMESTAMP(6)>, c_map MAP<STRING, DATE>, c_row ROW<a INT, b BYTES, c ARRAY<DECIMAL(4, 1)>>,
    `wide ✓ name` STRING
"""
NOON: Final = dt.datetime(2026, 1, 2, 12, 30, 15, 123456)  # noqa: DTZ001 - TIMESTAMP has no zone
ROW: Final = {
    "c_boolean": True,
    "c_tiny": -128,
    "c_small": 32_767,
    "c_int": -(2**31),
    "c_big": 2**63 - 1,
    "c_float": 0.1,
    "c_double": 1e-300,
    "c_decimal": Decimal("-1234567890123456789012345678.0123456789"),
    "c_char": "abc",
    "c_string": 'a "quoted", line\nbreak\tand 日本語 🚰',
    "c_bytes": b"\x00\xff",
    "c_date": dt.date(1969, 12, 31),
    "c_time": dt.time(23, 59, 59, 999_000),
    "c_ts0": NOON.replace(microsecond=0),
    "c_ts3": NOON.replace(microsecond=123_000),
    "c_ts6": NOON,
    "c_ts9": NOON,
    "c_ltz": NOON.replace(tzinfo=dt.UTC),
    "c_array": [NOON, None],
    "c_map": [("k", dt.date(2026, 1, 1)), ("", None)],
    "c_row": {"a": 1, "b": b"x", "c": [Decimal("1.5")]},
    "wide ✓ name": "",
}


@pytest.fixture
def everything(penstock: Command) -> pa.Table:
    """Every type with a value at some edge, nulls, and empty containers; in ``shop.a``; ``shop.b`` is empty."""
    penstock("create", "shop.a", EVERYTHING)
    penstock("create", "shop.b", EVERYTHING)
    table = penstock.catalog.load_table("shop.a")
    empty = {**ROW, "c_array": [], "c_map": [], "c_bytes": b"", "c_string": ""}
    rows = pa.Table.from_pylist([ROW, dict.fromkeys(ROW), empty], schema=table.arrow_schema)
    table.append(rows)
    return rows


def test_json_is_one_array_that_json_lines_can_be_made_of(penstock: Command, everything: pa.Table) -> None:
    rows = penstock.rows("shop.a")

    assert len(rows) == 3
    assert rows[0]["c_decimal"] == "-1234567890123456789012345678.0123456789"
    assert rows[0]["c_ltz"] == "2026-01-02T12:30:15.123456Z"
    assert rows[0]["c_bytes"] == "0x00ff"
    assert rows[0]["c_float"] == 0.1
    assert rows[0]["c_map"] == [{"key": "k", "value": "2026-01-01"}, {"key": "", "value": None}]
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    penstock("append", "shop.b", "-", "--input-format", "json", input=lines)
    assert penstock.catalog.load_table("shop.b").to_arrow().equals(everything)


def test_csv_is_read_back_as_the_same_rows(penstock: Command, everything: pa.Table) -> None:
    text = penstock("read", "shop.a", "--format", "csv").stdout
    penstock("append", "shop.b", "-", "--input-format", "csv", input=text)
    assert penstock.catalog.load_table("shop.b").to_arrow().equals(everything)


@pytest.mark.usefixtures("everything")
def test_a_table_shows_every_value_on_lines_of_its_own(penstock: Command) -> None:
    lines = penstock("read", "shop.a").stdout.splitlines()
    assert len(lines) == 5
    for text in ("2026-01-02 12:30:15.123456Z", "0x00ff", r"line\nbreak\tand 日本語 🚰", "wide ✓ name", "0.1", "NULL"):
        assert text in "\n".join(lines)
    assert "…" not in "".join(lines)


def test_control_characters_do_not_reach_the_terminal(penstock: Command) -> None:
    penstock("create", "shop.t", "s STRING")
    penstock.catalog.load_table("shop.t").append(pa.table({"s": ["\x1b[31mred[bold]\x07"]}))
    output = penstock("read", "shop.t").stdout
    assert "\x1b" not in output
    assert r"\x1b[31mred[bold]\x07" in output


HOSTILE: Final = "\x1b]0;title\x07\x1b[31m\x9b2J\u202e"


@pytest.mark.parametrize("format", ["table", "json", "csv"])
def test_names_and_comments_of_others_act_on_no_terminal(penstock: Command, format: str) -> None:
    penstock("create", "shop.t", "s STRING", "--comment", HOSTILE, "-o", f"note={HOSTILE}")
    penstock("create", "shop.u", "s STRING, p STRING", "--partition-by", "p")
    penstock.catalog.load_table("shop.u").append(pa.table({"s": ["x"], "p": [HOSTILE]}))
    for args in (("show", "shop.t"), ("options", "shop.t"), ("schemas", "shop.t"), ("partitions", "shop.u")):
        output = penstock(*args, "--format", format)
        assert "title" in output.stdout
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(output.stdout + output.stderr)


def test_csv_of_rows_has_what_they_hold(penstock: Command) -> None:
    penstock("create", "shop.t", "s STRING")
    penstock.catalog.load_table("shop.t").append(pa.table({"s": [HOSTILE]}))
    assert HOSTILE in penstock("read", "shop.t", "--format", "csv").stdout
    assert penstock.rows("shop.t") == [{"s": HOSTILE}]
    assert "\x9b" not in penstock("read", "shop.t", "--format", "json").stdout


def test_messages_act_on_no_terminal(penstock: Command) -> None:
    penstock("create", "shop.t", "s STRING")
    for args in (
        ("read", f"shop.{HOSTILE}"),
        ("read", "shop.t", "--where", HOSTILE),
        ("sql", "-e", f"`{HOSTILE}`"),
    ):
        result = penstock(*args, code=2)
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(result.stderr)


def test_numbers_that_json_has_not_are_text(penstock: Command) -> None:
    penstock("create", "shop.t", "d DOUBLE")
    penstock("create", "shop.u", "d DOUBLE")
    penstock.catalog.load_table("shop.t").append(pa.table({"d": [math.nan, math.inf, -math.inf]}))
    assert [row["d"] for row in penstock.rows("shop.t")] == ["NaN", "Infinity", "-Infinity"]
    text = penstock("read", "shop.t", "--format", "csv").stdout
    penstock("append", "shop.u", "-", "--input-format", "csv", input=text)
    assert [str(row["d"]) for row in penstock.rows("shop.u")] == ["NaN", "Infinity", "-Infinity"]


def test_an_empty_result_keeps_its_shape_in_every_format(penstock: Command) -> None:
    penstock("create", "shop.t", "a INT, b STRING")
    assert penstock("read", "shop.t", "--format", "json").stdout == "[]\n"
    assert penstock("read", "shop.t", "--format", "csv").stdout == '"a","b"\n'
    assert penstock("read", "shop.t").stdout.split() == ["a", "b", "─────"]


def test_global_options_may_be_anywhere(penstock: Command) -> None:
    penstock("create", "shop.t", "a INT")
    expected = penstock("read", "shop.t", "--format", "json").stdout
    assert penstock("--format", "json", "read", "shop.t").stdout == expected
    assert penstock("read", "--format=json", "shop.t", "-w", penstock.warehouse).stdout == expected
    assert penstock("read", f"--warehouse={penstock.warehouse}", "--format", "json", "shop.t").stdout == expected


@pytest.mark.parametrize(
    "location",
    [
        # Every sixth table, and those that have columns of all types.
        pytest.param(each, id=each.name, marks=() if n % 6 == 0 or "types" in each.name else pytest.mark.slow)
        for n, each in enumerate(TABLES)
    ],
)
def test_tables_of_other_engines_print_what_to_arrow_reads(penstock: Command, location: Path) -> None:
    table = Table.at(str(location))
    try:
        rows = table.to_arrow()
    except UnsupportedFeatureError:
        penstock("read", str(location), code=10)
        return
    text = penstock("read", str(location), "--format", "json").stdout
    # Arrow reads these numbers when they are not quoted.
    text = text.replace('"NaN"', "NaN").replace('"Infinity"', "Infinity").replace('"-Infinity"', "-Infinity")

    printed = [json.dumps(row) for row in json.loads(text)]

    assert len(printed) == rows.num_rows
    if printed:
        schema = pa.schema([(field.name, reading_type(field.type)) for field in rows.schema])
        read = read_lines("\n".join(printed).encode(), schema).combine_chunks()
        for field in rows.schema:
            column = from_json(read.column(field.name).chunk(0), field.type)
            assert str(column) == str(rows.column(field.name).combine_chunks()), field.name
    penstock("fsck", str(location), "--all-snapshots")
    penstock("show", str(location))
    penstock("files", str(location))
