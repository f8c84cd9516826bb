"""Writes of the format with an identity, in one process without a JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock import Catalog, InvalidOptionError, Table
from penstock.spark.data_source.source import PenstockDataSource
from penstock.spark.data_source.transaction import AFTER, APP_ID, VERSION, Transaction
from penstock.spark.versions.facts import PYTHON_SOURCES, STREAM_READS_OF_FORMAT
from penstock.table.stream_sink.committer import Batch

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(not PYTHON_SOURCES.is_here, reason="Spark has no sources in Python")


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = Catalog(tmp_path, {"penstock.durable": "false"})
    catalog.create_database("d")
    return catalog.create_table("d.t", "id BIGINT, day STRING", partition_by=["day"])


def write(table: Table, ids: list[int], *, overwrite: bool = False, day: str = "a", **options: object) -> None:
    """Write as Spark does: its options come in lower case."""
    given = {key.lower(): str(value) for key, value in options.items()}
    source: Any = PenstockDataSource({"path": table.location, **given})
    writer = source.writer(source.schema(), overwrite)
    rows = pa.table({"id": pa.array(ids, pa.int64()), "day": pa.array([day] * len(ids), pa.string())})
    writer.commit([writer.write(iter(rows.to_batches()))])


def ids(table: Table) -> list[int]:
    found: list[int] = table.to_arrow(["id"])["id"].to_pylist()
    return sorted(found)


def test_a_write_that_runs_again_is_in_the_table_once(table: Table) -> None:
    for _ in range(2):
        write(table, [1], txnAppId="job", txnVersion=0)
    table.append([{"id": 9, "day": "a"}])
    for _ in range(2):
        write(table, [2], txnAppId="job", txnVersion=5)
    write(table, [3], txnAppId="other", txnVersion=0)
    assert ids(table) == [1, 2, 3, 9]
    with pytest.raises(Exception, match="was set back to an older copy: it is about to run batch 4"):
        write(table, [4], txnAppId="job", txnVersion=4)
    assert ids(table) == [1, 2, 3, 9]


def test_a_replacement_that_runs_again_does_not_replace_what_came_after_it(table: Table) -> None:
    write(table, [1], txnAppId="job", txnVersion=0, overwrite=True)
    write(table, [2], day="b")
    write(table, [3], txnAppId="job", txnVersion=1, overwrite=True, partitionOverwriteMode="dynamic")
    write(table, [4], day="b")
    write(table, [3], txnAppId="job", txnVersion=1, overwrite=True, partitionOverwriteMode="dynamic")
    assert ids(table) == [2, 3, 4]


def test_a_write_after_a_known_snapshot_leaves_no_note(table: Table) -> None:
    for _ in range(2):
        write(table, [1], **{APP_ID: "a/b", VERSION: 0, AFTER: 0})
    assert ids(table) == [1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({APP_ID: "a"}, "go together"),
        ({VERSION: "1"}, "go together"),
        ({APP_ID: "../a", VERSION: "1"}, r"expected up to 200 letters"),
        ({APP_ID: "a", VERSION: "-1"}, "expected a number, 0 or greater"),
        ({APP_ID: "a", VERSION: "9" * 19}, "expected a number, 0 or greater"),
        ({APP_ID: "a", VERSION: "1", AFTER: "x"}, "'penstock.txn-after-snapshot' = 'x'"),
    ],
)
def test_an_identity_that_is_not_complete_is_refused(options: dict[str, str], said: str, table: Table) -> None:
    with pytest.raises(InvalidOptionError, match=said):
        write(table, [1], **options)


def test_options_of_an_identity_are_read_as_they_are_written() -> None:
    written = Transaction(batch=Batch(commit_user="a", id=3), after_id=7)
    lower = {key.lower(): value for key, value in written.options().items()}
    assert Transaction.of(lower, "d.t") == written
    assert Transaction.of({}, "d.t") is None


def test_a_read_and_a_stream_have_no_identity(table: Table) -> None:
    source: Any = PenstockDataSource({"path": table.location, APP_ID.lower(): "job", VERSION.lower(): "1"})
    schema = source.schema()
    streams = [lambda: source.streamReader(schema), lambda: source.streamWriter(schema, overwrite=False)]
    for call in (lambda: source.reader(schema), *(streams if STREAM_READS_OF_FORMAT.is_here else ())):
        with pytest.raises(
            InvalidOptionError, match=r"option 'txnAppId' = 'job' has no meaning for a .*: give it to df\.write"
        ):
            call()
