"""Directories of files become tables with the same rows, or nothing happens; and tables become such directories."""

from __future__ import annotations

import datetime as dt
import gzip
import json
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

import penstock
from penstock.datafile.spark_types import unstored_types

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def catalog(tmp_path: Path) -> penstock.Catalog:
    return penstock.Catalog(tmp_path / "warehouse")


@pytest.fixture
def hive(tmp_path: Path) -> Path:
    """A directory that DuckDB wrote, with a partition of NULL and an empty marker."""
    made = duckdb.sql(
        """SELECT i AS id, i * 1.5 AS price, 'n' || i AS name, 2020 + i % 3 AS year,
           CASE WHEN i % 7 = 0 THEN NULL ELSE '2026-01-0' || (1 + i % 2) END AS dt FROM range(100) t(i)"""
    )
    made.to_parquet(str(tmp_path / "hive"), partition_by=["dt", "year"])
    (tmp_path / "hive" / "_SUCCESS").touch()
    return tmp_path / "hive"


def sorted_rows(rows: pa.Table, key: str = "id") -> list[dict[str, Any]]:
    return rows.sort_by(key).to_pylist()


def test_a_hive_directory_becomes_a_table_with_its_partitions(catalog: penstock.Catalog, hive: Path) -> None:
    done = penstock.convert(catalog, "shop.trips", hive)
    table = catalog.load_table("shop.trips")
    assert done.rows == 100
    assert done.snapshot == table.latest_snapshot()
    assert table.schema.partition_keys == ("dt", "year")
    assert done.plan.columns == "`id` BIGINT, `price` DECIMAL(21, 1), `name` STRING, `dt` STRING, `year` INT"
    columns = ["id", "price", "name", "dt", "year"]
    wanted = duckdb.read_parquet(f"{hive}/**/*.parquet", hive_partitioning=True).to_arrow_table().select(columns)
    found = sorted_rows(table.to_arrow(columns=columns))
    assert [{**row, "dt": row["dt"] and str(row["dt"])} for row in sorted_rows(wanted)] == found


def test_a_dry_run_returns_the_plan_and_creates_nothing(catalog: penstock.Catalog, hive: Path) -> None:
    plan = penstock.convert(catalog, "shop.trips", hive, dry_run=True).plan
    assert (plan.format, plan.rows, plan.partition_by) == ("parquet", 100, ("dt", "year"))
    assert plan.files == len(list(hive.rglob("*.parquet")))
    assert plan.bytes == sum(file.stat().st_size for file in hive.rglob("*.parquet"))
    assert catalog.list_databases() == ()


def test_types_replace_those_that_were_inferred(catalog: penstock.Catalog, tmp_path: Path) -> None:
    directory = tmp_path / "old" / "dt=2026-01-01"
    directory.mkdir(parents=True)
    pq.write_table(pa.table({"id": pa.array([1], pa.int32())}), directory / "a.parquet")
    penstock.convert(catalog, "shop.t", tmp_path / "old", types={"id": "BIGINT", "dt": "DATE"})
    assert str(catalog.load_table("shop.t").to_arrow().schema.types) == "[DataType(int64), DataType(date32[day])]"
    with pytest.raises(penstock.InvalidOptionError, match="no column 'ids' in the source; its columns are id, dt"):
        penstock.convert(catalog, "shop.u", tmp_path / "old", types={"ids": "BIGINT"})


def test_files_that_lack_a_column_have_null_in_it(catalog: penstock.Catalog, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    pq.write_table(pa.table({"id": pa.array([1], pa.int32())}), tmp_path / "old" / "a.parquet")
    pq.write_table(pa.table({"note": ["x"], "id": [2**40]}), tmp_path / "old" / "b.parquet")
    penstock.convert(catalog, "shop.t", tmp_path / "old")
    assert sorted_rows(catalog.load_table("shop.t").to_arrow()) == [
        {"id": 1, "note": None},
        {"id": 2**40, "note": "x"},
    ]


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz", "rows.tsv", "rows.jsonl", "rows.orc"])
def test_other_formats_are_found_by_their_names(name: str, catalog: penstock.Catalog, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    rows = pa.table({"id": [1, 2], "name": ["a", "b"]})
    file = tmp_path / "old" / name
    match name.split(".")[1]:
        case "csv" if name.endswith("gz"):
            file.write_bytes(gzip.compress(b"id,name\n1,a\n2,b\n"))
        case "csv":
            file.write_text("id,name\n1,a\n2,b\n")
        case "tsv":
            file.write_text("id\tname\n1\ta\n2\tb\n")
        case "jsonl":
            file.write_text('{"id": 1, "name": "a"}\n{"id": 2, "name": "b"}\n')
        case _:
            orc.write_table(rows, file)
    assert penstock.convert(catalog, "shop.t", tmp_path / "old").rows == 2
    assert sorted_rows(catalog.load_table("shop.t").to_arrow()) == rows.to_pylist()


def test_a_value_that_does_not_fit_leaves_no_table(catalog: penstock.Catalog, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    lines = "\n".join(str(number) for number in range(600_000))
    (tmp_path / "old" / "a.csv").write_text(f"id\n{lines}\nmany\n")
    with pytest.raises(penstock.SchemaMismatchError, match=r"a\.csv, row 600002, column 'id': 'many' .*--type"):
        penstock.convert(catalog, "shop.t", tmp_path / "old")
    assert catalog.list_tables("shop") == ()


def test_csv_has_the_nulls_and_numbers_that_append_finds(catalog: penstock.Catalog, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "a.csv").write_text('id,f,s,n\n1,NaN,,1\n2,1.5,"",NA\n3,,x,2\n')
    penstock.convert(catalog, "shop.t", tmp_path / "old")
    rows = sorted_rows(catalog.load_table("shop.t").to_arrow())
    assert [(repr(row["f"]), row["s"], row["n"]) for row in rows] == [
        ("nan", None, "1"),
        ("1.5", "", "NA"),
        ("None", "x", "2"),
    ]
    (tmp_path / "old" / "a.csv").write_text("id\n99999999999999999999\n")
    with pytest.raises(penstock.SchemaMismatchError, match="has no value 99999999999999999999"):
        penstock.convert(catalog, "shop.u", tmp_path / "old")
    penstock.convert(catalog, "shop.u", tmp_path / "old", types={"id": "DECIMAL(20, 0)"})
    assert int(catalog.load_table("shop.u").to_arrow()["id"][0].as_py()) == 10**20 - 1


def test_times_of_json_keep_their_zones_or_are_refused(catalog: penstock.Catalog, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "a.json").write_text('{"a": "2026-01-01T00:00:00+01:00"}\n')
    with pytest.raises(penstock.SchemaMismatchError, match=r"a\.json, line 1: .*expected no zone offset.*--type"):
        penstock.convert(catalog, "shop.t", tmp_path / "old")
    penstock.convert(catalog, "shop.t", tmp_path / "old", types={"a": "TIMESTAMP_LTZ(3)"})
    assert catalog.load_table("shop.t").to_arrow()["a"][0].as_py() == dt.datetime(2025, 12, 31, 23, tzinfo=dt.UTC)


def test_times_name_partitions(catalog: penstock.Catalog, tmp_path: Path) -> None:
    source = catalog.create_database("shop") or catalog.create_table("shop.s", "id INT, t TIME(3)", partition_by=["t"])
    source.append([{"id": 1, "t": dt.time(1, 2, 3, 4000)}, {"id": 2, "t": None}])
    penstock.export_parquet(source, tmp_path / "out")
    penstock.convert(catalog, "shop.t", tmp_path / "out", types={"t": "TIME(3)"})
    assert sorted_rows(catalog.load_table("shop.t").to_arrow()) == sorted_rows(source.to_arrow())


def test_a_damaged_file_leaves_no_table(catalog: penstock.Catalog, hive: Path) -> None:
    file = max(hive.rglob("*.parquet"))
    data = file.read_bytes()
    file.write_bytes(data[:8] + bytes(len(data) // 3) + data[8 + len(data) // 3 :])
    with pytest.raises(penstock.SchemaMismatchError, match="cannot be read as parquet"):
        penstock.convert(catalog, "shop.t", hive)
    assert catalog.list_databases() == () or catalog.list_tables("shop") == ()


def test_a_table_without_the_rows_of_the_source_is_removed(
    catalog: penstock.Catalog, hive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = penstock.Table.append

    def lose_some(table: penstock.Table, rows: pa.RecordBatchReader) -> penstock.Snapshot | None:
        return append(table, rows.read_all().slice(1))

    monkeypatch.setattr(penstock.Table, "append", lose_some)
    with pytest.raises(penstock.FormatError, match="99 rows were read back, but the source has 100"):
        penstock.convert(catalog, "shop.t", hive)
    assert catalog.list_tables("shop") == ()


def test_an_existing_table_is_unchanged(catalog: penstock.Catalog, hive: Path) -> None:
    penstock.convert(catalog, "shop.t", hive)
    with pytest.raises(penstock.AlreadyExistsError, match="penstock import"):
        penstock.convert(catalog, "shop.t", hive)
    assert catalog.load_table("shop.t").to_arrow().num_rows == 100


def test_a_directory_that_is_not_a_source_is_refused_with_the_cause(catalog: penstock.Catalog, tmp_path: Path) -> None:
    with pytest.raises(penstock.NotFoundError, match="there is no directory"):
        penstock.convert(catalog, "shop.t", tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(penstock.NotFoundError, match="holds no file to convert"):
        penstock.convert(catalog, "shop.t", tmp_path / "empty")
    pq.write_table(pa.table({"id": [1]}), tmp_path / "one.parquet")
    with pytest.raises(penstock.NotFoundError, match=r"one\.parquet is a file: give its directory"):
        penstock.convert(catalog, "shop.t", tmp_path / "one.parquet")
    with pytest.raises(penstock.InvalidOptionError, match="format 'xml': expected one of parquet"):
        penstock.convert(catalog, "shop.t", tmp_path, format="xml")
    (tmp_path / "mixed").mkdir()
    (tmp_path / "mixed" / "a.csv").write_text("id\n1\n")
    pq.write_table(pa.table({"id": [1]}), tmp_path / "mixed" / "b.parquet")
    with pytest.raises(penstock.InvalidOptionError, match="several formats"):
        penstock.convert(catalog, "shop.t", tmp_path / "mixed")


def test_a_required_column_of_some_files_is_null_in_the_rows_of_the_others(
    catalog: penstock.Catalog, tmp_path: Path
) -> None:
    (tmp_path / "old").mkdir()
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.int64(), nullable=False)])
    pq.write_table(pa.table({"id": [1], "v": [2]}, schema=columns), tmp_path / "old" / "a.parquet")
    pq.write_table(pa.table({"id": [2]}, schema=pa.schema([columns.field(0)])), tmp_path / "old" / "b.parquet")
    penstock.convert(catalog, "shop.t", tmp_path / "old")
    assert sorted_rows(catalog.load_table("shop.t").to_arrow()) == [{"id": 1, "v": 2}, {"id": 2, "v": None}]


def test_partitions_of_nan_and_both_zeros_are_counted_like_others(catalog: penstock.Catalog, tmp_path: Path) -> None:
    for number, text in enumerate(("NaN", "-0.0", "0.0", "__HIVE_DEFAULT_PARTITION__")):
        (tmp_path / "old" / f"p={text}").mkdir(parents=True)
        pq.write_table(pa.table({"id": [number] * (number + 1)}), tmp_path / "old" / f"p={text}" / "a.parquet")
    assert penstock.convert(catalog, "shop.t", tmp_path / "old", types={"p": "DOUBLE"}).rows == 10
    names = catalog.load_table("shop.t").partitions()["partition"].to_pylist()
    assert sorted(names) == ["p=-0.0", "p=0.0", "p=NaN", "p=__DEFAULT_PARTITION__"]


def test_names_with_backquotes_and_points_stay(catalog: penstock.Catalog, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    rows = pa.table({"`a`": [1], "b.c": [2]})
    pq.write_table(rows, tmp_path / "old" / "a.parquet")
    penstock.convert(catalog, "shop.t", tmp_path / "old", types={"`a`": "INT"})
    assert catalog.load_table("shop.t").to_arrow().to_pylist() == rows.to_pylist()


@pytest.mark.parametrize("places", [("a.parquet", "b.parquet"), ("ID=1/a.parquet",)])
def test_columns_that_differ_in_case_only_are_refused(
    places: tuple[str, ...], catalog: penstock.Catalog, tmp_path: Path
) -> None:
    for name, place in zip(("id", "ID"), places, strict=False):
        (tmp_path / "old" / place).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({name: [1]}), tmp_path / "old" / place)
    with pytest.raises(penstock.SchemaMismatchError, match="columns 'id' and 'ID', of files or of directories"):
        penstock.convert(catalog, "shop.t", tmp_path / "old", dry_run=True)


def test_variant_of_other_writers_is_no_row_of_bytes(catalog: penstock.Catalog, tmp_path: Path) -> None:
    source = tmp_path / "old"
    source.mkdir()
    variant = """'{"a": 1}'::JSON::VARIANT AS v"""
    duckdb.sql(f"COPY (SELECT 1 AS k, {variant}) TO '{source}/a.parquet'")
    with pytest.raises(penstock.SchemaMismatchError, match="'v' has values of Spark's type variant, which only Spark"):
        penstock.convert(catalog, "shop.t", source)
    with pytest.raises(penstock.UnsupportedFeatureError, match="Spark's type variant in column 'v'; penstock convert"):
        catalog.migrate(source, "shop.t")


def test_types_that_only_spark_knows_are_refused(catalog: penstock.Catalog, tmp_path: Path) -> None:
    parquet, orc_files = tmp_path / "parquet", tmp_path / "orc"
    parquet.mkdir()
    orc_files.mkdir()
    kind = {"type": "array", "elementType": {"type": "struct", "fields": [{"name": "variant", "type": "variant"}]}}
    fields = [{"name": "interval", "type": "string"}, {"name": "v", "type": kind}]
    note = {"org.apache.spark.sql.parquet.row.metadata": json.dumps({"type": "struct", "fields": fields})}
    pq.write_table(pa.table({"interval": ["x"], "v": [[]]}).replace_schema_metadata(note), parquet / "a.parquet")
    inner = pa.field("n", pa.int64(), metadata={"spark.sql.catalyst.type": "timestamp_ntz"})
    orc.write_table(pa.table({"v": pa.array([{"n": 1}], pa.struct([inner]))}), orc_files / "a.orc")
    assert unstored_types(pq.read_schema(parquet / "a.parquet")) == {"v": "variant"}
    assert unstored_types(pa.schema([pa.field("v", pa.struct([inner]))])) == {"v": "timestamp_ntz"}
    with pytest.raises(penstock.SchemaMismatchError, match="'v' has values of Spark's type variant, which only Spark"):
        penstock.convert(catalog, "shop.t", parquet)
    with pytest.raises(penstock.UnsupportedFeatureError, match="Spark's type variant in column 'v'; penstock convert"):
        catalog.migrate(parquet, "shop.t")


def test_delta_and_iceberg_need_a_session_and_say_so(catalog: penstock.Catalog, tmp_path: Path) -> None:
    (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
    with pytest.raises(penstock.UnsupportedFeatureError, match="a table of delta, which Spark reads"):
        penstock.convert(catalog, "shop.t", tmp_path / "delta")
    (tmp_path / "iceberg" / "metadata").mkdir(parents=True)
    (tmp_path / "iceberg" / "metadata" / "v1.metadata.json").write_text("{}")
    with pytest.raises(penstock.UnsupportedFeatureError, match="a table of iceberg, which Spark reads"):
        penstock.convert(catalog, "shop.t", tmp_path / "iceberg")


def test_a_source_in_a_store_is_read_through_it(hive: Path) -> None:
    catalog = penstock.Catalog(f"memory://{hive.parent.name}/warehouse")
    plain = penstock.Catalog(hive.parent / "w")
    penstock.convert(plain, "shop.t", hive)
    penstock.convert(catalog, "shop.t", hive)
    assert catalog.load_table("shop.t").to_arrow().num_rows == 100


def test_an_export_is_read_equal_by_another_engine(catalog: penstock.Catalog, hive: Path, tmp_path: Path) -> None:
    penstock.convert(catalog, "shop.t", hive)
    table = catalog.load_table("shop.t")
    done = penstock.export_parquet(table, tmp_path / "out", filter="id < 50")
    assert done.rows == 50
    assert (tmp_path / "out" / "dt=2026-01-01" / "year=2020").is_dir()
    found = duckdb.read_parquet(f"{tmp_path}/out/**/*.parquet", hive_partitioning=True).to_arrow_table()
    wanted = table.to_arrow(filter="id < 50")
    assert [{**row, "dt": row["dt"] and str(row["dt"])} for row in sorted_rows(found.select(wanted.column_names))] == (
        sorted_rows(wanted)
    )
    with pytest.raises(penstock.AlreadyExistsError, match="has files already"):
        penstock.export_parquet(table, tmp_path / "out")


def test_an_export_names_directories_as_spark_does(catalog: penstock.Catalog, tmp_path: Path) -> None:
    catalog.create_database("shop")
    table = catalog.create_table("shop.t", "id INT, `b c` STRING, p STRING", partition_by=["b c", "p"])
    texts = ("é", "a/b=c%", " ", ".", "%20", None)
    table.append([{"id": number, "b c": "ü", "p": text} for number, text in enumerate(texts)])
    penstock.export_parquet(table, tmp_path / "out")
    names = {path.name for path in (tmp_path / "out" / "b c=ü").iterdir()}
    assert names == {"p=é", "p=a%2Fb%3Dc%25", "p= ", "p=.", "p=%2520", "p=__HIVE_DEFAULT_PARTITION__"}
    penstock.convert(catalog, "shop.again", tmp_path / "out")
    assert sorted_rows(catalog.load_table("shop.again").to_arrow()) == sorted_rows(table.to_arrow())


@pytest.mark.parametrize("text", ["", "__HIVE_DEFAULT_PARTITION__"])
def test_a_text_that_no_directory_can_have_is_not_exported(
    catalog: penstock.Catalog, tmp_path: Path, text: str
) -> None:
    catalog.create_database("shop")
    table = catalog.create_table("shop.t", "id INT, p STRING", partition_by=["p"])
    table.append([{"id": 1, "p": text}, {"id": 2, "p": "a"}])
    with pytest.raises(penstock.UnsupportedFeatureError, match=rf"table shop\.t: .*text '{text}' .*'p': give filter"):
        penstock.export_parquet(table, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert penstock.export_parquet(table, tmp_path / "out", filter=f"p <> '{text}'").rows == 1


def test_an_export_that_fails_leaves_nothing(catalog: penstock.Catalog, hive: Path, tmp_path: Path) -> None:
    penstock.convert(catalog, "shop.t", hive)

    def fail(*_: object) -> None:
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        penstock.export_parquet(catalog.load_table("shop.t"), tmp_path / "out" / "deep", progress=fail)
    assert list((tmp_path / "out").iterdir()) == []
    with pytest.raises(penstock.UnsupportedFeatureError, match=r"write\.parquet"):
        penstock.export_parquet(catalog.load_table("shop.t"), "s3://bucket/out")


@pytest.mark.parametrize("below", ["", "/deep"])
def test_a_file_is_no_place_for_an_export(catalog: penstock.Catalog, hive: Path, tmp_path: Path, below: str) -> None:
    penstock.convert(catalog, "shop.t", hive)
    (tmp_path / "file").write_text("kept")
    with pytest.raises(penstock.StorageError, match=r"cannot write .*/file.*: Not a directory"):
        penstock.export_parquet(catalog.load_table("shop.t"), f"{tmp_path}/file{below}")
    assert (tmp_path / "file").read_text() == "kept"


def int96_file(directory: Path, values: list[dt.datetime | None], *, with_schema: bool = False) -> None:
    """Write timestamps as INT96, without pyarrow's schema as Spark does it, which stores instants."""
    directory.mkdir(exist_ok=True)
    rows = pa.table({"ts": pa.array(values, pa.timestamp("us")), "id": range(len(values))})
    pq.write_table(rows, directory / "a.parquet", use_deprecated_int96_timestamps=True, store_schema=with_schema)


MOMENT = dt.datetime(2026, 1, 1, 15, 0, 0, 123)  # noqa: DTZ001 - what pyarrow writes
FAR = dt.datetime(9999, 12, 31, 23, 0)  # noqa: DTZ001 - likewise


def test_int96_is_refused_until_its_type_is_given(catalog: penstock.Catalog, tmp_path: Path) -> None:
    int96_file(tmp_path / "old", [MOMENT, None])
    with pytest.raises(penstock.SchemaMismatchError, match=r"'ts'.*INT96.*Spark writes instants") as found:
        penstock.convert(catalog, "shop.t", tmp_path / "old")
    assert "--type ts='TIMESTAMP_LTZ(6)'" in str(found.value)
    assert "--type ts='TIMESTAMP(9)'" in str(found.value)
    with pytest.raises(penstock.SchemaMismatchError, match="INT96"):
        penstock.convert(catalog, "shop.t", tmp_path / "old", types={"ts": "STRING"})
    assert catalog.list_databases() == ()


def test_int96_becomes_the_type_that_is_given(catalog: penstock.Catalog, tmp_path: Path) -> None:
    int96_file(tmp_path / "old", [MOMENT, None, FAR])
    penstock.convert(catalog, "shop.instants", tmp_path / "old", types={"ts": "TIMESTAMP_LTZ(6)", "id": "INT"})
    found = catalog.load_table("shop.instants").to_arrow()
    assert found.schema.types == [pa.timestamp("us", tz="UTC"), pa.int32()]
    assert found["ts"].to_pylist() == [MOMENT.replace(tzinfo=dt.UTC), None, FAR.replace(tzinfo=dt.UTC)]
    penstock.convert(catalog, "shop.clocks", tmp_path / "old", types={"ts": "TIMESTAMP(6)"})
    assert catalog.load_table("shop.clocks").to_arrow()["ts"].to_pylist() == [MOMENT, None, FAR]


def test_int96_that_does_not_fit_the_given_type_is_refused(catalog: penstock.Catalog, tmp_path: Path) -> None:
    int96_file(tmp_path / "old", [MOMENT, FAR])
    with pytest.raises(penstock.SchemaMismatchError, match="more digits than ms hold"):
        penstock.convert(catalog, "shop.t", tmp_path / "old", types={"ts": "TIMESTAMP(3)"})
    with pytest.raises(penstock.FormatError, match="1678 to 2261"):
        penstock.convert(catalog, "shop.t", tmp_path / "old", types={"ts": "TIMESTAMP(9)"})


def test_int96_with_the_schema_of_pyarrow_keeps_its_wall_clock(catalog: penstock.Catalog, tmp_path: Path) -> None:
    int96_file(tmp_path / "old", [MOMENT], with_schema=True)
    done = penstock.convert(catalog, "shop.t", tmp_path / "old")
    assert done.plan.columns == "`ts` TIMESTAMP(9), `id` BIGINT"
    assert catalog.load_table("shop.t").to_arrow()["ts"].cast(pa.timestamp("us")).to_pylist() == [MOMENT]
