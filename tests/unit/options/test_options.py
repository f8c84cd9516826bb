"""Groups read their keys from the table's options and the query's."""

import dataclasses
import pickle

import pytest

from penstock.errors import InvalidOptionError
from penstock.format.layout import FileFormat
from penstock.format.manifest.stats import StatsKind, StatsMode
from penstock.format.row.bucket import BucketFunction
from penstock.options import (
    BucketOptions,
    CommitOptions,
    CompactOptions,
    ConsumerMode,
    ConsumerOptions,
    FormatOptions,
    LayoutOptions,
    ManifestOptions,
    OptionGroup,
    ReadOptions,
    RetentionOptions,
    ScanMode,
    SinkStrategy,
    StatsOptions,
    StreamOptions,
    WatermarkOptions,
    WriteOptions,
)
from penstock.options.group import option_fields
from penstock.options.status.keys import GROUPS

MIB = 1024 * 1024


def test_defaults_are_those_of_paimon_today() -> None:
    layout, buckets, files = LayoutOptions.parse(), BucketOptions.parse(), FormatOptions.parse()
    assert (layout.data_file_prefix, layout.default_partition_name, layout.legacy_partition_name) == (
        "data-",
        "__DEFAULT_PARTITION__",
        True,
    )
    assert (buckets.bucket, buckets.bucket_key, buckets.is_append_ordered) == (-1, (), True)
    assert (files.file_format, files.compression, files.compression_zstd_level) == (FileFormat.PARQUET, "zstd", 1)
    write, commit, manifests = WriteOptions.parse(), CommitOptions.parse(), ManifestOptions.parse()
    assert (write.target_file_bytes, write.write_buffer_bytes, write.page_bytes) == (256 * MIB, 256 * MIB, 65_536)
    assert (write.write_max_writers_to_spill, write.dynamic_partition_overwrite) == (10, True)
    assert (commit.max_retries, commit.timeout_ms) == (None, None)
    assert (commit.min_retry_wait_ms, commit.max_retry_wait_ms) == (10, None)
    assert manifests.manifest_target_file_bytes == 8 * MIB
    assert manifests.manifest_full_compaction_threshold_bytes == 16 * MIB
    assert manifests.manifest_merge_min_count == 30
    read, stream, retained = ReadOptions.parse(), StreamOptions.parse(), RetentionOptions.parse()
    assert (read.split_target_bytes, read.split_open_file_cost_bytes) == (128 * MIB, 4 * MIB)
    assert (stream.discovery_interval_ms, stream.fail_on_data_loss) == (10_000, True)
    assert (retained.num_retained_min, retained.num_retained_max, retained.time_retained_ms) == (
        10,
        2**31 - 1,
        3_600_000,
    )
    assert (CompactOptions.parse().min_file_num, CompactOptions.parse().max_file_num) == (5, None)
    assert ConsumerOptions.parse().mode is ConsumerMode.EXACTLY_ONCE


def test_values_are_typed() -> None:
    options = WriteOptions.parse(
        {"target-file-size": "64kb", "write-only": "TRUE", "partition.sink-strategy": "HASH", "unknown": "?"}
    )
    assert options == WriteOptions(target_file_bytes=65_536, write_only=True, sink_strategy=SinkStrategy.HASH)
    assert BucketOptions.parse({"bucket": "8", "bucket-key": "b,a"}).bucket_key == ("b", "a")
    assert BucketOptions.parse({"bucket-function.type": "MOD"}).bucket_function is BucketFunction.MOD
    assert FormatOptions.parse({"file.format": "ORC"}).file_format is FileFormat.ORC


def test_later_options_win_and_none_takes_one_away() -> None:
    stored = {"commit.timeout": "1 h", "commit.max-retries": "3"}
    assert CommitOptions.parse(stored, {"commit.timeout": "5 s"}).timeout_ms == 5_000
    assert CommitOptions.parse(stored, {"commit.timeout": None}).timeout_ms is None
    assert CommitOptions.parse(stored, {"commit.timeout": None}).max_retries == 3


def test_older_names_are_read_when_the_key_is_not_set() -> None:
    assert WriteOptions.parse({"write.compaction-skip": "true"}).write_only
    assert not WriteOptions.parse({"write.compaction-skip": "true"}, {"write-only": "false"}).write_only
    assert not WriteOptions.parse({"write-only": "false"}, {"write.compaction-skip": "true"}).write_only
    assert CompactOptions.parse({"changelog.precommit-compact": "true"}).precommit
    assert ReadOptions.parse({"log.scan": "latest"}).scan_mode is ScanMode.LATEST


def test_older_values_are_read() -> None:
    assert ReadOptions.parse({"scan.mode": "FULL"}).scan_mode is ScanMode.LATEST_FULL
    assert ReadOptions.parse({"scan.mode": "earliest"}).scan_mode is ScanMode.EARLIEST


def test_keys_of_our_own_are_read() -> None:
    stream = StreamOptions.parse(
        {
            "penstock.fail-on-data-loss": "false",
            "penstock.scan.bounded.snapshot-id": "7",
            "penstock.scan.bounded.timestamp-millis": "8",
        }
    )
    assert (stream.fail_on_data_loss, stream.bounded_snapshot_id, stream.bounded_timestamp_millis) == (False, 7, 8)
    watermark = WatermarkOptions.parse(
        {"penstock.sink.watermark-idle-timeout": "1 min", "penstock.read.watermark": "false"}
    )
    assert (watermark.upstream_idle_timeout_ms, watermark.read_watermark) == (60_000, False)
    assert CompactOptions.parse({"penstock.compaction.max-tasks": "2"}).max_tasks == 2


def test_a_family_keeps_what_is_free_in_its_keys() -> None:
    options = FormatOptions.parse(
        {"parquet.enable.dictionary": "false", "parquet.": "x", "orc.a": "1", "parquet.b": "2"}
    )
    assert options.parquet == (("enable.dictionary", "false"), ("b", "2"))
    assert options.orc == (("a", "1"),)
    assert options.avro == ()


def test_statistics_modes_are_chosen_column_by_column() -> None:
    options = StatsOptions.parse(
        {"metadata.stats-mode": "FULL", "fields.b.stats-mode": "truncate(4)", "fields.d.stats-mode": "counts"},
        {"metadata.stats-keep-first-n-columns": "2"},
    )
    truncated = StatsMode(kind=StatsKind.TRUNCATE, length=4)
    assert options.column_modes == (("b", truncated), ("d", StatsMode(kind=StatsKind.COUNTS)))
    assert options.modes(["a", "b", "c", "d"]) == (
        StatsMode(kind=StatsKind.FULL),
        truncated,
        StatsMode(kind=StatsKind.NONE),
        StatsMode(kind=StatsKind.COUNTS),
    )
    assert StatsOptions.parse().dense_store


@pytest.mark.parametrize(
    ("group", "key", "value", "expected"),
    [
        (WriteOptions, "target-file-size", "big", "expected a size such as '128 mb'"),
        (WriteOptions, "target-file-size", "0", "expected 1 b or more"),
        (WriteOptions, "write.compaction-skip", "yes", "expected true or false"),
        (FormatOptions, "file.format", "csv", "expected one of parquet, orc, avro"),
        (CommitOptions, "commit.timeout", "soon", "expected a duration such as '10 s'"),
        (CommitOptions, "commit.max-retries", "-1", "expected 0 or more"),
        (RetentionOptions, "snapshot.num-retained.min", "0", "expected 1 or more"),
        (BucketOptions, "bucket-function.type", "crc", "expected one of default, mod, hive"),
        (StatsOptions, "metadata.stats-mode", "truncate", "expected none, counts, full or truncate(n)"),
        (StatsOptions, "fields.a.stats-mode", "some", "expected none, counts, full or truncate(n)"),
        (BucketOptions, "bucket", "many", "expected a whole number such as '8'"),
    ],
)
def test_a_wrong_value_is_named_with_its_key(group: type[OptionGroup], key: str, value: str, expected: str) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        group.parse({key: value})
    assert str(caught.value) == f"option '{key}' = '{value}': {expected}"
    with pytest.raises(InvalidOptionError) as caught:
        group.parse({key: value}, table="shop.orders")
    assert str(caught.value) == f"table shop.orders: option '{key}' = '{value}': {expected}"


def test_a_wrong_value_concerns_its_own_group_only() -> None:
    assert CommitOptions.parse({"target-file-size": "big"}) == CommitOptions()


@pytest.mark.parametrize("group", GROUPS.values())
def test_groups_are_values(group: type[OptionGroup]) -> None:
    value = group.parse()
    assert value == group()
    assert hash(value) == hash(group())
    assert pickle.loads(pickle.dumps(value)) == value
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, option_fields(group)[0].name, None)


@pytest.mark.parametrize("group", GROUPS.values())
def test_every_default_is_what_its_text_means(group: type[OptionGroup]) -> None:
    for field in option_fields(group):
        if field.default not in (None, ()):
            text = field.option.kind.encode(field.default)
            if text != "unlimited":
                assert field.option.kind(text) == field.default, field.name
