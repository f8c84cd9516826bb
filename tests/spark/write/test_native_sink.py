"""Appends that Spark's own Parquet writer writes: when it does, and that nothing differs from what we would write."""

import datetime as dt
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from pyspark.sql import types as spark_types
from tests.spark.conftest import SESSION_ZONE
from tests.spark.ways import READ_FORMAT_IF_SLOW

import penstock
from penstock.io.local import LocalFileIO
from penstock.spark.write import native_sink, sink

pytestmark = READ_FORMAT_IF_SLOW

TYPES = {
    "bo": "BOOLEAN",
    "ti": "TINYINT",
    "si": "SMALLINT",
    "i": "INT",
    "bi": "BIGINT",
    "f": "FLOAT",
    "d": "DOUBLE",
    "s": "STRING",
    "b": "BYTES",
    "d5": "DECIMAL(5, 2)",
    "d18": "DECIMAL(18, 4)",
    "d38": "DECIMAL(38, 10)",
    "dt": "DATE",
    "ts": "TIMESTAMP(6)",
    "t4": "TIMESTAMP(4)",
    "ltz": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "a": "ARRAY<BIGINT>",
    "m": "MAP<STRING, TIMESTAMP(6)>",
    "r": "ROW<x INT, y ARRAY<ROW<z STRING, w TIMESTAMP(6) WITH LOCAL TIME ZONE>>>",
}
COLUMNS = ", ".join(f"{name} {sql}" for name, sql in TYPES.items())
# The ends of what the types hold; before 1900 the zone was minutes off whole hours; in 2024-11-03 an hour comes twice.
OLD, EDGE, ODD, TWICE = (
    dt.datetime.fromisoformat(text)
    for text in ("0001-01-01", "9999-12-31 23:59:59.999999", "1883-11-18 12:03:04.000005", "2024-11-03 01:30:00")
)


def rows(moments: tuple[dt.datetime, ...] = (OLD, EDGE, ODD, TWICE)) -> list[tuple[Any, ...]]:
    """A row of nulls, and one for each moment with the ends of all ranges."""
    numbers = [(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)]
    found: list[tuple[Any, ...]] = [(None,) * len(TYPES)]
    for at, moment in enumerate(moments):
        end, sign = at % 2, "-+"[at % 2]
        utc = moment.replace(tzinfo=dt.UTC)
        inner = [("é" * at, utc), (None, None), None]
        found.append(
            (
                end == 1,
                *(ends[end] for ends in numbers),
                (0.0, 3.4e38, float("-inf"), -0.0)[at],
                (-0.0, 0.0, float("nan"), 1e-300)[at],
                ("", "z", "\U0001f600", "a\x00b")[at],
                (b"", b"\xff", b"\x00", b"x" * 40)[at],
                Decimal(f"{sign}999.99"),
                Decimal(f"{sign}99999999999999.9999"),
                Decimal(f"{sign}9999999999999999999999999999.9999999999"),
                moment.date(),
                moment,
                moment,
                utc,
                ([], [1, None], None, [-(2**63)])[at],
                ({}, {"k": moment}, {"k": None}, None)[at],
                ((at, inner), (None, None), (at, []), None)[at],
            )
        )
    return found


@pytest.fixture
def catalog(tmp_path: Path) -> penstock.Catalog:
    found = penstock.Catalog(f"{tmp_path}/w h%20é#{{a}}")
    found.create_database("d")
    return found


def frame(spark: SparkSession, table: penstock.Table, data: list[tuple[Any, ...]]) -> DataFrame:
    """A DataFrame of the table's types, made of Arrow data so that Python's own time zone has no part in it."""
    schema = table.arrow_schema
    arrays = [pa.array([row[at] for row in data], field.type) for at, field in enumerate(schema)]
    wanted = table.to_spark(spark).schema
    return spark.createDataFrame(pa.Table.from_arrays(arrays, names=schema.names), wanted).coalesce(1)


def without_native(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink, "write_natively", lambda *_arguments: None)


def data_files(table: penstock.Table) -> list[Path]:
    return sorted(Path(table.location).rglob("bucket-*/*"))


def leftovers(table: penstock.Table) -> list[str]:
    return sorted(path.name for path in Path(table.location).iterdir() if path.name.startswith("."))


def leaves(path: Path) -> list[tuple[object, ...]]:
    schema = pq.ParquetFile(path).schema
    columns = (schema.column(index) for index in range(len(schema)))
    return [(c.path, c.physical_type, str(c.logical_type), c.length, c.converted_type) for c in columns]


def field_ids(path: Path) -> list[bytes]:
    return [field.metadata[b"PARQUET:field_id"] for field in pq.read_schema(path)]


def described(table: penstock.Table) -> list[dict[str, Any]]:
    wanted = ("record_count", "null_value_counts", "min_value_stats", "max_value_stats", "schema_id", "bucket")
    return table.files().select([name for name in wanted if name in table.files().column_names]).to_pylist()


@pytest.mark.usefixtures("compiled")
def test_rows_types_and_statistics_are_those_of_our_own_writer(
    spark: SparkSession, catalog: penstock.Catalog, native: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs, own = (catalog.create_table(f"d.{name}", COLUMNS) for name in ("theirs", "own"))
    theirs.append(frame(spark, theirs, rows()))
    assert native == [True]
    without_native(monkeypatch)
    own.append(frame(spark, own, rows()))

    assert repr(theirs.to_arrow().to_pylist()) == repr(own.to_arrow().to_pylist())
    assert repr(own.to_arrow().drop_columns(["m", "r"]).to_pylist()[1]["ts"]) == repr(OLD)
    (native_file,), (own_file,) = data_files(theirs), data_files(own)
    assert leaves(native_file) == leaves(own_file)
    assert field_ids(native_file) == field_ids(own_file)
    assert described(theirs) == described(own)
    assert any("999.99" in str(row) for row in described(own))
    assert leftovers(theirs) == []
    assert spark.conf.get("spark.sql.parquet.outputTimestampType") == "INT96"


def test_spark_reads_the_same_rows_back(spark: SparkSession, catalog: penstock.Catalog, native: list[bool]) -> None:
    table = catalog.create_table("d.t", COLUMNS)
    given = frame(spark, table, rows())
    table.append(given)
    assert native == [True]
    found = table.to_spark(spark)
    assert found.schema.names == given.schema.names
    assert all("parquet.field.id" not in field.metadata for field in found.schema)
    assert sorted(map(repr, found.toArrow().to_pylist())) == sorted(map(repr, given.toArrow().to_pylist()))


def test_ranges_and_null_counts_of_each_type_are_those_of_our_own_writer(
    spark: SparkSession, catalog: penstock.Catalog, native: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "x" * 5000
    numbers = [None, 0.0, -0.0, 1.5, float("nan"), float("inf"), float("-inf")]
    cases: dict[str, list[Any]] = {
        "plus DOUBLE": [0.0, 1.0],
        "minus DOUBLE": [-0.0, -1.0],
        "nan DOUBLE": [1.0, float("nan")],
        "infinite FLOAT": [float("-inf"), 2.0],
        "mixed DOUBLE": numbers,
        "nans FLOAT": [float("nan"), None],
        "empty STRING": [None, None],
        "long STRING": [long, None, "a"],
        "longs STRING": [long, long],
    }
    for text, values in cases.items():
        name, sql = text.split()
        tables = [catalog.create_table(f"d.{name}_{kind}", f"c {sql}") for kind in ("theirs", "own")]
        with monkeypatch.context() as patched:
            tables[0].append(frame(spark, tables[0], [(value,) for value in values]))
            without_native(patched)
            tables[1].append(frame(spark, tables[1], [(value,) for value in values]))
        found = [described(table) for table in tables]
        assert repr(found[0]) == repr(found[1]), text
    assert native == [True] * len(cases)


def test_tasks_without_rows_leave_no_file_and_no_rows_no_snapshot(
    spark: SparkSession, catalog: penstock.Catalog, native: list[bool]
) -> None:
    table = catalog.create_table("d.t", "id BIGINT")
    assert table.append(spark.range(0)) is None
    assert data_files(table) == []
    some = spark.range(0, 40, 1, 4).where("id < 10 or id >= 30")
    assert table.append(some).total_record_count == 20
    assert native == [True, True]
    assert len(data_files(table)) == 2
    assert table.to_arrow()["id"].to_pylist() == [*range(10), *range(30, 40)]
    assert leftovers(table) == []


def test_columns_come_in_any_order(spark: SparkSession, catalog: penstock.Catalog, native: list[bool]) -> None:
    table = catalog.create_table("d.t", "`a.b` BIGINT, `c d` STRING, `e=,;` BIGINT")
    table.append(spark.range(3).select(F.col("id").alias("e=,;"), F.lit("x").alias("c d"), (-F.col("id")).alias("a.b")))
    assert native == [True]
    assert table.to_arrow().to_pylist() == [{"a.b": -n, "c d": "x", "e=,;": n} for n in range(3)]


@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "none", "lz4", "lz4_raw"])
def test_files_have_the_codec_of_the_table(
    spark: SparkSession, catalog: penstock.Catalog, native: list[bool], codec: str
) -> None:
    options = {"file.compression": codec, "file.suffix.include.compression": "true", "data-file.prefix": "part-"}
    table = catalog.create_table("d.t", "id BIGINT", options=options)
    table.append(spark.range(10_000))
    assert native == [True]
    for path in data_files(table):
        assert path.name.startswith("part-")
        found = pq.ParquetFile(path).metadata.row_group(0).column(0).compression
        assert found == {"none": "UNCOMPRESSED", "lz4_raw": "LZ4"}.get(codec, codec.upper())
    assert table.to_arrow().num_rows == 10_000


def test_the_zstd_level_of_the_table_is_followed(spark: SparkSession, catalog: penstock.Catalog) -> None:
    text = spark.range(40_000).select(F.sha2(F.col("id").cast("string"), 256).substr(1, 9).alias("s")).coalesce(1)
    sizes = []
    for level in ("1", "19"):
        table = catalog.create_table(f"d.t{level}", "s STRING", options={"file.compression.zstd-level": level})
        table.append(text)
        sizes.append(data_files(table)[0].stat().st_size)
    assert sizes[1] < sizes[0]


def test_files_are_closed_by_rows_and_about_by_size(
    spark: SparkSession, catalog: penstock.Catalog, native: list[bool]
) -> None:
    table = catalog.create_table("d.t", "id BIGINT")
    table.with_options({"target-file-row-num": "400"}).append(spark.range(0, 1000, 1, 1))
    assert [row["record_count"] for row in described(table)] == [400, 400, 200]
    assert table.to_arrow()["id"].to_pylist() == list(range(1000))
    table.with_options({"target-file-size": "100 kb"}).append(spark.range(0, 100_000, 1, 1))
    assert native == [True, True]
    assert 3 < len(data_files(table)) - 3 < 20


@pytest.mark.parametrize(
    ("columns", "options", "partition_by"),
    [
        ("id BIGINT", {"bucket": "2", "bucket-key": "id"}, []),
        ("id BIGINT", {"file.format": "orc"}, []),
        ("id BIGINT", {"file.compression": "brotli"}, []),
        ("id BIGINT", {"file.block-size": "1 mb"}, []),
        ("id BIGINT", {"parquet.page.size": "1 mb"}, []),
        ("id BIGINT", {"partition.sink-strategy": "hash"}, []),
        ("id BIGINT", {"write-buffer-for-append": "true"}, []),
        ("id BIGINT DEFAULT 7", {}, []),
    ],
)
def test_other_tables_take_the_way_over_arrow(
    spark: SparkSession,
    catalog: penstock.Catalog,
    native: list[bool],
    columns: str,
    options: dict[str, str],
    partition_by: list[str],
) -> None:
    table = catalog.create_table("d.t", columns.replace(" DEFAULT 7", ""), options=options, partition_by=partition_by)
    if "DEFAULT" in columns:
        table = catalog.alter_table("d.t", penstock.catalog.changes.UpdateColumnDefault(column=("id",), default="7"))
    table.append(spark.range(5))
    assert native == [False]
    assert sorted(int(value) for value in table.to_arrow()["id"].to_pylist()) == list(range(5))


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("CHAR(3)", "'abc'"),
        ("VARCHAR(3)", "'abc'"),
        ("BINARY(1)", "X'01'"),
        ("TIMESTAMP(0)", "TIMESTAMP_NTZ'2024-01-01 00:00:00'"),
        ("TIMESTAMP(3)", "TIMESTAMP_NTZ'2024-01-01 00:00:00'"),
        ("TIMESTAMP(9)", "TIMESTAMP_NTZ'2024-01-01 00:00:00'"),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP'2024-01-01 00:00:00'"),
        ("TIME", "1"),
        ("BIGINT", "1"),
        ("DOUBLE", "1.5F"),
        ("ROW<a INT, b CHAR(1)>", "named_struct('a', 1, 'b', 'x')"),
        ("ARRAY<TIMESTAMP(3)>", "array(TIMESTAMP_NTZ'2024-01-01 00:00:00')"),
        ("MAP<STRING, TIMESTAMP(9)>", "map('a', TIMESTAMP_NTZ'2024-01-01 00:00:00')"),
        ("MULTISET<STRING>", "map('a', 1)"),
        ("ARRAY<INT NOT NULL>", "array(nullif(1, 2))"),
    ],
)
def test_other_types_take_the_way_over_arrow(
    spark: SparkSession, catalog: penstock.Catalog, native: list[bool], sql: str, value: str
) -> None:
    table = catalog.create_table("d.t", f"c {sql}")
    table.append(spark.sql(f"SELECT {value} AS c"))
    assert native == [False]
    assert table.to_arrow().num_rows == 1


PARTITIONS: tuple[tuple[Any, ...], ...] = (
    ("", 1, dt.date(2026, 1, 1), True),
    (None, 1, dt.date(2026, 1, 1), True),
    ("a/b=c%", None, dt.date(1500, 1, 1), False),
    ("x" * 60, -(2**63), None, None),
    (None, None, None, None),
    ("é ", 2**63 - 1, dt.date(9999, 12, 31), False),
)


def test_python_workers_write_to_partitions_one_file_of_each_in_a_task_in_order(
    spark: SparkSession, catalog: penstock.Catalog, native: list[bool]
) -> None:
    columns = "id INT, s STRING, n BIGINT, d DATE, b BOOLEAN"
    table = catalog.create_table("d.t", columns, partition_by=["s", "n", "d", "b"])
    data = [(number, *PARTITIONS[number % len(PARTITIONS)]) for number in range(60)]
    table.append(frame(spark, table, data).coalesce(1))
    assert native == [False]
    assert sorted(map(tuple, (row.values() for row in table.to_arrow().to_pylist()))) == data
    assert table.partitions()["record_count"].to_pylist() == [10] * len(PARTITIONS)
    assert len(data_files(table)) == len(PARTITIONS)
    for path in data_files(table):
        ids = pq.ParquetFile(path).read(["id"])["id"].to_pylist()
        assert ids == sorted(ids)
    assert leftovers(table) == []


def test_columns_that_do_not_fit_are_refused_as_ever(
    spark: SparkSession, catalog: penstock.Catalog, native: list[bool]
) -> None:
    table = catalog.create_table("d.t", "id BIGINT")
    for given in (
        spark.range(1).toDF("ID"),
        spark.range(1).selectExpr("id", "id AS id"),
        spark.sql("SELECT 'x' AS id"),
    ):
        with pytest.raises(penstock.SchemaMismatchError, match="id"):
            table.append(given)
    assert native == [False] * 3


def test_null_in_a_not_null_column_is_refused_and_leaves_nothing(
    spark: SparkSession, catalog: penstock.Catalog, native: list[bool]
) -> None:
    table = catalog.create_table("d.t", "id BIGINT NOT NULL, s STRING NOT NULL")
    with pytest.raises(penstock.SchemaMismatchError, match="'s' is NOT NULL"):
        table.append(spark.range(4).selectExpr("id", "if(id = 3, null, repeat('x', 5000)) AS s"))
    assert native == []  # it was Spark that wrote: no second try
    assert data_files(table) == []
    assert leftovers(table) == []
    table.append(spark.range(4).selectExpr("nullif(id, 9) AS id", "repeat('x', 5000) AS s"))
    assert native == [True]
    assert table.to_arrow()["id"].to_pylist() == [0, 1, 2, 3]
    assert sorted(row["id"] for row in table.to_spark(spark).collect()) == [0, 1, 2, 3]


def test_a_failing_task_leaves_no_file_and_no_staging_directory(
    spark: SparkSession, catalog: penstock.Catalog, native: list[bool]
) -> None:
    table = catalog.create_table("d.t", "id BIGINT")
    with pytest.raises(Exception, match="on purpose"):
        table.append(spark.range(0, 1000, 1, 4).selectExpr("if(id = 900, raise_error('on purpose'), id) AS id"))
    assert native == []
    assert data_files(table) == []
    assert leftovers(table) == []
    assert table.append(spark.range(3)).id == 1


def test_files_are_staged_without_files_of_checksums(
    spark: SparkSession, catalog: penstock.Catalog, native: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.create_table("d.t", "id BIGINT")
    staged: set[str] = set()
    original = LocalFileIO.rename_file

    def look(self: Any, source: str, target: str) -> None:
        staged.update(path.name for path in Path(source).parent.iterdir())
        original(self, source, target)

    monkeypatch.setattr(LocalFileIO, "rename_file", look)
    table.append(spark.range(0, 100, 1, 2))
    assert native == [True]
    assert any(name.endswith(".parquet") for name in staged)
    assert not any(name.endswith(".crc") for name in staged)


def test_a_file_that_cannot_be_moved_leaves_none(
    spark: SparkSession, catalog: penstock.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.create_table("d.t", "id BIGINT")
    moved: list[str] = []
    original = LocalFileIO.rename_file

    def fail_second(self: Any, source: str, target: str) -> None:
        if moved:
            raise penstock.StorageError("the disk is full", False)  # noqa: FBT003 - positional, so that pickling works
        moved.append(target)
        original(self, source, target)

    monkeypatch.setattr(LocalFileIO, "rename_file", fail_second)
    with pytest.raises(penstock.StorageError, match="full"):
        table.append(spark.range(0, 100, 1, 3))
    assert len(moved) == 1
    assert data_files(table) == []
    assert leftovers(table) == []


def test_appends_of_two_threads_do_not_meet(spark: SparkSession, catalog: penstock.Catalog, native: list[bool]) -> None:
    catalog.create_table("d.t", "id BIGINT, at TIMESTAMP(6) WITH LOCAL TIME ZONE")

    def append(number: int) -> None:
        first = number * 1000
        at = F.timestamp_seconds(F.col("id")).alias("at")
        catalog.load_table("d.t").append(spark.range(first, first + 1000).select("id", at))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(append, range(6)))
    table = catalog.load_table("d.t")
    assert native == [True] * 6
    assert sorted(table.to_arrow()["id"].to_pylist()) == list(range(6000))
    assert table.latest_snapshot().id == 6
    assert leftovers(table) == []
    assert spark.conf.get("spark.sql.parquet.outputTimestampType") == "INT96"
    assert spark.conf.get("spark.sql.session.timeZone") == SESSION_ZONE


def test_field_ids_of_another_table_inside_of_a_row_are_not_written(
    spark: SparkSession, catalog: penstock.Catalog, native: list[bool]
) -> None:
    inner = spark_types.StructType().add("a", spark_types.LongType(), metadata={"parquet.field.id": 99})
    table = catalog.create_table("d.t", "r ROW<a BIGINT>")
    table.append(spark.createDataFrame([((1,),)], spark_types.StructType().add("r", inner)))
    assert native == [False]
    assert table.to_arrow()["r"].to_pylist() == [{"a": 1}]


def test_rows_of_a_cached_and_of_a_shuffled_frame_are_those_of_the_session(
    spark: SparkSession, catalog: penstock.Catalog, native: list[bool]
) -> None:
    table = catalog.create_table("d.t", "id BIGINT, zone STRING")
    ordered = spark.range(100).orderBy(F.desc("id")).select("id", F.current_timezone().alias("zone")).cache()
    ordered.count()
    table.append(ordered)
    ordered.unpersist()
    assert native == [True]
    assert table.to_arrow().to_pylist() == [{"id": n, "zone": SESSION_ZONE} for n in range(99, -1, -1)]


def test_an_observed_frame_is_observed(spark: SparkSession, catalog: penstock.Catalog, native: list[bool]) -> None:
    table = catalog.create_table("d.t", "id BIGINT")
    observation = Observation("written")
    table.append(spark.range(7).observe(observation, F.count(F.lit(1)).alias("n")))
    assert native == [False]
    assert observation.get == {"n": 7}


def tried_options(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The options about dictionaries of the writes that follow."""
    tried: list[dict[str, str]] = []
    write = native_sink._write_files

    def noted(*arguments: Any) -> int | None:
        tried.append(dict(arguments[-1]))
        return write(*arguments)

    monkeypatch.setattr(native_sink, "_write_files", noted)
    return tried


def test_appends_try_no_dictionaries_that_the_commit_before_did_without(
    spark: SparkSession, catalog: penstock.Catalog, native: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = tried_options(monkeypatch)
    monkeypatch.setattr(native_sink, "_WRITES_WITHOUT", 4)
    table = catalog.create_table("d.t", "id BIGINT, kind BIGINT, mixed BIGINT", options={"write-only": "true"})
    # One of the two files repeats the values of a column.
    mixed = "IF(id < 25000, 1, id) AS mixed"
    rows = spark.range(0, 50_000, 1, 2).selectExpr("id", "id % 3 AS kind", mixed)
    for _ in range(5):
        table.append(rows)
    table.append(rows.limit(10))
    known = data_files(table)
    table.append(rows)
    for path in set(data_files(table)) - set(known):
        path.unlink()
    table.append(rows)
    assert native == [True] * 8
    without = {"parquet.enable.dictionary#id": "false"}
    # The fifth commit tries all again; the sixth has small files, and those of the seventh cannot be read.
    assert tried == [{}, without, without, without, {}, without, {}, {}]
    for path in known:
        group = pq.ParquetFile(path).metadata.row_group(0)
        if group.num_rows > 100:
            assert [group.column(place).has_dictionary_page for place in (0, 1)] == [False, True]


def test_batches_of_write_stream_try_no_dictionaries_that_the_batch_before_did_without(
    spark: SparkSession, catalog: penstock.Catalog, native: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.create_table("d.t", "id BIGINT, kind BIGINT", options={"write-only": "true"})
    for part in range(3):
        part_rows = spark.range(30_000 * part, 30_000 * (part + 1)).selectExpr("id", "id % 3 AS kind")
        part_rows.coalesce(1).write.mode("append").parquet(f"{tmp_path}/in")
    tried = tried_options(monkeypatch)
    rows = spark.readStream.schema("id BIGINT, kind BIGINT").option("maxFilesPerTrigger", 1).parquet(f"{tmp_path}/in")
    done = {"availableNow": True}
    table.write_stream(rows, checkpoint=f"{tmp_path}/checkpoint", trigger=done).awaitTermination()
    assert native == [True] * 3
    assert tried == [{}, {"parquet.enable.dictionary#id": "false"}, {"parquet.enable.dictionary#id": "false"}]
    found = table.to_arrow().sort_by("id")
    assert found["id"].to_pylist() == list(range(90_000))
    assert found["kind"].to_pylist() == [number % 3 for number in range(90_000)]


@pytest.mark.parametrize("is_stateful", [False, True])
def test_batches_of_a_stream_are_written_natively_too(
    spark: SparkSession, catalog: penstock.Catalog, native: list[bool], tmp_path: Path, *, is_stateful: bool
) -> None:
    table = catalog.create_table("d.t", "id BIGINT")
    for part in range(2):
        spark.range(10 * part, 10 * part + 15).coalesce(1).write.mode("append").parquet(f"{tmp_path}/in")
    rows = spark.readStream.schema("id BIGINT").option("maxFilesPerTrigger", 1).parquet(f"{tmp_path}/in")
    rows = rows.dropDuplicates(["id"]) if is_stateful else rows
    query = (
        rows.writeStream.foreachBatch(lambda batch, _: table.append(batch) and None)
        .option("checkpointLocation", f"{tmp_path}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert native == [True, True]
    assert table.to_arrow().num_rows == (25 if is_stateful else 30)
