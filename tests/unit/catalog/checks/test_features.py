"""What is refused for reading, for writing, and for making a table."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from penstock.catalog.checks.features import check_readable, check_writable
from penstock.errors import UnsupportedFeatureError
from penstock.format.schema import TableSchema
from penstock.io.memory import MemoryFileIO
from penstock.table.ref import TableRef

Build = Callable[..., TableSchema]


def _ref(schema: TableSchema, **options: str) -> TableRef:
    stored = tuple((key.replace("_", "-", 1).replace("_", "."), value) for key, value in options.items())
    return TableRef(
        name="shop.orders",
        location="/w/shop.db/orders",
        file_io=MemoryFileIO("unused"),
        schema=replace(schema, options=stored),
    )


def test_some_tables_are_read_only_here(new_schema: Build) -> None:
    ref = _ref(new_schema("a INT"), **{"metadata.iceberg.storage": "table-location"})
    check_readable(ref)
    with pytest.raises(UnsupportedFeatureError, match=r"shop\.orders: cannot write it: 'metadata.*Iceberg readers"):
        check_writable(ref)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"data_evolution_enabled": "true"}, "data-evolution.enabled"),
        ({"type": "object-table"}, "'type' = 'object-table'"),
        ({"branch": "b1"}, "only the main branch"),
    ],
)
def test_some_tables_cannot_be_read(option: dict[str, str], words: str, new_schema: Build) -> None:
    ref = _ref(new_schema("a INT"), **option)
    for check in (check_readable, check_writable):
        with pytest.raises(UnsupportedFeatureError, match=words):
            check(ref)


def test_a_table_with_a_primary_key_says_what_to_use(new_schema: Build) -> None:
    ref = _ref(replace(new_schema("a INT"), primary_keys=("a",)))
    with pytest.raises(UnsupportedFeatureError, match=r"primary key \(a\).*Flink or Spark with Paimon"):
        check_readable(ref)


def test_an_option_of_one_use_counts(new_schema: Build) -> None:
    ref = _ref(new_schema("a INT")).with_options({"branch": "b1"})
    with pytest.raises(UnsupportedFeatureError, match="main branch"):
        check_readable(ref)


def test_all_reasons_are_reported_at_once(new_schema: Build) -> None:
    ref = _ref(replace(new_schema("a INT"), primary_keys=("a",)), **{"metadata.iceberg.storage": "table-location"})
    with pytest.raises(UnsupportedFeatureError, match=r"primary key.*metadata.iceberg"):
        check_writable(ref)


def test_an_ordinary_table_is_read_and_written(new_schema: Build) -> None:
    ref = _ref(new_schema("a INT"))
    check_readable(ref)
    check_writable(ref)
