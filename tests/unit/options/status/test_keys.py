"""Every key that is known has one status, and no entry point leaves one out of account without a word."""

import itertools
import re
import warnings
from collections.abc import Callable

import pyarrow as pa
import pytest

from penstock import Catalog, Table
from penstock.errors import InvalidOptionError, OptionWarning, UnsupportedFeatureError
from penstock.options import KNOWN_KEYS, Status, check_keys, check_reads, describe_options, status_of
from penstock.options.status.documented import PREFIXES
from penstock.options.status.keys import refusal_of
from penstock.options.status.refused import FOREIGN, REFUSED
from penstock.table.store import MetadataStore
from penstock.table.stream.scanner import StreamScanner

NUMBERS = itertools.count()
KEYS = sorted(KNOWN_KEYS | {f"{prefix}x" for prefix in PREFIXES} | {"fields.a.default-value", "fields.a.stats-mode"})
IGNORED = [key for key in KEYS if status_of(key) is Status.IGNORED]
REFUSALS = {key: refusal for key in KEYS if (refusal := refusal_of(key)) is not None}
REFUSED_HERE = sorted(key for key, refusal in REFUSALS.items() if not refusal.is_own)
# No default of any key.
VALUE = "777"


def new_table() -> Table:
    catalog = Catalog(f"memory://status-{next(NUMBERS)}")
    catalog.create_database("d")
    table = catalog.create_table("d.t", "a INT")
    table.append(pa.table({"a": pa.array([1], pa.int32())}))
    return table


def test_every_known_key_has_exactly_one_status() -> None:
    assert {status_of(key) for key in KEYS} == set(Status)
    assert status_of("no.such.key") is None
    for row in describe_options():
        assert row.honoured == (row.status is Status.HONOURED), row
    assert set(REFUSED) <= KNOWN_KEYS
    assert not {key for key in KNOWN_KEYS if key.lower() in FOREIGN}


def test_a_key_that_is_known_and_not_acted_on_warns() -> None:
    assert len(IGNORED) > 100
    for key in IGNORED:
        with pytest.warns(OptionWarning, match=rf"'{re.escape(key)}' .*has no effect here"):
            check_keys({key: VALUE}, "d.t")


@pytest.mark.parametrize("key", REFUSED_HERE)
def test_a_key_that_would_change_what_is_read_or_written_is_refused(key: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=rf"table d\.t: option '{key}' = '777' is not supported: "):
        check_keys({key: VALUE}, "d.t")


@pytest.mark.parametrize("key", sorted(FOREIGN))
def test_a_key_of_delta_or_iceberg_is_refused_with_what_says_the_same_here(key: str) -> None:
    with pytest.raises(InvalidOptionError, match=rf"option '{key.upper()}' = '1' is one of [DIp]"):
        check_keys({key.upper(): "1"}, "d.t")


def test_a_warning_shows_no_secret() -> None:
    with pytest.warns(OptionWarning, match=r"'s3\.secret-key' = '\*+' has no effect") as caught:
        check_keys({"s3.secret-key": "hunter2"}, "d.t")
    assert "hunter2" not in str(caught[0].message)


def test_a_value_that_asks_for_nothing_passes() -> None:
    values = {
        "branch": "main",
        "ignore-delete": "FALSE",
        "changelog-producer": "none",
        "read.batch-size": "1024",
        "file-index.read.enabled": "true",
        "write.merge-schema": "false",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_keys(values, "d.t")
        check_reads(values, "d.t")


ENTRY_POINTS: dict[str, Callable[[Table, dict[str, str]], object]] = {
    "with_options": lambda table, options: table.with_options(options),
    "to_arrow": lambda table, options: table.to_arrow(options=options),
    "to_batches": lambda table, options: table.to_batches(options=options),
    "explain": lambda table, options: table.explain(options=options),
    "follow": lambda table, options: table.follow(options=options, once=True),
    "compact": lambda table, options: table.compact(options=options),
}


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_every_entry_point_refuses_and_warns(name: str) -> None:
    table = new_table()
    with pytest.raises(UnsupportedFeatureError, match=r"'scan\.primary-branch' = 'b1'"):
        ENTRY_POINTS[name](table, {"scan.primary-branch": "b1"})
    with pytest.raises(InvalidOptionError, match="'startingVersion' = '1' is one of Delta Lake: "):
        ENTRY_POINTS[name](table, {"startingVersion": "1"})
    with pytest.warns(OptionWarning, match="'scan.infer-parallelism.max' = '3' has no effect here"):
        ENTRY_POINTS[name](table, {"scan.infer-parallelism.max": "3"})


@pytest.mark.parametrize("name", ["with_options", "follow", "compact"])
def test_what_is_no_batch_read_has_no_state_to_name(name: str) -> None:
    for key in ("versionAsOf", "timestampAsOf"):
        with pytest.raises(InvalidOptionError, match=f"'{key}' = '1' is one of Delta Lake: only batch reads"):
            ENTRY_POINTS[name](new_table(), {key: "1"})


@pytest.mark.parametrize("key", REFUSED_HERE)
def test_what_is_refused_cannot_be_stored_either(key: str) -> None:
    catalog = Catalog(f"memory://status-{next(NUMBERS)}")
    catalog.create_database("d")
    with pytest.raises((UnsupportedFeatureError, InvalidOptionError), match=f"'{key}'"):
        catalog.create_table("d.t", "a INT", options={key: VALUE})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("primary-key", "a"),
        ("changelog-producer", "input"),
        ("streaming-read-overwrite", "true"),
        ("data-evolution.enabled", "true"),
        ("manifest.format", "orc"),
        ("metadata.iceberg.storage", "table-location"),
        ("metastore.partitioned-table", "true"),
        ("commit.callbacks", "org.example.Callback"),
        ("chain-table.enabled", "true"),
        ("fields.a.map.storage-layout", "shared-shredding"),
        ("blob-field", "a"),
        ("rowkind.field", "a"),
        ("orc.encrypt", "pii:a"),
        ("parquet.encryption.footer.key", "k"),
        ("incremental-to-auto-tag", "t"),
    ],
)
def test_what_has_a_message_of_its_own_is_refused_where_it_matters(key: str, value: str) -> None:
    refusal = refusal_of(key)
    assert refusal is not None
    assert refusal.is_own
    catalog = Catalog(f"memory://status-{next(NUMBERS)}")
    catalog.create_database("d")
    with pytest.raises((UnsupportedFeatureError, InvalidOptionError)):
        catalog.create_table("d.t", "a INT", options={key: value}).to_arrow()


@pytest.mark.parametrize("key", sorted(key for key, refusal in REFUSED.items() if refusal.reads))
def test_a_table_that_has_it_stored_is_not_read_as_if_it_had_not(key: str) -> None:
    ref = new_table()._ref.with_options({key: VALUE})
    with pytest.raises(UnsupportedFeatureError, match=f"'{key}' = '777' is not supported"):
        StreamScanner(ref, MetadataStore(ref))
    error = InvalidOptionError if REFUSED[key].is_for_batch else UnsupportedFeatureError
    with pytest.raises(error, match=f"'{key}' = '777'"):
        Table(ref).to_arrow()


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("consumer-id", "is one of streams and has no effect on a batch read"),
        ("scan.bounded", "is one of streams"),
        ("penstock.read.watermark", "is one of streams"),
        ("write-buffer-size", "has no effect on a read: give it to a write"),
    ],
)
def test_a_batch_read_warns_of_what_it_does_not_act_on(key: str, text: str) -> None:
    with pytest.warns(OptionWarning, match=f"option '{key}' {text}") as caught:
        new_table().to_arrow(options={key: "1"})
    assert caught[0].filename == __file__
