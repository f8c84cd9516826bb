"""Which files a Hive-style directory holds, and what their directories say."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from penstock import Catalog, NotFoundError, SchemaMismatchError
from penstock.catalog.place import load_location
from penstock.format.types.data_types import DataField
from penstock.format.types.text import parse_sql_type
from penstock.io.memory import MemoryFileIO
from penstock.table.write.imports import HiveFile, constant_array, plan_hive_import

if TYPE_CHECKING:
    from penstock.table.ref import TableRef


@pytest.fixture
def ref() -> TableRef:
    """A table partitioned by a date and a number."""
    catalog = Catalog(f"memory://{uuid.uuid4()}/warehouse")
    catalog.create_database("shop")
    columns = "id BIGINT, day DATE, hour INT"
    return load_location(catalog.create_table("shop.t", columns, partition_by=["day", "hour"]).location)


def _directory(*paths: str) -> tuple[MemoryFileIO, str]:
    name = str(uuid.uuid4())
    file_io, root = MemoryFileIO(name), f"memory://{name}/old"
    for path in paths:
        file_io.write(f"{root}/{path}", b"PAR1")
    return file_io, root


def test_files_come_with_typed_partitions_in_the_tables_order(ref: TableRef) -> None:
    file_io, root = _directory(
        "hour=7/day=2026-01-02/b.parquet",
        "hour=7/day=2026-01-02/a.parquet",
        "hour=__HIVE_DEFAULT_PARTITION__/day=2026-01-01/c.parq",
        "hour=7/day=2026-01-02/_SUCCESS",
        "hour=7/day=2026-01-02/.a.parquet.crc",
        "hour=7/day=2026-01-02/notes.txt",
        "_temporary/0/x.parquet",
    )
    planned = plan_hive_import(ref, file_io, root)
    day = f"{root}/hour=7/day=2026-01-02"
    assert planned == (
        HiveFile(path=f"{day}/a.parquet", size=4, partition=(("day", "2026-01-02"), ("hour", "7"))),
        HiveFile(path=f"{day}/b.parquet", size=4, partition=(("day", "2026-01-02"), ("hour", "7"))),
        HiveFile(
            path=f"{root}/hour=__HIVE_DEFAULT_PARTITION__/day=2026-01-01/c.parq",
            size=4,
            partition=(("day", "2026-01-01"), ("hour", None)),
        ),
    )


@pytest.mark.parametrize(
    ("path", "cause"),
    [
        ("day=2026-01-02/a.parquet", "partitioned by day, hour"),
        ("a.parquet", "no partition directories"),
        ("day=2026-01-02/hour=7/more=1/a.parquet", "below day, hour, more"),
        ("day=2026-01-02/hour=7/hour=8/a.parquet", "below day, hour, hour"),
        ("2026/01/a.parquet", "not named column=value"),
        ("day=2026-01-02/hour=seven/a.parquet", "'seven' is not a value of the column's type INT"),
        ("day=2026-13-02/hour=7/a.parquet", "'2026-13-02'"),
        (
            "day=2026-01-02/hour=__DEFAULT_PARTITION__/a.parquet",
            "rename the directory to hour=__HIVE",
        ),
    ],
)
def test_directories_that_do_not_fit_the_table_are_refused(ref: TableRef, path: str, cause: str) -> None:
    file_io, root = _directory(path)
    with pytest.raises(SchemaMismatchError, match=cause):
        plan_hive_import(ref, file_io, root)


def test_a_directory_without_parquet_is_not_found(ref: TableRef) -> None:
    file_io, root = _directory("day=2026-01-02/hour=7/a.orc")
    with pytest.raises(NotFoundError, match="no Parquet file"):
        plan_hive_import(ref, file_io, root)


@pytest.mark.parametrize(
    ("sql_type", "text", "value"),
    [
        ("STRING", "a/b", "a/b"),
        ("BIGINT", "-5", -5),
        ("DATE", "2026-01-02", dt.date(2026, 1, 2)),
        ("DECIMAL(5, 2)", "1.5", Decimal("1.50")),
        ("DOUBLE", "1.5", 1.5),
        ("BOOLEAN", "True", True),
        ("TIMESTAMP(3)", "2026-01-02 03:04:05", dt.datetime(2026, 1, 2, 3, 4, 5)),  # noqa: DTZ001 - TIMESTAMP has no zone
        ("INT", None, None),
    ],
)
def test_the_text_of_a_directory_becomes_a_value_of_the_column(sql_type: str, text: str | None, value: object) -> None:
    field = DataField(id=0, name="c", type=parse_sql_type(sql_type))
    assert constant_array(field, text, 2).to_pylist() == [value, value]
