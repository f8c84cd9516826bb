"""The harness proves itself on golden tables before it judges ours."""

import json
import shutil
from pathlib import Path
from typing import Any, Final

import pytest
from tests.interop.canonical import sort_rows
from tests.interop.engines import Engine, EngineError, JavaPaimon, PyPaimon, Row

GOLDEN: Final = Path(__file__).parent.parent / "golden" / "data"
# Together they hold every type and format, evolution, tags, odd partitions, buckets and every writer.
TABLES: Final = (
    "java142.db/types_parquet",
    "java142.db/types_orc",
    "java142.db/types_avro",
    "java142.db/types_multiset",
    "java142.db/evolve",
    "java142.db/evolve_types",
    "java142.db/tags",
    "java142.db/overwrite_all",
    "java142.db/part_string_int",
    "java142.db/part_bucket",
    "java142.db/data_dir",
    "flink131.db/f_tags",
    "spark090.db/s09_append",
    "spark200.db/s20_types",
    "py210.db/p21_types_parquet",
)
# What pypaimon 2.1.0 reads otherwise than Java 1.4.2, which wrote the expected rows.
PYPAIMON_DEVIATIONS: Final = {
    "types_orc": (AssertionError, "reads ORC timestamps of year 1 as 1754, and keeps CHAR's blanks that Java drops"),
    "types_multiset": (EngineError, "has no MULTISET"),
    "s09_append": (EngineError, "asks for a manifest field that 0.9.0 did not write"),
    "p21_types_parquet": (AssertionError, "keeps the fraction of INT64 nanoseconds before 1970, which Java loses"),
}


def expected_reads(table: str) -> list[dict[str, Any]]:
    """Return one object a snapshot and a tag of the table."""
    text = (GOLDEN / "expected" / f"{Path(table).name}.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def deviating(table: str) -> Any:
    """Mark a table that pypaimon is known to read otherwise."""
    known = PYPAIMON_DEVIATIONS.get(Path(table).name)
    marks = [pytest.mark.xfail(strict=True, raises=known[0], reason=f"pypaimon {known[1]}")] if known else []
    return pytest.param(table, marks=marks)


def assert_reads_as_expected(engine: Engine, table: str) -> None:
    for read in expected_reads(table):
        rows = engine.read(GOLDEN / "warehouse" / table, snapshot=read.get("snapshot"), tag=read.get("tag"))
        assert rows == sort_rows(read["rows"]), (read.get("snapshot"), read.get("tag"))


@pytest.mark.jvm
@pytest.mark.parametrize("table", TABLES)
def test_java_reads_every_snapshot_and_tag_of_a_golden_table(java: JavaPaimon, table: str) -> None:
    assert_reads_as_expected(java, table)


@pytest.mark.parametrize("table", [deviating(table) for table in TABLES])
def test_pypaimon_reads_every_snapshot_and_tag_of_a_golden_table(pypaimon: PyPaimon, table: str) -> None:
    assert_reads_as_expected(pypaimon, table)


@pytest.mark.jvm
def test_java_finds_rows_that_lie_in_a_foreign_bucket(java: JavaPaimon, tmp_path: Path) -> None:
    table = tmp_path / "w" / "d.db" / "t"
    shutil.copytree(GOLDEN / "warehouse" / "java142.db" / "bk_int", table)
    assert java.count_rows_elsewhere(table) == 0
    # The same rows in the same buckets, judged by another rule.
    schema = table / "schema" / "schema-0"
    schema.write_text(schema.read_text().replace('"bucket" :', '"bucket-function.type" : "mod",\n    "bucket" :'))
    assert 0 < java.count_rows_elsewhere(table) <= len(java.read(table))


FIELDS: Final = [("k", "INT NOT NULL"), ("v", "STRING"), ("t", "TIMESTAMP(6)"), ("d", "DECIMAL(20, 3)")]
ROWS: Final[list[Row]] = [
    {"k": k, "v": f"v{k}" if k % 3 else None, "t": f"2024-01-0{k}T00:00:00.00000{k}000", "d": f"{k}.500"}
    for k in range(1, 7)
]


@pytest.mark.parametrize("options", [{"bucket": "-1"}, {"bucket": "2", "bucket-key": "k"}], ids=["scalable", "queue"])
def test_an_engine_creates_appends_overwrites_projects_and_filters(
    engine: Engine, options: dict[str, str], tmp_path: Path
) -> None:
    table = tmp_path / "w" / "d.db" / "t"
    engine.create(table, FIELDS, options=options)
    engine.append(table, ROWS[:4])
    engine.append(table, ROWS[4:])
    assert engine.read(table) == sort_rows(ROWS)
    assert engine.read(table, snapshot=1) == sort_rows(ROWS[:4])
    assert engine.read(table, columns=["v"]) == sort_rows({"v": row["v"]} for row in ROWS)
    rows, files = engine.scan(table, filter=[["k", "=", 6]])
    assert rows == [ROWS[5]]
    # pypaimon writes no statistics for its own files, so it prunes none of them.
    assert files == (1 if engine.name == "Java Paimon" else 2)
    engine.overwrite(table, ROWS[:1])
    assert engine.read(table) == ROWS[:1]


def test_an_engine_says_what_it_refuses(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"(?i)not.?exist"):
        engine.read(tmp_path / "w" / "d.db" / "nothing")
    # and lives on
    engine.create(tmp_path / "w" / "d.db" / "t", FIELDS)
    assert engine.read(tmp_path / "w" / "d.db" / "t") == []
