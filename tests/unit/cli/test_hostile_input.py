"""Input that is damaged or meant to do harm ends with a message and an exit code, never with a traceback."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock.cli.output.render import cells_of, csv_lines, json_objects
from penstock.errors import FormatError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Command

NINES = "9" * 5_000
DEEP = b"[" * 100_000


@pytest.fixture
def table(penstock: Command) -> Command:
    penstock("create", "shop.t", "id BIGINT, v STRING, a ARRAY<INT>")
    return penstock


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b'{"v": "\\ud800"}', "surrogate"),
        (b'{"v": "\xff"}', "can't decode byte 0xff"),
        (b'{"id": ' + NINES.encode() + b"}", "couldn't parse"),
        (b'{"a": ' + DEEP + b"}", "changed from number to array"),
        (b'{"zz": ' + DEEP + b"}", "unexpected field"),
        (b'{"zz": ' + b'{"a":' * 100_000 + b"}", "unexpected field"),
        (b"[1]", "expected one JSON object a line"),
        (b'{"v": "x", "v": "y"}', "twice"),
    ],
    ids=lambda value: str(value[:12]),
)
def test_a_json_line_that_cannot_be_a_row_names_its_line(table: Command, line: bytes, says: str) -> None:
    result = table("append", "shop.t", "-", "--input-format", "json", code=9, input=b'{"id": 1}\n' + line + b"\n")
    assert "line 2:" in result.stderr
    assert says in result.stderr
    assert table.rows("shop.t") == []


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (b'1,x,"' + DEEP + b'"', "nested deeper than 64"),
        (b'1,x,"[""\\ud800""]"', "expected the JSON text"),
        (b'1,x,"' + NINES.encode() + b'"', "expected the JSON text"),
        (b"1,\xff,", "invalid UTF8"),
        (b"1,2,3,4", "Expected 3 columns"),
    ],
    ids=lambda value: str(value[:12]),
)
def test_a_csv_row_that_cannot_be_a_row_says_why(table: Command, tmp_path: Path, row: bytes, says: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"id,v,a\n" + row + b"\n")
    assert says in table("append", "shop.t", str(path), code=9).stderr


def test_a_csv_header_longer_than_pythons_parser_takes_is_no_traceback(table: Command, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b'"' + b"x" * 200_000 + b'",v,a\n1,2,3,4\n')
    assert "row 2: Expected 3 columns" in table("append", "shop.t", str(path), code=9).stderr


@pytest.mark.parametrize("value", [b"[" * 100_000 + b"1" + b"]" * 100_000, b'{"b":' * 65 + b"1" + b"}" * 65])
def test_columns_are_not_inferred_from_json_nested_without_end(penstock: Command, tmp_path: Path, value: bytes) -> None:
    path = tmp_path / "rows.json"
    path.write_bytes(b'{"a": ' + value + b"}\n")
    result = penstock("create", "shop.u", "--schema-from", str(path), code=9)
    assert "nested deeper than 64" in result.stderr


def test_brackets_in_a_text_are_no_nesting(penstock: Command, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_bytes(b'{"a": "' + b'[{\\"' * 100 + b'", "b": [[1]]}\n')
    penstock("create", "shop.u", "--schema-from", str(path))


@pytest.mark.parametrize("args", [("-f", "-"), ("-f", "{path}")])
def test_a_script_that_is_no_text_names_the_line(penstock: Command, tmp_path: Path, args: tuple[str, ...]) -> None:
    content = b"SHOW TABLES;\nSELECT '\xff'"
    (tmp_path / "a.sql").write_bytes(content)
    given = [arg.format(path=tmp_path / "a.sql") for arg in args]
    assert "is not in UTF-8: line 2" in penstock("sql", *given, code=2, input=content).stderr


@pytest.mark.parametrize(
    "args",
    [
        ("read", "shop.t", "--snapshot-id", NINES),
        ("read", "shop.t", "--snapshot-id", "9" * 30),
        ("read", "shop.t", "--timestamp", NINES),
        ("read", "shop.t", "--timestamp", "-" + "9" * 30),
        ("read", "shop.t", "--watermark", NINES),
        ("read", "shop.t", "--limit", "9" * 30),
        ("read", "shop.t", "--where", f"id = {NINES}"),
        ("read", "shop.t", "--where", "NOT " * 10_000 + "TRUE"),
        ("sql", "-e", "SELECT " + "(" * 1_000),
        ("sql", "-e", f"SELECT * FROM shop.t LIMIT {NINES}"),  # noqa: S608
        ("read", "shop.\udcff"),
        ("read", "shop.t", "--tag", "\udcff"),
        ("create", "shop.u", "id INT", "--comment", "\udcff"),
        ("tag", "create", "shop.t", "\udcff"),
        ("\udcff",),
    ],
    ids=lambda args: " ".join(args)[:30].encode("unicode_escape").decode(),
)
def test_an_argument_beyond_all_limits_is_a_usage_error(table: Command, args: tuple[str, ...]) -> None:
    assert "Traceback" not in table(*args, code=2).stderr


def test_a_consumer_is_not_set_to_a_number_beyond_64_bits(table: Command) -> None:
    assert "expected the id" in table("consumer", "reset", "shop.t", "c", "--to", NINES, code=2).stderr


@pytest.mark.parametrize("output", ["table", "json", "csv"])
@pytest.mark.parametrize("nested", [False, True])
def test_text_that_is_no_utf_8_is_an_error_that_names_the_column(output: str, nested: bool) -> None:  # noqa: FBT001
    good = pa.array(["x", "abcd"])
    bad = pa.Array.from_buffers(pa.string(), 2, pa.array([b"x", b"\xff\xfe-\xff"]).buffers())
    texts = pa.ListArray.from_arrays([0, 1, 2], bad) if nested else bad
    batch = pa.record_batch([good, texts], names=["good", "bad"])
    print_values = {"table": lambda rows: list(cells_of(rows)), "json": lambda rows: list(json_objects(rows))}
    with pytest.raises(FormatError, match="column 'bad' cannot be printed"):
        print_values.get(output, csv_lines)(batch)
    print_values.get(output, csv_lines)(batch.select(["good"]))
