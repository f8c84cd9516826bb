"""``to_spark``: exactly the rows of one snapshot, pruned before Spark sees a list of files."""

from __future__ import annotations

import datetime as dt
import tempfile
import time
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from tests.spark.conftest import SESSION_ZONE
from tests.spark.plans import BY_SPARK, files_opened, plan_of
from tests.spark.ways import READ_BOTH_WAYS, READ_FORMAT_IF_SLOW

from penstock import Catalog, Table, col
from penstock.catalog.changes import UpdateColumnType
from penstock.errors import NotFoundError
from penstock.predicate.bind import bind
from penstock.predicate.parse import parse_filter
from penstock.spark.read.filters import to_column

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

UTC: Final = dt.UTC


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    catalog = Catalog(str(tmp_path_factory.mktemp("warehouse")))
    catalog.create_database("d")
    return catalog


# Filters

COLUMNS: Final = """
    id INT, boo BOOLEAN, tiny TINYINT, small SMALLINT, big BIGINT, flo FLOAT, dou DOUBLE, de5 DECIMAL(5, 2),
    de38 DECIMAL(38, 10), str STRING, var VARCHAR(10), bin BYTES, day DATE,
    ts0 TIMESTAMP(0), ts3 TIMESTAMP(3), ts6 TIMESTAMP(6), ltz3 TIMESTAMP_LTZ(3), ltz6 TIMESTAMP_LTZ(6)
"""
NAN: Final = float("nan")
INF: Final = float("inf")
BIG: Final = 2**63 - 1
NINES: Final = Decimal("9" * 28)


def at(*parts: int) -> dt.datetime:
    return dt.datetime(*parts)  # noqa: DTZ001 - a wall clock


def row(number: int, *values: object) -> dict[str, object]:
    names = [column.split()[0] for column in COLUMNS.replace("(5, 2)", "").replace("(38, 10)", "").split(",")]
    boo, whole, real, small_decimal, decimal, text, binary, day, wall = values
    instant = None if wall is None else wall.replace(tzinfo=UTC)
    numbers = [None if whole is None else max(-limit - 1, min(limit, whole)) for limit in (127, 32_767, BIG)]
    second, milli = (
        None if wall is None else wall.replace(microsecond=wall.microsecond // unit * unit) for unit in (10**6, 1000)
    )
    milli_instant = None if milli is None else milli.replace(tzinfo=UTC)
    cells = [number, boo, *numbers, real, real, small_decimal, decimal, text, text, binary, day]
    cells += [second, milli, wall, milli_instant, instant]
    return dict(zip(names, cells, strict=True))


TWICE: Final = at(2024, 11, 3, 1, 30, 0, 123_456)
DAY_BEFORE: Final = at(1969, 12, 31, 23, 59, 59, 999_999)
YES: Final = True
NO: Final = False
DATA: Final = [
    row(0, *[None] * 9),
    row(1, YES, 0, 0.0, Decimal("0.00"), Decimal(0), "", b"", dt.date(1970, 1, 1), at(1970, 1, 1)),
    row(2, NO, 1, 0.5, Decimal("1.50"), Decimal("1e-10"), "it's", b"\x00\xff", dt.date(1969, 12, 31), DAY_BEFORE),
    # A wall clock that the session's zone skips, and one that it has twice.
    row(3, YES, -1, -0.5, Decimal("-999.99"), -NINES, 'say "hi"', b"a", dt.date(2024, 3, 10), at(2024, 3, 10, 2, 30)),
    row(4, NO, BIG, NAN, Decimal("999.99"), NINES, "a%_b\\c", b"ab", dt.date(2024, 11, 3), TWICE),
    row(5, YES, -BIG - 1, INF, Decimal("1.00"), Decimal(1), "Ünï☃", b"\xff", dt.date.max, at(9999, 12, 31, 23, 59, 59)),
    row(6, NO, 127, -INF, Decimal("-1.50"), Decimal("1.5"), "abc", b"abc", dt.date.min, at(1, 1, 1)),
    row(7, None, 42, 1e-30, Decimal("42.42"), None, "abd ", None, dt.date(1500, 1, 1), at(2024, 3, 10, 10, 30)),
]
LITERALS: Final = {
    "boo": ["true", "false"],
    "tiny": ["0", "-1", "127", "1000"],
    "small": ["42", "-32768"],
    "big": ["0", str(BIG), str(-BIG - 1)],
    "flo": ["0.5", "-0.5", "0", "1e-30"],
    "dou": ["0.5", "0", "1e300"],
    "de5": ["1.5", "-999.99", "1.505", "1"],
    "de38": ["0.0000000001", "1.5", str(NINES)],
    "str": ["''", "'it''s'", "'say \"hi\"'", "'abc'", "'Ünï☃'", "'a%_b\\c'"],
    "var": ["'abd '", "'abd'"],
    "day": [f"DATE '{text}'" for text in ("1970-01-01", "1969-12-31", "9999-12-31", "0001-01-01", "1500-01-01")],
    "ts0": [f"TIMESTAMP '2024-03-10 02:30:00{fraction}'" for fraction in ("", ".5")],
    "ts3": [f"TIMESTAMP '2024-11-03 01:30:00{fraction}'" for fraction in (".123", ".122", ".123456", "")],
    "ts6": [f"TIMESTAMP '{text}'" for text in ("2024-03-10 02:30:00", "0001-01-01 00:00:00", f"{TWICE}", f"{TWICE}7")],
    "ltz3": [f"TIMESTAMP '{text}Z'" for text in ("2024-11-03 01:30:00.123", "2024-03-10 10:30:00")],
    "ltz6": [f"TIMESTAMP '{text}Z'" for text in (f"{TWICE}", f"{DAY_BEFORE}", "9999-12-31 23:59:59")],
}
FILTERS: Final = [
    *(f"{name} {sign} {text}" for name, texts in LITERALS.items() for text in texts for sign in ("=", "<>", "<", ">=")),
    *(f"{name} IN ({', '.join(texts)})" for name, texts in LITERALS.items()),
    *(f"{name} NOT IN ({', '.join(texts)})" for name, texts in LITERALS.items()),
    *(f"{name} IS {word}" for name in LITERALS for word in ("NULL", "NOT NULL")),
    "str LIKE 'ab%'",
    "str NOT LIKE 'a%'",
    "NOT (big = 0)",
    "NOT (big = 0 OR str = 'abc')",
    "big = 0 AND de38 IS NULL",
    "big BETWEEN -1 AND 42 OR boo = true",
    "str NOT IN ('abc', NULL)",
    "str IN ('abc', NULL)",
    "day IN (DATE '1500-01-01', DATE '1970-01-01', NULL)",
    "ltz6 IN (TIMESTAMP '0001-01-01Z', TIMESTAMP '1970-01-01Z')",
    "big = NULL",
]
PREDICATES: Final = {
    "nan": col("dou") == NAN,
    "not nan": col("dou") != NAN,
    "below nan": col("flo") < NAN,
    "infinite": col("flo").isin([float("inf"), NAN]),
    "bytes": col("bin") == b"\x00\xff",
    "bytes above": col("bin") > b"a",
    "bytes among": col("bin").isin([b"", b"abc"]),
    "date": col("day") < dt.date(2024, 3, 10),
    "wall clock": col("ts6") >= at(2024, 3, 10, 2, 30),
    "instant": col("ltz6") >= dt.datetime(2024, 3, 10, 2, 30, tzinfo=UTC),
    "decimal": col("de5") > Decimal("1.505"),
}


@pytest.fixture(scope="module")
def all_types(shared: Catalog) -> Table:
    table = shared.create_table("d.all_types", COLUMNS)
    table.append(pa.Table.from_pylist(DATA, table.arrow_schema))
    return table


@READ_FORMAT_IF_SLOW
def test_filters_let_the_same_rows_pass_in_spark_as_in_arrow(spark: SparkSession, all_types: Table) -> None:
    cases = {**{text: parse_filter(text) for text in FILTERS}, **PREDICATES}
    bound = {name: bind(case, all_types.schema.fields, "t") for name, case in cases.items()}
    frame = all_types.to_spark(spark)
    answers = frame.select("id", *(to_column(each).alias(f"c{place}") for place, each in enumerate(bound.values())))
    found = answers.toArrow()
    ids = found["id"].to_pylist()
    different = {}
    for place, (name, case) in enumerate(cases.items()):
        spark_ids = {number for number, passes in zip(ids, found[f"c{place}"].to_pylist(), strict=True) if passes}
        arrow_ids = set(all_types.to_arrow(["id"], filter=case)["id"].to_pylist())
        if spark_ids != arrow_ids:
            different[name] = (spark_ids, arrow_ids)
    assert not different


@READ_FORMAT_IF_SLOW
@pytest.mark.parametrize(
    "text",
    [
        "ts6 = TIMESTAMP '2024-03-10 02:30:00'",  # a wall clock that the session's zone skips
        "ltz6 > TIMESTAMP '2024-03-10 02:30:00Z' AND str <> 'it''s'",
        "de38 >= 1.5 OR str IS NULL",
        "day = DATE '0001-01-01'",
    ],
)
def test_filter_is_applied_by_the_scan_too(spark: SparkSession, all_types: Table, text: str) -> None:
    frame = all_types.to_spark(spark, columns=["str", "id"], filter=text)
    expected = {(one["str"], one["id"]) for one in all_types.to_arrow(["str", "id"], filter=text).to_pylist()}
    assert expected
    assert set(frame.collect()) == expected
    assert frame.columns == ["str", "id"]
    assert "filter: TRUE" not in plan_of(frame)


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_ranges_in_footers_that_leave_out_nan_lose_no_rows(
    spark: SparkSession, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, file_format: str
) -> None:
    # Footers as Arrow writes them, and as we did: NaN is in none of the ranges.
    monkeypatch.setattr("penstock.datafile.parquet.writer._has_safe_range", lambda _: True)
    monkeypatch.setattr("penstock.datafile.parquet.writer.drop_ranges", lambda *_, **__: None)
    table = catalog.create_table(
        f"d.nan_{file_format}",
        "f FLOAT, d DOUBLE, r ROW<i INT, s ROW<`x.y` DOUBLE>>",
        options={"file.format": file_format},
    )
    numbers = [1.0, NAN, -0.0]
    rows = [{"f": x, "d": x, "r": {"i": 1, "s": {"x.y": x}}} for x in numbers] + [{"f": None, "d": None, "r": None}]
    table.append(pa.Table.from_pylist(rows, table.arrow_schema))

    frame = table.to_spark(spark)

    assert plan_of(frame).count(BY_SPARK) == 1
    assert table.to_spark(spark, filter="f > 5").count() == 1
    for name in ("f", "d", "r.s.`x.y`"):
        assert [frame.where(f"{name} {text}").count() for text in ("> 5", "= double('NaN')")] == [1, 1], name
    assert [str(each["r"]) for each in frame.collect()] == [
        *(f"Row(i=1, s=Row(x.y={x}))" for x in numbers),
        "None",
    ]


@READ_FORMAT_IF_SLOW
def test_a_column_with_a_back_quote_in_orc_is_not_taken_for_another(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.orc_quotes", "a INT, `a``b` INT, c INT", options={"file.format": "orc"})
    table.append(pa.table({name: pa.array([place], pa.int32()) for place, name in enumerate(["a", "a`b", "c"])}))
    frame = table.to_spark(spark)
    assert [frame.select(f"`{name}`").collect() for name in ("a", "a``b", "c")] == [[(0,)], [(1,)], [(2,)]]
    assert table.to_spark(spark, filter="a = 0").groupBy().count().collect() == [(1,)]


def test_orc_dates_before_1582_are_read_right(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.orc_dates", "i INT, d DATE, r ROW<x DATE>", options={"file.format": "orc"})
    old, new = [dt.date(1, 1, 1), dt.date(1582, 10, 4), None], [dt.date(1582, 10, 15), dt.date(9999, 12, 31), None]
    for days in (old, new):
        rows = [{"i": place, "d": day, "r": {"x": day}} for place, day in enumerate(days)]
        table.append(pa.Table.from_pylist(rows, table.arrow_schema))
    for columns, native_files in ((["i", "d"], 1), (["i", "r"], 0), (["i"], 2)):
        frame = table.to_spark(spark, columns=columns)
        expected = [tuple(row.values()) for row in table.to_arrow(columns).to_pylist()]
        found = [tuple(v.asDict() if hasattr(v, "asDict") else v for v in row) for row in frame.collect()]
        assert sorted(found, key=str) == sorted(expected, key=str)
        assert files_opened(frame) == native_files, columns
    assert table.to_spark(spark, filter="d = DATE '0001-01-01'").count() == 1


@READ_BOTH_WAYS
def test_days_that_the_julian_calendar_lacks_are_found(spark: SparkSession, catalog: Catalog, read_way: str) -> None:
    table = catalog.create_table(f"d.lacking_{read_way}", "x TIMESTAMP_LTZ(6), d DATE")
    table.append(pa.table({"x": [dt.datetime(1582, 10, 10, tzinfo=UTC)], "d": [dt.date(1582, 10, 10)]}))
    for text in ("x = TIMESTAMP '1582-10-10Z'", "d IN (DATE '1582-10-10', DATE '2024-01-01')", "d > DATE '1582-10-09'"):
        assert table.to_spark(spark, filter=text).count() == 1, text


@READ_FORMAT_IF_SLOW
def test_null_in_a_list_of_values_does_not_reach_the_reader_of_orc(
    spark: SparkSession, catalog: Catalog, read_way: str
) -> None:
    table = catalog.create_table(f"d.orc_in_{read_way}", "a INT", options={"file.format": "orc"})
    table.append(pa.table({"a": pa.array([1, 2, None], pa.int32())}))
    for text, expected in (("a IN (1, NULL)", [(1,)]), ("a NOT IN (1, NULL)", []), ("a IN (NULL)", [])):
        assert table.to_spark(spark, filter=text).collect() == expected, text


def test_conditions_on_a_union_of_scans_do_not_reach_the_reader_of_orc(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.orc_union", "a INT, d DATE", options={"file.format": "orc"})
    table.append([{"a": 1, "d": dt.date(2026, 1, 1)}, {"a": 2, "d": dt.date(2026, 1, 2)}])
    catalog.alter_table("d.orc_union", UpdateColumnType(column="a", type="BIGINT"))
    table = catalog.load_table("d.orc_union")
    table.append([{"a": 3, "d": dt.date(2026, 1, 3)}, {"a": None, "d": None}])
    frame = table.to_spark(spark, options={"incremental-between": "0,2"})
    assert "FileScan orc" in frame._jdf.queryExecution().executedPlan().toString()
    assert sorted(frame.where("a IN (1, 3, NULL)").select("a").collect()) == [(1,), (3,)]
    assert frame.where("a NOT IN (1, NULL)").count() == 0
    assert frame.where("d >= DATE '2026-01-02'").count() == 2


# Pruning, projection, time travel


@pytest.fixture(scope="module")
def days(shared: Catalog) -> Table:
    table = shared.create_table(
        "d.days", "n BIGINT, k INT, day STRING", partition_by=["day"], options={"bucket": "3", "bucket-key": "k"}
    )
    for first in (0, 300):
        numbers = range(first, first + 300)
        days = [f"d{n % 4}" for n in numbers]
        table.append(pa.table({"n": list(numbers), "k": pa.array([n % 7 for n in numbers], pa.int32()), "day": days}))
    return table


@pytest.mark.parametrize(
    ("text", "files"),
    [(None, 24), ("day = 'd1'", 6), ("day = 'd1' AND k = 3", 2), ("n >= 300", 12), ("day = 'nowhere'", 0)],
)
def test_spark_is_given_only_the_files_that_may_have_rows(
    spark: SparkSession, days: Table, text: str | None, files: int
) -> None:
    frame = days.to_spark(spark, filter=text)
    assert files_opened(frame) == files
    assert frame.count() == days.to_arrow(filter=text).num_rows


@pytest.mark.parametrize(
    ("own", "text", "files"),
    [
        (None, "day = 'd1'", 6),
        (None, "day = 'd1' AND k = 3", 2),
        (None, "n + 1 > 0 AND n >= 300L", 12),
        ("day = 'd1'", "k = 3", 2),
        ("n >= 300", "day IN ('d1', 'd2') AND n < 0", 0),
    ],
)
def test_a_later_where_keeps_files_closed_too(
    spark: SparkSession, days: Table, own: str | None, text: str, files: int
) -> None:
    frame = days.to_spark(spark, filter=own).where(text)
    assert files_opened(frame) == files
    # What Spark itself keeps of all rows that to_arrow has.
    everything = spark.createDataFrame(days.to_arrow(filter=own).to_pandas())
    assert frame.select("n").orderBy("n").collect() == everything.where(text).select("n").orderBy("n").collect()


def test_a_join_opens_the_files_of_the_partitions_that_the_other_side_has(spark: SparkSession, days: Table) -> None:
    other = spark.createDataFrame([("d1", 1), ("d2", 0)], "day STRING, wanted INT").where("wanted = 1")
    joined = days.to_spark(spark).join(other.hint("broadcast"), "day")
    assert joined.count() == 150
    assert "dynamicpruning" in plan_of(joined)


@READ_FORMAT_IF_SLOW
def test_counts_of_a_dataframe_come_from_metadata(spark: SparkSession, days: Table) -> None:
    whole = days.to_spark(spark).groupBy().count()
    assert (whole.collect(), BY_SPARK in plan_of(whole)) == ([(600,)], False)
    # The filter of the read is not forgotten where an aggregate replaces the scan.
    assert days.to_spark(spark, filter="day = 'd1'").count() == 150
    assert days.to_spark(spark, filter="n >= 300").count() == 300


def test_each_way_to_name_a_snapshot_reads_it(spark: SparkSession, days: Table) -> None:
    first = days._store.load_snapshot(1)
    if "one" not in days.inspect.tags()["tag_name"].to_pylist():
        days.create_tag("one", snapshot_id=1)
    frames = [
        days.to_spark(spark, snapshot_id=1),
        days.to_spark(spark, tag="one"),
        days.to_spark(spark, timestamp_millis=first.time_millis),
        days.to_spark(spark, options={"scan.snapshot-id": "1"}),
    ]
    assert [frame.agg(F.count("*"), F.max("n")).first() for frame in frames] == [(300, 299)] * 4
    assert days.to_spark(spark).count() == 600
    with pytest.raises(NotFoundError):
        days.to_spark(spark, snapshot_id=99)
    with pytest.raises(NotFoundError):
        days.to_spark(spark, columns=["nothing"])


def test_dataframe_keeps_its_snapshot_while_others_commit(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.kept", "n BIGINT")
    table.append(pa.table({"n": [1]}))
    frame = table.to_spark(spark)
    table.append(pa.table({"n": [2]}))
    assert (frame.collect(), table.to_spark(spark).count()) == ([(1,)], 2)
    table.overwrite(pa.table({"n": [3]}))
    assert frame.where("n > 0").collect() == [(1,)]


def test_table_without_rows_has_its_columns(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.empty", "a INT NOT NULL COMMENT 'first', t TIME(3), m MAP<STRING, INT>")
    for frame in (table.to_spark(spark), table.to_spark(spark, filter="a > 1")):
        assert frame.collect() == []
        assert [field.simpleString() for field in frame.schema.fields] == ["a:int", "t:int", "m:map<string,int>"]
    assert table.to_spark(spark).schema["a"].metadata == {"comment": "first"}


def test_comments_of_columns_come_with_a_native_scan(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.commented", "a INT COMMENT 'first'")
    table.append(pa.table({"a": pa.array([1], pa.int32())}))
    assert table.to_spark(spark).schema["a"].metadata == {"comment": "first"}


def test_python_path_prunes_filters_and_picks_columns_as_well(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table(
        "d.avro", "n BIGINT, t TIME(3), day STRING", partition_by=["day"], options={"file.format": "avro"}
    )
    for first in (0, 10):
        numbers = list(range(first, first + 10))
        times = pa.array([n * 1000 for n in numbers], pa.int32()).cast(pa.time32("ms"))
        table.append(pa.table({"n": numbers, "t": times, "day": [f"d{n % 2}" for n in numbers]}))
    frame = table.to_spark(spark, columns=["t", "n"], filter="day = 'd1' AND n > 4")
    assert sorted(frame.collect()) == [(n * 1000, n) for n in range(5, 20, 2)]
    assert "MapInArrow" in plan_of(frame)
    assert BY_SPARK not in plan_of(frame)


ODD_VALUES: Final = ["a b", "50%", "%2F", "a/b", "Ünï☃", "a=b", "a+b", "a#b?c", "a'b\"c", "a:b", "*[x]{y}", "", None]


def test_odd_partition_values_are_read_natively(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.odd_values", "n INT, p STRING", partition_by=["p"])
    table.append(pa.table({"n": pa.array(range(len(ODD_VALUES)), pa.int32()), "p": ODD_VALUES}))
    frame = table.to_spark(spark)
    assert sorted(frame.collect()) == list(enumerate(ODD_VALUES))
    assert BY_SPARK in plan_of(frame)
    assert "MapInArrow" not in plan_of(frame)
    assert table.to_spark(spark, filter="p = 'a#b?c'").collect() == [(7, "a#b?c")]


@READ_FORMAT_IF_SLOW
def test_table_in_a_directory_with_an_odd_name_is_read_natively(spark: SparkSession, tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path / "100% Ünï #1"))
    catalog.create_database("d")
    table = catalog.create_table("d.t", "n INT")
    table.append(pa.table({"n": pa.array([1], pa.int32())}))
    assert table.to_spark(spark).collect() == [(1,)]
    assert spark.read.format("penstock").load(table.location).collect() == [(1,)]


@pytest.mark.parametrize("files", [200, pytest.param(2000, marks=pytest.mark.slow)])
def test_many_files_are_planned_without_listing_them(
    spark: SparkSession, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, files: int
) -> None:
    table = catalog.create_table("d.many", "n INT, p INT", partition_by=["p"])
    numbers = pa.array(range(files), pa.int32())
    table.append(pa.table({"n": numbers, "p": numbers}))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    table.to_spark(spark).schema  # warm: the first use of a reader loads its classes  # noqa: B018
    context = spark.sparkContext
    context.setJobGroup(table.location, "planning")
    frame = table.to_spark(spark)
    # Listing more than 32 directories would take Spark a job, and 2,000 take 4 s. Jobs are noted in order.
    spark.range(1).collect()
    context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type] # None removes it
    while not (jobs := context.statusTracker().getJobIdsForGroup(table.location)):
        time.sleep(0.01)
    assert len(jobs) == 1
    assert files_opened(frame) == files
    assert [path.name for path in tmp_path.iterdir()] == ["warehouse"]
    assert files_opened(frame.where("p BETWEEN 7 AND 8")) == 2
    assert frame.where("p BETWEEN 7 AND 8").agg(F.sum("n")).first() == (15,)


@READ_FORMAT_IF_SLOW
def test_session_zone_of_the_tests_has_daylight_saving(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == SESSION_ZONE
