import dataclasses

import pytest

from penstock.errors import InvalidSchemaError, UnsupportedFeatureError
from penstock.format import layout
from penstock.format.layout import FileFormat, TableLayout, format_of
from penstock.format.manifest.entry import DataFileMeta
from penstock.format.types.data_types import BYTES, INT, STRING, DataField
from penstock.format.types.text import parse_sql_type

T = "/warehouse/shop.db/orders"
TABLE = TableLayout(T)


def data_file(file_name: str) -> DataFileMeta:
    return DataFileMeta(
        file_name=file_name,
        file_size=1,
        row_count=1,
        min_sequence_number=0,
        max_sequence_number=0,
        schema_id=0,
        extra_files=(f"{file_name}.index",),
    )


def test_metadata_paths_are_those_of_the_format() -> None:
    assert layout.database_path("/warehouse", "shop") == "/warehouse/shop.db"
    assert layout.table_path("/warehouse", "shop", "orders") == T
    assert TABLE.schema_path(0) == f"{T}/schema/schema-0"
    assert TABLE.snapshot_path(12) == f"{T}/snapshot/snapshot-12"
    assert TABLE.latest_hint_path == f"{T}/snapshot/LATEST"
    assert TABLE.earliest_hint_path == f"{T}/snapshot/EARLIEST"
    assert TABLE.tag_path("latest tag") == f"{T}/tag/tag-latest tag"
    assert TABLE.consumer_path("job") == f"{T}/consumer/consumer-job"
    assert TABLE.manifest_path("manifest-list-x-0") == f"{T}/manifest/manifest-list-x-0"
    assert TABLE.index_path("index-x-0") == f"{T}/index/index-x-0"
    assert TABLE.statistics_path("stat-x-0") == f"{T}/statistics/stat-x-0"
    assert TABLE.branch("main") == TABLE
    assert TABLE.branch("b").schema_path(1) == f"{T}/branch/branch-b/schema/schema-1"


def test_directories_hold_the_files_named_after_them() -> None:
    assert TABLE.schema_path(1).startswith(TABLE.schema_directory + "/")
    assert TABLE.snapshot_path(1).startswith(TABLE.snapshot_directory + "/")
    assert TABLE.tag_path("x").startswith(TABLE.tag_directory + "/")
    assert TABLE.consumer_path("x").startswith(TABLE.consumer_directory + "/")
    assert TABLE.manifest_path("x").startswith(TABLE.manifest_directory + "/")


def test_listed_names_give_their_ids_back() -> None:
    assert layout.snapshot_id_of("snapshot-12") == 12
    assert layout.schema_id_of("schema-0") == 0
    assert layout.tag_name_of("tag-latest tag") == "latest tag"
    assert layout.consumer_id_of("consumer-job") == "job"
    assert layout.database_name_of("shop.db") == "shop"


@pytest.mark.parametrize(
    "name",
    ["LATEST", ".snapshot-1.x.tmp", "snapshot-", "snapshot-x", "snapshot-01", "snapshot--1", "snapshot-²", "schema-1"],
)
def test_other_files_of_the_snapshot_directory_have_no_id(name: str) -> None:
    assert layout.snapshot_id_of(name) is None


@pytest.mark.parametrize("name", ["shop", ".db", "db"])
def test_other_directories_are_no_databases(name: str) -> None:
    assert layout.database_name_of(name) is None


def test_other_files_are_no_tags_and_consumers() -> None:
    assert layout.tag_name_of("tag-") is None
    assert layout.tag_name_of(".tag-x.tmp") is None
    assert layout.consumer_id_of("consumer-") is None


@pytest.mark.parametrize(
    ("partition", "data_directory", "expected"),
    [
        ("", None, f"{T}/bucket-3"),
        ("dt=a/hr=1", None, f"{T}/dt=a/hr=1/bucket-3"),
        ("", "data", f"{T}/data/bucket-3"),
        ("dt=a", "my/data", f"{T}/my/data/dt=a/bucket-3"),
    ],
)
def test_bucket_directory_is_below_data_directory_and_partition(
    partition: str, data_directory: str | None, expected: str
) -> None:
    assert TABLE.bucket_directory(partition, 3, data_directory) == expected


def test_extra_files_are_in_the_directory_of_the_data_file() -> None:
    file = dataclasses.replace(data_file("data-x-0.orc"), external_path="s3://cold/dt=a/bucket-3/data-x-0.orc")
    assert file.external_path is not None
    index = "s3://cold/dt=a/bucket-3/data-x-0.orc.index"
    assert layout.all_file_paths(file.external_path, file) == (file.external_path, index)


@pytest.mark.parametrize("file_format", FileFormat)
@pytest.mark.parametrize("codec", ["zstd", "GZIP", "bzip2", "snappy", "lz4", "deflate", "none", "brotli"])
def test_data_file_names_show_their_format(file_format: FileFormat, codec: str) -> None:
    suffix = layout.compression_suffix(codec)
    name = layout.data_file_name("data-", "1-2", 7, file_format, suffix)
    assert name == f"data-1-2-7{'' if suffix is None else '.' + suffix}.{file_format}"
    assert format_of(name) is file_format


def test_codecs_without_an_extension_leave_no_trace_in_names() -> None:
    assert layout.compression_suffix("none") is None
    assert layout.compression_suffix("zstd") == "zst"
    assert layout.data_file_name("mine-", "u", 0, FileFormat.PARQUET) == "mine-u-0.parquet"


@pytest.mark.parametrize(
    ("file_name", "file_format"),
    [
        ("data-x-0.avro.zst", FileFormat.AVRO),
        ("a.b.c.orc", FileFormat.ORC),
        ("/x.orc/y.parquet/data-x-0.gz.avro", FileFormat.AVRO),
    ],
)
def test_format_is_the_last_extension_but_one_codec(file_name: str, file_format: FileFormat) -> None:
    assert format_of(file_name) is file_format


@pytest.mark.parametrize("file_name", ["data-x-0.csv.gz", "data-x-0", "zst", "data.zst", "a.PARQUET", "x.parquet/y"])
def test_unknown_format_is_refused_by_the_files_name(file_name: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=file_name):
        format_of(file_name)


def test_names_are_counted_per_source() -> None:
    lists = layout.NameSource(layout.MANIFEST_LIST_PREFIX, "u")
    manifests = layout.NameSource(layout.MANIFEST_PREFIX, "u")
    assert [lists.next_name(), manifests.next_name(), lists.next_name()] == [
        "manifest-list-u-0",
        "manifest-u-0",
        "manifest-list-u-1",
    ]


# Partition directories; tests/golden/test_partition_names.py has Java's names of every type.


def test_unpartitioned_table_has_no_partition_directory() -> None:
    assert layout.partition_dir((), ()) == ""


def test_partition_directory_has_a_component_a_column_in_order() -> None:
    fields = (DataField(id=5, name="d=t", type=STRING), DataField(id=1, name="hr", type=INT))
    assert layout.partition_dir(fields, ("a/b", 5)) == "d%3Dt=a%2Fb/hr=5"
    assert layout.partition_dir(fields, (None, None)) == "d%3Dt=__DEFAULT_PARTITION__/hr=__DEFAULT_PARTITION__"


def test_default_name_is_escaped_too() -> None:
    assert layout.partition_dir((DataField(id=0, name="p", type=STRING),), ("",), default_name="n/a") == "p=n%2Fa"


def test_number_of_values_must_fit() -> None:
    with pytest.raises(ValueError, match="shorter"):
        layout.partition_dir((DataField(id=0, name="p", type=STRING),), ())


def test_empty_column_name_is_refused() -> None:
    with pytest.raises(InvalidSchemaError, match="empty name"):
        layout.partition_dir((DataField(id=0, name="", type=STRING),), ("a",))


@pytest.mark.parametrize("text", ["ARRAY<INT>", "MAP<INT, INT>", "MULTISET<INT>", "ROW<a INT>", "VARIANT"])
def test_types_without_a_directory_name_are_refused_by_column(text: str) -> None:
    fields = (DataField(id=0, name="pcol", type=parse_sql_type(text)),)
    with pytest.raises(UnsupportedFeatureError, match="'pcol'"):
        layout.partition_dir(fields, ((),))


def test_bytes_have_a_name_only_without_legacy_names() -> None:
    fields = (DataField(id=0, name="p", type=BYTES),)
    with pytest.raises(UnsupportedFeatureError, match=r"partition\.legacy-name"):
        layout.partition_dir(fields, (b"ab",))
    assert layout.partition_dir(fields, (b"a/\xff",), legacy_name=False) == "p=a%2F\ufffd"
