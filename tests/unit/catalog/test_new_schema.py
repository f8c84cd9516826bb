"""What may be declared, and what is refused with the table, the cause and the cure."""

from collections.abc import Callable

import pytest

from penstock.catalog.new_schema import table_defaults
from penstock.errors import (
    InvalidOptionError,
    InvalidSchemaError,
    OptionWarning,
    TableStoreError,
    UnsupportedFeatureError,
)
from penstock.format.schema import TableSchema
from penstock.format.types.data_types import INT
from penstock.format.types.ddl import ColumnSpec

Build = Callable[..., TableSchema]


def test_a_table_without_options_is_as_the_reference_makes_it(new_schema: Build) -> None:
    schema = new_schema("a INT COMMENT 'x', r ROW<b INT>, c INT DEFAULT 5")
    assert (schema.id, schema.version, schema.options, schema.highest_field_id) == (0, 3, (), 3)
    assert [(field.id, field.description, field.default_value) for field in schema.fields] == [
        (0, "x", None),
        (1, None, None),
        (3, None, "5"),
    ]


def test_options_keep_their_text(new_schema: Build) -> None:
    options = {"bucket": "8", "bucket-key": "a", "target-file-size": "1 MB", "write-only": "True"}
    assert new_schema("a INT", options=options).option_map == options


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"bucket-key": "a"}, InvalidOptionError, "'bucket-key'.*'bucket' = '-1'"),
        ({"bucket": "-1", "bucket-key": "a"}, InvalidOptionError, "no meaning with 'bucket' = '-1'"),
        ({"full-compaction.delta-commits": "5"}, InvalidOptionError, "full-compaction.delta-commits"),
        ({"bucket": "0", "bucket-key": "a"}, InvalidOptionError, "'bucket' = '0'"),
        ({"bucket": "-2"}, InvalidOptionError, "'bucket' = '-2'"),
        ({"bucket": "many"}, InvalidOptionError, "'bucket' = 'many'"),
        ({"bucket": "2"}, InvalidOptionError, "needs 'bucket-key'"),
        ({"bucket": "2", "bucket-key": " "}, InvalidOptionError, "needs 'bucket-key'|not one of its columns"),
        ({"bucket": "2", "bucket-key": "z"}, InvalidOptionError, "'z', which is not one of its columns: a, b"),
        ({"bucket": "2", "bucket-key": "dt"}, InvalidOptionError, "'dt', which is a partition key"),
        ({"bucket": "2", "bucket-key": "l"}, InvalidOptionError, "'l' of type ARRAY<INT>.*cannot be hashed"),
        ({"bucket": "2", "bucket-key": "m"}, InvalidOptionError, "cannot be hashed"),
        ({"bucket": "2", "bucket-key": "r"}, InvalidOptionError, "cannot be hashed"),
        ({"bucket": "2", "bucket-key": "b", "bucket-function.type": "mod"}, InvalidOptionError, "INT or BIGINT"),
        ({"bucket-function.type": "odd"}, InvalidOptionError, "default, mod, hive"),
        ({"changelog-producer": "input"}, UnsupportedFeatureError, "'changelog-producer' = 'input' needs a primary"),
        ({"streaming-read-overwrite": "true"}, InvalidOptionError, "streaming-read-append-overwrite"),
        ({"snapshot.num-retained.min": "0"}, InvalidOptionError, "1 or more"),
        ({"snapshot.num-retained.max": "5"}, InvalidOptionError, r"min' \(10\) is larger"),
        ({"changelog.num-retained.max": "5"}, InvalidOptionError, r"min' \(10\) is larger"),
        ({"target-file-row-num": "0"}, InvalidOptionError, "1 or more"),
        ({"row-tracking.enabled": "true", "bucket": "2", "bucket-key": "a"}, InvalidOptionError, "row-tracking"),
        ({"data-evolution.enabled": "true"}, UnsupportedFeatureError, "data-evolution"),
        ({"bucket": "2", "bucket-key": "a", "bucket-function.type": "hive"}, UnsupportedFeatureError, "hive"),
        ({"bucket": "2", "bucket-key": "a", "clustering.incremental": "true"}, InvalidOptionError, "append-ordered"),
        ({"fields.z.stats-mode": "none"}, InvalidOptionError, "'fields.z.stats-mode' names column 'z'"),
        ({"clustering.columns": "a,z"}, InvalidOptionError, "names column 'z'"),
        ({"file-index.bloom-filter.columns": "z"}, InvalidOptionError, "names column 'z'"),
        ({"scan.mode": "from-snapshot"}, InvalidOptionError, "exactly one of 'scan.snapshot-id' or 'scan.tag-name'"),
        ({"scan.mode": "latest", "scan.snapshot-id": "3"}, InvalidOptionError, "remove it"),
        ({"scan.snapshot-id": "3", "scan.timestamp-millis": "4"}, InvalidOptionError, "does not go with"),
        ({"scan.mode": "sideways"}, InvalidOptionError, "'scan.mode' = 'sideways'"),
        ({"primary-key": "a"}, UnsupportedFeatureError, "append tables only"),
        ({"partition": "a"}, InvalidOptionError, "give it in one place only"),
        ({"type": "format-table"}, UnsupportedFeatureError, "'type' = 'format-table'"),
        ({"path": "/data/x"}, InvalidOptionError, "'path' is not a property"),
        ({"branch": "b1"}, InvalidOptionError, "'branch' is not a property"),
        ({"file.format": "csv"}, InvalidOptionError, "'file.format' = 'csv'"),
        ({"target-file-size": "big"}, InvalidOptionError, "'target-file-size' = 'big'.*'128 mb'"),
        ({"write-only": "yes"}, InvalidOptionError, "'write-only' = 'yes'.*true or false"),
        ({"file.format": "avro"}, InvalidSchemaError, r"'t9'.*TIMESTAMP\(9\).*6 digits"),
        ({"file.format.per.level": "0:avro"}, InvalidSchemaError, r"'t9'.*TIMESTAMP\(9\)"),
        ({"manifest.format": "orc"}, UnsupportedFeatureError, "only avro"),
    ],
)
@pytest.mark.filterwarnings("ignore::penstock.OptionWarning")  # options of other engines are among them
def test_options_that_do_not_go_together_are_refused(
    options: dict[str, str], error: type[TableStoreError], words: str, new_schema: Build
) -> None:
    columns = "a INT, b STRING, l ARRAY<INT>, m MAP<INT, INT>, r ROW<x INT>, t9 TIMESTAMP(9), dt STRING"
    with pytest.raises(error, match=rf"(?s)shop\.orders.*({words})"):
        new_schema(columns, partition_by=["dt"], options=options)


@pytest.mark.parametrize(
    ("columns", "partition_by", "words"),
    [
        ("a INT, a STRING", [], "'a' is duplicated"),
        ("a INT, r ROW<x INT, x INT>", [], r"'r\.x' is duplicated"),
        ("a INT, l ARRAY<ROW<x INT, x INT>>", [], r"'l\.x' is duplicated"),
        ("a INT, rowkind STRING", [], "'rowkind' is reserved"),
        ("a INT, _KEY_a INT", [], "'_KEY_a' is reserved"),
        ("a INT", ["b"], "'b' is not one of its columns: a"),
        ("a INT, b INT", ["b", "b"], "twice"),
    ],
)
def test_columns_that_cannot_be_are_refused(
    columns: str, partition_by: list[str], words: str, new_schema: Build
) -> None:
    with pytest.raises(InvalidSchemaError, match=rf"shop\.orders.*{words}"):
        new_schema(columns, partition_by=partition_by)


@pytest.mark.parametrize("names", [[], [""], [" "], ["a", ""]])
def test_a_column_needs_a_name_and_a_table_a_column(names: list[str], new_schema: Build) -> None:
    with pytest.raises(InvalidSchemaError, match=r"empty name|at least one column"):
        new_schema(tuple(ColumnSpec(name=name, type=INT) for name in names))


@pytest.mark.parametrize("data_type", ["ARRAY<INT>", "MAP<INT, INT>", "ROW<x INT>", "MULTISET<INT>", "VARIANT"])
def test_a_nested_column_cannot_be_a_partition_key(data_type: str, new_schema: Build) -> None:
    with pytest.raises(UnsupportedFeatureError, match="partition key 'p'"):
        new_schema(f"a INT, p {data_type}", partition_by=["p"])


def test_bytes_are_a_partition_key_only_where_directories_show_their_value(new_schema: Build) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"partition\.legacy-name"):
        new_schema("a INT, p BYTES", partition_by=["p"])
    schema = new_schema("a INT, p BYTES", partition_by=["p"], options={"partition.legacy-name": "false"})
    assert schema.partition_keys == ("p",)


def test_a_column_of_a_type_that_is_not_supported_is_refused(new_schema: Build) -> None:
    with pytest.raises(UnsupportedFeatureError, match="column 'b' has type BLOB"):
        new_schema("a INT, b BLOB")


@pytest.mark.parametrize(
    ("data_type", "file_format", "words"),
    [
        ("VARIANT", "orc", "VARIANT, which 'orc' files cannot hold"),
        ("ARRAY<VECTOR<FLOAT, 3>>", "avro", "'avro' files cannot hold"),
        ("MAP<INT, TIME(6)>", "avro", r"TIME\(6\).*3 digits"),
        ("VECTOR<STRING, 3>", "parquet", "VECTOR of STRING"),
        ("VECTOR<ARRAY<INT>, 3>", "parquet", "VECTOR of ARRAY<INT>"),
    ],
)
def test_a_type_that_the_files_cannot_hold_is_refused(
    data_type: str, file_format: str, words: str, new_schema: Build
) -> None:
    with pytest.raises(InvalidSchemaError, match=rf"shop\.orders: column 'b'.*{words}"):
        new_schema(f"a INT, b {data_type}", options={"file.format": file_format})


def test_an_unknown_option_is_stored_with_a_warning(new_schema: Build) -> None:
    with pytest.warns(OptionWarning, match=r"shop\.orders.*'targetfile-size'.*'target-file-size'"):
        schema = new_schema("a INT", options={"targetfile-size": "1 mb"})
    assert schema.option_map == {"targetfile-size": "1 mb"}


def test_partition_keys_may_be_an_option(new_schema: Build) -> None:
    schema = new_schema("a INT, x STRING, dt STRING", options={"partition": "dt, x", "primary-key": ""})
    assert (schema.partition_keys, schema.options) == (("dt", "x"), ())


def test_blanks_in_a_bucket_key_are_not_part_of_the_names(new_schema: Build) -> None:
    schema = new_schema("a INT, b INT", options={"bucket": "2", "bucket-key": "b , a"})
    assert schema.option_map["bucket-key"] == "b,a"


def test_the_catalog_gives_defaults_that_the_table_overrides(new_schema: Build) -> None:
    defaults = table_defaults({"table-default.write-only": "true", "table-default.bucket": "1", "warehouse": "/w"})
    assert defaults == {"write-only": "true", "bucket": "1"}
    assert new_schema("a INT", defaults=defaults).option_map["bucket-key"] == "a"
    overriding = new_schema("a INT", defaults=defaults, options={"bucket": "-1", "write-only": "false"})
    assert overriding.option_map == {"bucket": "-1", "write-only": "false"}


def test_a_default_bucket_key_is_for_tables_with_buckets(new_schema: Build) -> None:
    defaults = {"bucket": "4", "bucket-key": "a"}
    assert new_schema("a INT", defaults=defaults).option_map == defaults
    assert new_schema("a INT", defaults=defaults, options={"bucket": "-1"}).option_map == {"bucket": "-1"}
    assert new_schema("a INT", defaults=defaults, options={"bucket": "8"}).option_map == {**defaults, "bucket": "8"}
    with pytest.raises(InvalidOptionError, match="'write-only' = 'maybe'"):
        new_schema("a INT", defaults={"write-only": "maybe"})


def test_a_default_value_must_be_one_of_the_type(new_schema: Build) -> None:
    with pytest.raises(InvalidSchemaError, match=r"shop\.orders.*'soon'.*column 'b'"):
        new_schema("a INT, b DATE DEFAULT 'soon'")
