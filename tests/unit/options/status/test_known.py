"""What is known, what is misspelt, and the table of options."""

import warnings

import pytest

from penstock.errors import OptionWarning
from penstock.options import KNOWN_KEYS, Side, check_keys, check_side, describe_options, is_known, nearest_key


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("target-file-sze", "target-file-size"),
        ("Bucket", "bucket"),
        ("bucket_key", "bucket-key"),
        ("file.fromat", "file.format"),
        ("snapshot.num-retained-min", "snapshot.num-retained.min"),
        ("penstock.compaction.max-task", "penstock.compaction.max-tasks"),
        ("read.stream.maxfilespertrigger", "read.stream.maxFilesPerTrigger"),
    ],
)
def test_a_misspelt_key_warns_with_the_nearest(key: str, near: str) -> None:
    with pytest.warns(OptionWarning, match=f"table shop.orders: option '{key}' is not known: did you mean '{near}'?"):
        check_keys({key: "1"}, "shop.orders")


def test_a_key_like_no_other_warns_too() -> None:
    with pytest.warns(OptionWarning, match="option 'zzqq' is not known: it has no effect here"):
        check_keys(["zzqq"], "shop.orders")


def test_the_warning_points_at_the_caller() -> None:
    with pytest.warns(OptionWarning) as caught:
        check_keys(["zzqq"], "shop.orders")
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "key",
    [
        "fields.price.stats-mode",
        "parquet.enable.dictionary",
        "orc.write.batch-size",
        "schema.watermark.0.rowtime",
        "write.compaction-skip",
        "changelog.precommit-compact",
        "owner",
        "partition.mark-done-action",
    ],
)
def test_keys_that_are_acted_on_pass_older_names_and_families_too(key: str) -> None:
    assert is_known(key)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_keys({key: "1"}, "shop.orders")


@pytest.mark.parametrize(
    "key",
    [
        "file-index.bsi.columns",
        "table-default.bucket",
        "commit.callback.my.Class.param",
        "merge-engine",
        "sink.parallelism",
        "clustering.incremental.optimize-write",
        "data-file.external-paths.weights",
    ],
)
def test_keys_that_only_other_engines_act_on_are_known_and_warn(key: str) -> None:
    assert is_known(key)
    with pytest.warns(OptionWarning, match=f"option '{key}' = '7' has no effect here: Penstock does not act on it"):
        check_keys({key: "7"}, "shop.orders")


def test_nothing_known_is_called_misspelt() -> None:
    assert all(is_known(key) for key in KNOWN_KEYS)
    assert not is_known("fields")
    assert nearest_key("zzqq") is None


def test_the_table_has_each_key_once_with_its_meaning() -> None:
    rows = describe_options()
    keys = [row.key for row in rows]
    assert len(keys) == len(set(keys))
    assert set(keys) - KNOWN_KEYS == {key for key in keys if "*" in key}
    for row in rows:
        assert row.type, row
        assert row.group, row
        assert row.meaning, row


def test_the_table_writes_defaults_as_users_do() -> None:
    rows = {row.key: row for row in describe_options()}
    assert rows["target-file-size"].default == "256 mb"
    assert rows["target-file-size"].type == "size"
    assert rows["snapshot.time-retained"].default == "1 h"
    assert rows["file.format"].default == "parquet"
    assert rows["file.format"].type == "one of parquet, orc, avro"
    assert rows["bucket"].default == "-1"
    assert rows["write-only"].default == "false"
    assert rows["commit.timeout"].default == ""
    assert rows["bucket-key"].default == ""
    assert rows["target-file-size"].honoured
    assert not rows["sink.parallelism"].honoured


@pytest.mark.parametrize(
    ("key", "side", "text"),
    [
        ("scan.mode", Side.SINK, "is one of the source and has no effect on a sink: give it to the query that reads"),
        ("consumer-id", Side.SINK, "is one of the source"),
        ("read.stream.maxFilesPerTrigger", Side.SINK, "is one of the source"),
        ("scan.watermark.alignment.group", Side.SINK, "is one of the source"),
        ("write-buffer-size", Side.SOURCE, "is one of the sink and has no effect on a source: give it to the query"),
        ("write.compaction-skip", Side.SOURCE, "is one of the sink"),
        ("consumer.expiration-time", Side.SOURCE, "is one of the sink and has no effect on a source"),
        ("penstock.accept-unknown-batch", Side.SOURCE, "is one of the sink"),
        ("end-input.watermark", Side.SOURCE, "that writes the table"),
    ],
)
def test_an_option_of_the_other_side_of_a_stream_warns(key: str, side: Side, text: str) -> None:
    with pytest.warns(OptionWarning, match=f"table d.t: option '{key}' .*{text}") as caught:
        check_side({key: "1"}, "d.t", side)
    assert caught[0].filename == __file__


def test_options_of_this_side_of_both_and_unknown_ones_pass() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_side(["write-only", "consumer.expiration-time", "bucket", "file.format", "zzqq"], "d.t", Side.SINK)
        check_side(["scan.mode", "bucket", "file.format", "zzqq"], "d.t", Side.SOURCE)
