"""Java Paimon and pypaimon read what we write, row for row."""

from pathlib import Path
from typing import Any, Final

import pytest
from tests.interop import ours
from tests.interop.canonical import sort_rows
from tests.interop.engines import Engine, EngineError, JavaPaimon, Row
from tests.interop.values import CASES, FORMATS, SCALARS, Case, in_every_format

from penstock.catalog.changes import (
    FIRST,
    AddColumn,
    DropColumn,
    RenameColumn,
    SchemaChange,
    UpdateColumnType,
)


def expect_deviation(request: pytest.FixtureRequest, engine: Engine, case: Case) -> None:
    """Mark the running test when the engine is known to fail at it."""
    if engine.name == "pypaimon" and "MULTISET" in case.sql:
        request.applymarker(pytest.mark.xfail(strict=True, raises=EngineError, reason="pypaimon 2.1.0 has no MULTISET"))


def rows_with(values: tuple[Any, ...], column: str = "c") -> list[Row]:
    """Return a row for null and for each value, numbered."""
    return [{"id": i, column: value} for i, value in enumerate([None, *values])]


@pytest.mark.slow  # always: test_wide_tables.py
@pytest.mark.parametrize(("case", "file_format"), in_every_format(CASES))
def test_an_engine_reads_every_type_in_every_file_format(
    engine: Engine, request: pytest.FixtureRequest, location: Path, case: Case, file_format: str
) -> None:
    ours.create(location, f"id INT, c {case.sql}", options={"file.format": file_format})
    rows = rows_with(case.values_in(file_format))
    ours.append(location, rows[:2])
    ours.append(location, rows[2:])
    assert ours.read(location) == sort_rows(rows)
    expect_deviation(request, engine, case)
    assert engine.read(location) == sort_rows(rows)
    assert engine.read(location, columns=["c"]) == sort_rows({"c": row["c"]} for row in rows)


@pytest.mark.jvm
@pytest.mark.parametrize("sql", ["TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP(3) WITH LOCAL TIME ZONE"])
def test_java_reads_our_orc_timestamps_from_year_1_to_9999(java: JavaPaimon, location: Path, sql: str) -> None:
    # Its own it does not: year 1 comes back as two days less, the last second before 1970 as the first after.
    (case,) = (case for case in SCALARS if case.sql == sql)
    ours.create(location, f"id INT, c {sql}", options={"file.format": "orc"})
    ours.append(location, rows_with(case.values))
    assert ours.read(location) == java.read(location) == sort_rows(rows_with(case.values))


# Java 1.4.2 gives these null counts alone; without a minimum it looks at no null count either.
WITHOUT_RANGE: Final = ("BINARY", "VARBINARY", "BYTES")
WITHOUT_RANGE_IN_PARQUET: Final = (*WITHOUT_RANGE, "TIMESTAMP(9)")
# Java 1.4.2 finds no date before the Gregorian calendar in ORC files, those that it wrote itself included.
FIRST_DATE_FOUND_IN_ORC: Final = "1582-10-15"


@pytest.mark.jvm
@pytest.mark.parametrize(("case", "file_format"), in_every_format(SCALARS))
def test_java_finds_each_value_behind_our_statistics(
    java: JavaPaimon, location: Path, case: Case, file_format: str
) -> None:
    ours.create(location, f"id INT, c {case.sql}", options={"file.format": file_format})
    rows = rows_with(case.values_in(file_format))
    for row in rows:
        ours.append(location, [row])
    for row in rows[1:]:
        if case.sql != "DATE" or file_format != "orc" or row["c"] >= FIRST_DATE_FOUND_IN_ORC:
            assert java.read(location, filter=[["c", "=", row["c"]]]) == [row]
    found, files = java.scan(location, filter=[["c", "is null"]])
    assert found == rows[:1]
    without_range = WITHOUT_RANGE_IN_PARQUET if file_format == "parquet" else WITHOUT_RANGE
    assert files == (len(rows) if case.sql.startswith(without_range) else 1)
    # By id, whose statistics are those of a plain INT in every format.
    assert java.scan(location, filter=[["id", "=", 1]]) == ([rows[1]], 1)


@pytest.mark.jvm
@pytest.mark.parametrize("mode", ["none", "counts", "truncate(3)", "full"])
def test_java_finds_each_value_behind_every_statistics_mode(java: JavaPaimon, location: Path, mode: str) -> None:
    ours.create(location, "s STRING, n INT, l ARRAY<INT>, x DOUBLE", options={"metadata.stats-mode": mode})
    rows: list[Row] = [{"s": f"abc{i}", "n": i, "l": [i], "x": None} for i in range(4)]
    for row in rows:
        ours.append(location, [row])
    for row in rows:
        found, files = java.scan(location, filter=[["s", "=", row["s"]], ["n", "=", row["n"]]])
        assert found == [row]
        assert files == (4 if mode in {"none", "counts"} else 1)


# ---------------------------------------------------------------------- buckets


@pytest.mark.jvm
@pytest.mark.parametrize("case", SCALARS, ids=lambda case: case.name)
def test_java_would_put_our_rows_into_the_same_buckets(java: JavaPaimon, location: Path, case: Case) -> None:
    ours.create(location, f"id INT, c {case.sql}", options={"bucket": "5", "bucket-key": "c"})
    rows = rows_with(case.values * 2)
    ours.append(location, rows)
    assert java.count_rows_elsewhere(location) == 0
    for row in rows[1:]:  # a filter on the whole bucket key reads one bucket
        assert row in java.read(location, filter=[["c", "=", row["c"]]])


@pytest.mark.parametrize(
    "options",
    [
        {"bucket": "7", "bucket-key": "k,s"},
        {"bucket": "7", "bucket-key": "s,k"},
        {"bucket": "7", "bucket-key": "k", "bucket-function.type": "mod"},
    ],
    ids=["k,s", "s,k", "mod"],
)
def test_engines_agree_with_us_on_buckets_of_many_keys(engine: Engine, location: Path, options: dict[str, str]) -> None:
    ours.create(location, "k BIGINT, s STRING, p INT", partition_by=["p"], options=options)
    rows: list[Row] = [{"k": i * 977 - 50_000, "s": "é" * (i % 23), "p": i % 2} for i in range(300)]
    ours.append(location, rows)
    assert engine.read(location) == sort_rows(rows)
    if isinstance(engine, JavaPaimon):
        assert engine.count_rows_elsewhere(location) == 0
    for row in rows[::29]:
        assert engine.read(location, filter=[["k", "=", row["k"]], ["s", "=", row["s"]]]) == [row]


# ------------------------------------------------------------------- partitions

PARTITION_TYPES: Final = [
    pytest.param("BOOLEAN", [False, True], id="BOOLEAN"),
    pytest.param("TINYINT", [-128, 0], id="TINYINT"),
    pytest.param("SMALLINT", [-5, 7], id="SMALLINT"),
    pytest.param("INT", [-(2**31), 0], id="INT"),
    pytest.param("BIGINT", [-(2**63), 2**63 - 1], id="BIGINT"),
    pytest.param("FLOAT", [1.100000023841858, 1e10, -0.5], id="FLOAT"),
    pytest.param("DOUBLE", [100.0, 1e20, 0.001, 1e-5], id="DOUBLE"),
    pytest.param("DECIMAL(10, 2)", ["1.20", "-0.05"], id="DECIMAL(10,2)"),
    pytest.param("DECIMAL(30, 0)", ["123456789012345678901234567890"], id="DECIMAL(30,0)"),
    pytest.param(
        "STRING", ["2024-01-01", "a/b c=d:e%f?", "é☃\U0001f600", "a\tb{}[]^\"'\\#*", "+&,~|<>@!$`;()."], id="STRING"
    ),
    pytest.param("STRING", ["", "  "], id="STRING-blank"),
    pytest.param("CHAR(3)", ["abc"], id="CHAR(3)"),
    pytest.param("DATE", ["1969-12-31", "2024-02-29"], id="DATE"),
    pytest.param("TIME(3)", ["01:00:00.123", "00:00:00.000"], id="TIME(3)"),
    pytest.param("TIMESTAMP(0)", ["2024-01-01T00:00:00.000000000", "2024-01-01T00:00:01.000000000"], id="TIMESTAMP(0)"),
    pytest.param("TIMESTAMP(3)", ["2024-01-01T00:00:00.100000000", "1960-01-01T10:20:00.000000000"], id="TIMESTAMP(3)"),
    pytest.param("TIMESTAMP(6)", ["2024-01-01T00:00:00.000001000", "2024-01-01T00:00:00.001000000"], id="TIMESTAMP(6)"),
    pytest.param("TIMESTAMP(9)", ["2024-01-01T00:00:00.000000001"], id="TIMESTAMP(9)"),
    pytest.param("TIMESTAMP(3) WITH LOCAL TIME ZONE", ["2024-01-01T00:00:00.100000000Z"], id="TIMESTAMP_LTZ(3)"),
]


def partition_directories(location: Path) -> set[str]:
    """Return the names of the partition directories, by what is on disk."""
    return {path.name for path in location.glob("p=*")}


@pytest.mark.parametrize("legacy_name", ["true", "false"])
@pytest.mark.parametrize(("sql", "values"), PARTITION_TYPES)
def test_an_engine_reads_every_partition_type(
    engine: Engine, request: pytest.FixtureRequest, location: Path, sql: str, values: list[Any], legacy_name: str
) -> None:
    if engine.name == "pypaimon" and sql == "TIMESTAMP(9)":
        reason = "pypaimon 2.1.0 rounds partition values to microseconds and so looks in another directory"
        request.applymarker(pytest.mark.xfail(strict=True, raises=EngineError, reason=reason))
    ours.create(
        location, f"id INT, p {sql}", partition_by=["p"], options={"partition.legacy-name": legacy_name, "bucket": "-1"}
    )
    rows = rows_with(tuple(values), column="p")
    ours.append(location, rows)
    assert ours.read(location) == sort_rows(rows)
    assert engine.read(location) == sort_rows(rows)
    if isinstance(engine, JavaPaimon):
        before = partition_directories(location)
        engine.append(location, rows)
        assert partition_directories(location) == before, "Java names the same partitions otherwise"
        for row in rows[1:]:
            assert engine.read(location, filter=[["p", "=", row["p"]]]) == [row, row]


# ------------------------------------------------------------ history of a table


def test_an_engine_reads_each_snapshot_and_tag_of_ours(engine: Engine, location: Path) -> None:
    ours.create(location, "id INT, c STRING")
    rows = rows_with(("a", "b", "c", "d"))
    ours.append(location, rows[:2])
    ours.load(location).create_tag("two rows")
    ours.append(location, rows[2:])
    assert engine.read(location, snapshot=1) == sort_rows(rows[:2])
    assert engine.read(location, tag="two rows") == sort_rows(rows[:2])
    assert engine.read(location) == sort_rows(rows)
    ours.load(location).rollback_to(snapshot_id=1)
    assert engine.read(location) == sort_rows(rows[:2])


@pytest.mark.parametrize("bucket", [{"bucket": "-1"}, {"bucket": "2", "bucket-key": "id"}], ids=["scalable", "queue"])
def test_an_engine_reads_what_our_overwrites_left(engine: Engine, location: Path, bucket: dict[str, str]) -> None:
    ours.create(location, "id INT, v STRING, p INT", partition_by=["p"], options=bucket)
    rows: list[Row] = [{"id": i, "v": "old", "p": i % 3} for i in range(9)]
    ours.append(location, rows)
    new: list[Row] = [{"id": 100, "v": "new", "p": 1}]
    ours.overwrite(location, new, {"p": 1})
    kept = [row for row in rows if row["p"] != 1]
    assert engine.read(location) == sort_rows(kept + new)
    ours.overwrite(location, rows[:1], {})
    assert engine.read(location) == rows[:1]
    ours.overwrite(location, [], {})
    assert engine.read(location) == []


def test_an_engine_reads_a_table_whose_manifests_were_merged(engine: Engine, location: Path) -> None:
    ours.create(location, "id INT, c STRING", options={"manifest.merge-min-count": "3"})
    rows = rows_with(tuple(f"v{i}" for i in range(11)))
    for row in rows:
        ours.append(location, [row])
    assert engine.read(location) == sort_rows(rows)
    assert engine.read(location, snapshot=5) == sort_rows(rows[:5])


@pytest.mark.parametrize(
    "options",
    [
        {"file.compression": "none", "manifest.compression": "null"},
        {"file.compression": "snappy", "manifest.compression": "snappy"},
        {"file.compression": "zstd", "file.compression.zstd-level": "5"},
        {"file.compression": "gzip", "manifest.compression": "deflate"},
        {"data-file.path-directory": "data", "data-file.prefix": "part-"},
        {"file.suffix.include.compression": "true"},
        {"metadata.stats-dense-store": "false"},
        {"partition.default-name": "nothing here"},
        {"target-file-size": "1 kb"},
    ],
    ids=lambda options: next(iter(options.values())) + "-" + next(iter(options)),
)
def test_an_engine_reads_our_tables_whatever_their_layout(
    engine: Engine, location: Path, options: dict[str, str]
) -> None:
    ours.create(location, "id INT, c STRING, l ARRAY<INT>, p INT", partition_by=["p"], options=options)
    rows: list[Row] = [{"id": i, "c": f"v{i}", "l": [i], "p": None if i % 3 else i % 2} for i in range(2500)]
    ours.append(location, rows)
    assert engine.read(location) == sort_rows(rows)


# --------------------------------------------------------------- schemas of ours

EVOLUTION: Final[list[tuple[list[SchemaChange], Row]]] = [
    ([], {"id": 0, "a": 1, "b": "x", "r": {"x": 1}, "f": 1.5, "d": "1.25"}),
    ([AddColumn(column="c", type="DECIMAL(20, 2)")], {"id": 1, "b": "y", "c": "7.25"}),
    (
        [RenameColumn(column="a", new_name="a2"), UpdateColumnType(column="a2", type="BIGINT")],
        {"id": 2, "a2": 2**40, "b": "z"},
    ),
    ([DropColumn(column="b"), AddColumn(column="b", type="INT", position=FIRST)], {"id": 3, "b": 3, "a2": 3}),
    ([AddColumn(column=("r", "y"), type="STRING")], {"id": 4, "r": {"x": 4, "y": "new"}}),
    (
        [UpdateColumnType(column="f", type="DOUBLE"), UpdateColumnType(column="d", type="DECIMAL(12, 2)")],
        {"id": 5, "f": 0.1, "d": "1234567890.12"},
    ),
    (
        [UpdateColumnType(column="c", type="STRING", allow_explicit=True), AddColumn(column="t", type="TIMESTAMP(3)")],
        {"id": 6, "c": "text"},
    ),
]


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("bucket", [{"bucket": "-1"}, {"bucket": "2", "bucket-key": "id"}], ids=["scalable", "queue"])
def test_an_engine_reads_our_table_after_each_change_of_its_schema(
    engine: Engine, location: Path, file_format: str, bucket: dict[str, str]
) -> None:
    columns = "id INT, a INT, b STRING, r ROW<x INT>, f FLOAT, d DECIMAL(5, 2), p INT"
    ours.create(location, columns, partition_by=["p"], options={"file.format": file_format, **bucket})
    for snapshot, (changes, row) in enumerate(EVOLUTION, start=1):
        ours.alter(location, changes)
        ours.append(location, [row | {"p": snapshot % 2}])
        rows = ours.read(location)
        assert len(rows) == snapshot
        assert engine.read(location) == rows
    for snapshot in range(1, len(EVOLUTION) + 1):
        assert engine.read(location, snapshot=snapshot) == ours.read(location, snapshot_id=snapshot)


@pytest.mark.jvm
def test_java_takes_our_schema_as_we_declared_it(java: JavaPaimon, location: Path) -> None:
    cases = [case for case in CASES if case.sql != "VARIANT"]
    columns = ", ".join(f"c{i} {case.sql}" for i, case in enumerate(cases))
    options = {"bucket": "3", "bucket-key": "k,c4"}
    ours.create(location, f"k BIGINT NOT NULL, {columns}, p STRING", partition_by=["p"], options=options)
    schema = java.schema(location)
    schema["options"].pop("path")
    theirs = location.parent / "theirs"
    fields = [("k", "BIGINT NOT NULL"), *((f"c{i}", case.json_type) for i, case in enumerate(cases)), ("p", "STRING")]
    java.create(theirs, fields, partition=["p"], options=options)
    expected = java.schema(theirs)
    expected["options"].pop("path")
    assert schema == expected
    assert schema["bucket_keys"] == ["k", "c4"]
