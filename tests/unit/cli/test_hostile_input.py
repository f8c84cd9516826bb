"""Input that is damaged or meant to do harm ends with a message and an exit code, never with a traceback."""

from __future__ import annotations

import unicodedata
import uuid
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.unit.cli.conftest import Command

from penstock import Catalog, Table
from penstock.cli.output.render import cells_of, csv_lines, json_objects
from penstock.errors import FormatError, NotFoundError, OptionWarning, TableStoreError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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


HOSTILE = "a\x1b[31m\u202e\u2066\nb\u2028\r<b>"


def acting(text: str) -> set[str]:
    return {letter for letter in text if unicodedata.category(letter) in {"Cc", "Cf", "Cs", "Zl", "Zp"}} - {"\n"}


@pytest.fixture(scope="module")
def hostile() -> Command:
    """A table whose every name is hostile: tag, branch, consumer, column, comment, partition value and commit user."""
    command = Command(warehouse=f"memory://{uuid.uuid4()}/warehouse")
    command.catalog.create_database("shop")
    columns = pa.schema({"id": pa.int64(), HOSTILE: pa.string()})
    options = {"commit.user-prefix": HOSTILE}
    table = command.catalog.create_table("shop.t", columns, partition_by=[HOSTILE], options=options, comment=HOSTILE)
    table.append([{"id": 1, HOSTILE: HOSTILE}, {"id": 2, HOSTILE: None}])
    table.create_tag(HOSTILE)
    table.versions.create_branch(HOSTILE)
    list(table.with_options({"consumer-id": HOSTILE}).follow(once=True))
    return command


PLACES = [
    ("show",), ("options",), ("read",), ("snapshots",), ("schemas",), ("files",), ("partitions",), ("buckets",),
    ("manifests",), ("debt",), ("tags",), ("consumers",), ("explain",), ("fsck",), ("lag",), ("branch", "list"),
]  # fmt: skip
STATEMENTS = [
    "SELECT * FROM shop.t", "SHOW CREATE TABLE shop.t", "DESCRIBE shop.t", "SHOW PARTITIONS shop.t",
    "SELECT * FROM shop.t$branches", "SELECT * FROM shop.t$options",
]  # fmt: skip
ABSENT = HOSTILE + "x"
REFUSALS = [
    (3, "read", "shop.t", "--tag", ABSENT),
    (2, "read", "shop.t", "--where", f"`{ABSENT}` = 1"),
    (3, "branch", "delete", "shop.t", ABSENT, "--yes"),
    (4, "tag", "create", "shop.t", HOSTILE),
    (1, "tag", "delete", "shop.t", HOSTILE),
    (1, "branch", "delete", "shop.t", HOSTILE),
    (1, "consumer", "delete", "shop.t", HOSTILE),
    (3, "consumer", "reset", "shop.t", HOSTILE, "--to", "99"),
    (2, "read", f"shop.{HOSTILE}"),
]


@pytest.mark.parametrize("output", ["table", "json"])
@pytest.mark.parametrize("place", PLACES, ids=" ".join)
def test_hostile_names_are_escaped_by_each_command(hostile: Command, place: tuple[str, ...], output: str) -> None:
    result = hostile(*place, "shop.t", "--format", output)
    assert acting(result.output) == set()


@pytest.mark.parametrize("text", STATEMENTS)
def test_hostile_names_are_escaped_in_results_of_sql(hostile: Command, text: str) -> None:
    assert acting(hostile("sql", "-e", text).output) == set()


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda each: " ".join(each[1:3]) + f" {len(each)}")
def test_hostile_names_are_escaped_in_errors_and_questions(hostile: Command, refusal: tuple[int | str, ...]) -> None:
    code, *args = refusal
    result = hostile(*map(str, args), code=int(code))
    assert acting(result.output) == set()
    assert r"\u202e" in result.output


def test_hostile_names_are_escaped_in_pages_reprs_and_warnings(
    hostile: Command, caplog: pytest.LogCaptureFixture
) -> None:
    table = hostile.catalog.load_table("shop.t")
    page = hostile("report", "shop.t", "-o", "-").output
    shown = [
        page, table._repr_html_(), hostile.catalog._repr_html_(), repr(table), repr(table.schema),
        repr(table.latest_snapshot()), str(table.explain()),
    ]  # fmt: skip
    assert [acting(text) for text in shown] == [set()] * len(shown)
    assert "<b>" not in table._repr_html_()
    with pytest.warns(OptionWarning) as caught:
        table.with_options({ABSENT: HOSTILE})
    assert [acting(str(each.message)) for each in caught] == [set()]
    assert [acting(record.getMessage()) for record in caplog.records] == [set()] * len(caplog.records)


LONG = "\u00fc" * 150
TOO_LONG: dict[str, Callable[[Table], object]] = {
    "tag": lambda table: table.create_tag(LONG),
    "renamed tag": lambda table: (table.create_tag("short"), table.versions.rename_tag("short", LONG)),
    "branch": lambda table: table.versions.create_branch(LONG),
    "read branch": lambda table: table.with_options({"branch": LONG}),
    "consumer": lambda table: table.maintenance.reset_consumer(LONG, 1),
    "followed": lambda table: list(table.with_options({"consumer-id": LONG}).follow(once=True)),
    "table": lambda table: penstock_catalog(table).create_table(f"shop.{LONG}", "id BIGINT"),
    "database": lambda table: penstock_catalog(table).create_database(LONG),
    "view": lambda table: penstock_catalog(table).create_view(f"shop.{LONG}", "SELECT 1 AS x", "x INT"),
    "partition": lambda table: table.append([{"id": 1, "dt": LONG}]),
}


def penstock_catalog(table: Table) -> Catalog:
    return Catalog(table.location.rpartition("/shop.db/")[0])


@pytest.mark.parametrize("what", TOO_LONG)
def test_a_name_of_300_bytes_is_an_error_about_the_limit(tmp_path: Path, what: str) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_database("shop")
    table = catalog.create_table("shop.t", "id BIGINT, dt STRING", partition_by=["dt"])
    table.append([{"id": 1, "dt": "a"}])
    with pytest.raises(TableStoreError, match=r"at most (\d+) bytes"):
        TOO_LONG[what](table)


def test_a_name_of_300_bytes_is_not_found(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_database("shop")
    table = catalog.create_table("shop.t", "id BIGINT")
    for search in (
        lambda: table.with_options({"scan.tag-name": LONG}).to_arrow(),
        lambda: table.versions.delete_tag(LONG),
    ):
        with pytest.raises(NotFoundError):
            search()
