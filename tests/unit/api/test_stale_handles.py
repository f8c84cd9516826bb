"""What a handle does whose table is not there any more, or is another one by now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock import Catalog, NotFoundError, Table
from penstock.catalog.changes import UpdateComment
from penstock.table.actions.changes import commit_append
from penstock.table.ref import TableRef
from penstock.table.write.writer import write_arrow
from penstock.testing.file_io import RecordingFileIO

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def ones(**columns: int) -> pa.Table:
    return pa.table({name: pa.array([value], pa.int32()) for name, value in columns.items()})


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(str(tmp_path))
    catalog.create_database("db")
    return catalog


USES: list[Callable[[Table], object]] = [
    lambda table: table.to_arrow(),
    lambda table: table.snapshots(),
    lambda table: table.latest_snapshot(),
    lambda table: table.append(ones(a=3)),
    lambda table: table.overwrite(ones(a=3)),
    lambda table: table.truncate(),
    lambda table: list(table.follow(once=True)),
    lambda table: table.rollback_to(snapshot_id=1),
    lambda table: table.create_tag("now"),
]


@pytest.mark.parametrize("use", USES)
def test_a_handle_of_a_dropped_table_says_so(catalog: Catalog, use: Callable[[Table], object]) -> None:
    table = catalog.create_table("db.t", "a INT")
    table.append(ones(a=1))
    catalog.drop_table("db.t")
    with pytest.raises(NotFoundError, match=r"table db\.t: .* dropped or renamed since it was loaded"):
        use(table)
    catalog.create_table("db.t", "a INT")


@pytest.mark.parametrize("use", USES)
def test_a_handle_of_a_table_that_was_recreated_neither_reads_nor_changes_the_new_one(
    catalog: Catalog, use: Callable[[Table], object]
) -> None:
    table = catalog.create_table("db.t", "a INT")
    table.append(ones(a=1))
    catalog.drop_table("db.t")
    new = catalog.create_table("db.t", "a INT")
    new.append(ones(a=2))
    with pytest.raises(NotFoundError, match=r"table db\.t .* another was created in its place; load the table again"):
        use(table)
    assert new.to_arrow().to_pylist() == [{"a": 2}]
    assert new.snapshots().num_rows == 1


def test_a_table_can_be_renamed_back_after_an_append_under_its_old_name_failed(catalog: Catalog) -> None:
    table = catalog.create_table("db.t", "a INT")
    table.append(ones(a=1))
    catalog.rename_table("db.t", "db.u")
    with pytest.raises(NotFoundError, match="renamed"):
        table.append(ones(a=2))
    catalog.rename_table("db.u", "db.t")
    assert table.to_arrow().to_pylist() == [{"a": 1}]


def test_a_handle_with_an_older_schema_still_is_one_of_its_table(catalog: Catalog) -> None:
    table = catalog.create_table("db.t", "a INT")
    catalog.alter_table("db.t", UpdateComment(comment="one"))
    catalog.alter_table("db.t", UpdateComment(comment="two"))
    table.append(ones(a=1))
    assert table.to_arrow().to_pylist() == [{"a": 1}]


def test_an_append_looks_at_the_identity_of_its_table_once(catalog: Catalog) -> None:
    ref = catalog.create_table("db.t", "a INT")._ref
    recording = RecordingFileIO(ref.file_io)
    ref = TableRef(name=ref.name, location=ref.location, file_io=recording, schema=ref.schema)
    committer = Table(ref)._handle.committer()
    messages = write_arrow(ref, ones(a=1))
    recording.forget()
    commit_append(committer, messages)
    assert len(recording.paths(containing="schema/schema-0")) == 1
