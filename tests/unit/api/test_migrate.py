"""``Catalog.migrate``: a Hive-style directory becomes a table by hard links."""

from __future__ import annotations

import datetime as dt
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

import penstock
from penstock import AlreadyExistsError, SchemaMismatchError, UnsupportedFeatureError

INDEXED = Path(__file__).parents[2] / "golden" / "data" / "warehouse" / "java142.db" / "file_index_beside"
DAYS = {"2026-01-01": [1, 2], "2026-01-02": [3], "__HIVE_DEFAULT_PARTITION__": [4]}


@pytest.fixture
def catalog(tmp_path: Path) -> penstock.Catalog:
    catalog = penstock.Catalog(tmp_path / "warehouse")
    catalog.create_database("d")
    return catalog


@pytest.fixture(params=["part-0.snappy.parquet", "000000_0"])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a directory of Parquet files, or of ORC files whose names have no suffix."""
    root = tmp_path / "old"
    for day, ids in DAYS.items():
        below = root / f"dt={day}" / "note=a%3Db"
        below.mkdir(parents=True)
        rows = pa.table({"id": ids, "price": [float(number) for number in ids], "tags": [["x"] for _ in ids]})
        if request.param.endswith("parquet"):
            pq.write_table(rows, below / request.param)
        else:
            orc.write_table(rows, str(below / request.param))
        (below / "_SUCCESS").touch()
    return root


def _expected() -> list[dict[str, Any]]:
    days = {"__HIVE_DEFAULT_PARTITION__": None}
    return [
        {
            "id": number,
            "price": float(number),
            "tags": ["x"],
            "dt": None if day in days else dt.date.fromisoformat(day),
            "note": "a=b",
        }
        for day, ids in DAYS.items()
        for number in ids
    ]


def _rows(table: penstock.Table, where: str | None = None) -> list[dict[str, Any]]:
    return sorted(table.to_arrow(filter=where).to_pylist(), key=lambda row: row["id"])


def _data_files(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file() and path.name != "_SUCCESS"]


def test_files_get_a_second_name_and_the_directory_stays(catalog: penstock.Catalog, directory: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    done = catalog.migrate(
        directory, "d.t", partition_types={"dt": "DATE"}, progress=lambda rows, size: seen.append((rows, size))
    )
    table = done.table
    assert table is not None
    assert (done.files, done.rows, done.partition_by) == (3, 4, ("dt", "note"))
    assert seen[-1] == (4, done.bytes)
    assert _rows(table) == _expected()
    assert _rows(table, "dt = '2026-01-02' AND id >= 3") == _expected()[2:3]
    assert {path.stat().st_nlink for path in _data_files(directory)} == {2}
    assert not table.inspect.fsck().findings
    assert table.update({"price": 0.5}, "id = 3").rows_updated == 1
    table.append([{"id": 5, "price": 5.0, "tags": None, "dt": dt.date(2026, 1, 1), "note": "a=b"}])
    table.compact(strategy="full")
    assert [row["price"] for row in _rows(table)] == [1.0, 2.0, 0.5, 4.0, 5.0]
    before = sum(path.stat().st_size for path in _data_files(directory))
    catalog.drop_table("d.t")
    assert before == done.bytes == sum(path.stat().st_size for path in _data_files(directory))


def test_a_dry_run_creates_no_table_and_a_copy_shares_no_file(catalog: penstock.Catalog, directory: Path) -> None:
    dry = catalog.migrate(directory, "d.t", dry_run=True)
    assert (dry.table, dry.files, dry.columns) == (
        None,
        3,
        ("id BIGINT", "price DOUBLE", "tags ARRAY<STRING>", "dt STRING", "note STRING"),
    )
    assert catalog.list_tables("d") == ()
    table = catalog.migrate(directory, "d.t", copy=True).table
    assert table is not None
    assert {path.stat().st_nlink for path in _data_files(directory)} == {1}
    assert [row["dt"] for row in _rows(table)] == ["2026-01-01", "2026-01-01", "2026-01-02", None]
    with pytest.raises(AlreadyExistsError):
        catalog.migrate(directory, "d.t")


def test_inconsistent_files_are_refused_and_leave_no_table(catalog: penstock.Catalog, tmp_path: Path) -> None:
    root = tmp_path / "old"
    (root / "dt=x").mkdir(parents=True)
    (root / "dt=y").mkdir()
    pq.write_table(pa.table({"id": [1]}), root / "dt=x" / "a.parquet")
    with pytest.raises(SchemaMismatchError, match="not a value of the column's type DATE"):
        catalog.migrate(root, "d.t", partition_types={"dt": "DATE"})
    pq.write_table(pa.table({"id": ["1"]}), root / "dt=y" / "b.parquet")
    with pytest.raises(SchemaMismatchError, match=r"b\.parquet has the columns id STRING, but .* has id BIGINT"):
        catalog.migrate(root, "d.t")
    (root / "dt=y" / "b.parquet").write_bytes(b"a,b,c")
    with pytest.raises(penstock.FormatError, match="neither a Parquet nor an ORC file"):
        catalog.migrate(root, "d.t")
    old = pa.table({"id": pa.array([dt.datetime(2026, 1, 1)])})  # noqa: DTZ001 - as the old type has it
    pq.write_table(old, root / "dt=y" / "b.parquet", use_deprecated_int96_timestamps=True)
    with pytest.raises(UnsupportedFeatureError, match="INT96"):
        catalog.migrate(root, "d.t")
    with pytest.raises(UnsupportedFeatureError, match="object store"):
        catalog.migrate("memory://bucket/old", "d.t")
    assert catalog.list_tables("d") == ()


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ({"n": pa.array([1, 2**32 - 1], pa.uint32())}, "unsigned numbers"),
        ({"n": pa.array([1, 2**64 - 1], pa.uint64())}, "unsigned numbers"),
        ({"n": pa.array([1], pa.timestamp("ns"))}, "timestamps in nanoseconds"),
        ({"n": pa.array([1.5], pa.float16())}, "numbers of two bytes"),
    ],
)
def test_values_that_columns_do_not_have_are_refused_by_a_dry_run_too(
    rows: dict[str, Any], what: str, catalog: penstock.Catalog, tmp_path: Path
) -> None:
    (tmp_path / "old").mkdir()
    pq.write_table(pa.table(rows), tmp_path / "old" / "a.parquet")
    with pytest.raises(UnsupportedFeatureError, match=f"has {what} in column 'n'; penstock import copies"):
        catalog.migrate(tmp_path / "old", "d.t", dry_run=True)


def test_lists_in_an_old_layout_are_refused_by_a_dry_run_too(catalog: penstock.Catalog, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    pq.write_table(pa.table({"n": [[1]]}), tmp_path / "old" / "a.parquet", use_compliant_nested_type=False)
    with pytest.raises(UnsupportedFeatureError, match=r"in an old layout \(n\.list\.item\); penstock import"):
        catalog.migrate(tmp_path / "old", "d.t", dry_run=True)


def test_a_column_of_files_and_directories_is_refused(catalog: penstock.Catalog, tmp_path: Path) -> None:
    (tmp_path / "old" / "ID=1").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), tmp_path / "old" / "ID=1" / "a.parquet")
    with pytest.raises(SchemaMismatchError, match="columns 'id' and 'ID', of files or of directories"):
        catalog.migrate(tmp_path / "old", "d.t", dry_run=True)


def test_index_files_of_other_engines_are_left_and_their_rows_found(catalog: penstock.Catalog, tmp_path: Path) -> None:
    source = penstock.Table.at(str(INDEXED))
    directory = shutil.copytree(INDEXED / "bucket-0", tmp_path / "old")
    indexes = len(list(directory.glob("*.index")))
    done = catalog.migrate(directory, "d.t")
    assert (indexes, done.files) == (source.files().num_rows, source.files().num_rows)
    table = done.table
    assert table is not None
    names = source.schema.field_names
    assert table.to_arrow().sort_by(names[0]).to_pylist() == source.to_arrow().sort_by(names[0]).to_pylist()
    value = source.to_arrow()[names[0]][7].as_py()
    where = penstock.col(names[0]) == value
    assert table.to_arrow(filter=where).to_pylist() == source.to_arrow(filter=where).to_pylist()
    assert not list(Path(table.location).rglob("*.index"))
    assert not table.inspect.fsck().findings
    assert len(list(directory.glob("*.index"))) == indexes


def test_a_file_that_is_only_called_an_index_is_no_data_file(catalog: penstock.Catalog, tmp_path: Path) -> None:
    root = tmp_path / "old"
    root.mkdir()
    pq.write_table(pa.table({"id": [1]}), root / "a.parquet")
    (root / "b.parquet.index").write_bytes(b"x")
    with pytest.raises(penstock.FormatError, match=r"b\.parquet\.index.* neither a Parquet nor an ORC file"):
        catalog.migrate(root, "d.t")


def test_a_table_of_paimon_is_not_adopted(catalog: penstock.Catalog) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"a table of Paimon already: open it by penstock\.Table\.at"):
        catalog.migrate(INDEXED, "d.t")


def test_it_is_a_procedure(catalog: penstock.Catalog, directory: Path) -> None:
    done = penstock.sql(
        None,
        catalog,
        f"CALL sys.migrate_table(connector => 'hive', source_table => '{directory}', target_table => 'd.t', "
        "options => 'write-only=true')",
    )
    assert "4" in str(done)
    table = catalog.load_table("d.t")
    assert table.options["write-only"] == "true"
    assert len(_rows(table)) == 4


def test_all_tables_of_a_database_are_adopted_or_say_why_not(
    catalog: penstock.Catalog, directory: Path, tmp_path: Path
) -> None:
    root = tmp_path / "shop.db"
    root.mkdir()
    directory.rename(root / "orders")
    (root / "broken").mkdir()
    (root / "broken" / "a.parquet").write_bytes(b"a,b,c")
    (root / "plain").mkdir()
    pq.write_table(pa.table({"n": [1, 2]}), root / "plain" / "a.parquet")
    (root / "_temporary").mkdir()
    dry = catalog.migrate_database(root, dry_run=True)
    assert [(each.table, each.result and each.result.files) for each in dry] == [
        ("shop.broken", None),
        ("shop.orders", 3),
        ("shop.plain", 1),
    ]
    assert catalog.list_databases() == ("d",)
    done = penstock.sql(None, catalog, f"CALL sys.migrate_database('hive', '{root}', 'write-only=true')")
    assert isinstance(done, pa.Table)
    assert "neither a Parquet nor an ORC file" in done["error"].to_pylist()[0]
    assert done["rows"].to_pylist() == [0, 4, 2]
    assert catalog.list_tables("shop") == ("orders", "plain")
    assert len(_rows(catalog.load_table("shop.orders"))) == 4
    assert catalog.load_table("shop.plain").options["write-only"] == "true"
    again = catalog.migrate_database(root, "shop")
    assert [type(each.error) for each in again[1:]] == [AlreadyExistsError, AlreadyExistsError]


def test_the_directory_of_one_table_is_not_that_of_a_database(catalog: penstock.Catalog, directory: Path) -> None:
    with pytest.raises(penstock.InvalidOptionError, match="migrate it as a table"):
        catalog.migrate_database(directory)
    with pytest.raises(penstock.NotFoundError):
        catalog.migrate_database(directory / "nothing")
    assert catalog.list_databases() == ("d",)
