"""What happens on an object store when another engine made the latest snapshot."""

from __future__ import annotations

import json
import uuid
import warnings
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.support.counted_requests import memory_store
from tests.support.garbage import stored_files

from penstock import Catalog, OtherEngineWarning, Table, UnsupportedFeatureError
from penstock.table.expire.rollback import apply_rollback, plan_rollback
from penstock.table.foreign_commits import check_other_engines
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.io.file_io import FileIO

ROWS = pa.table({"id": [1, 2, 3]})


def make_table(root: str, options: dict[str, str]) -> Table:
    catalog = Catalog(f"{root}/warehouse", options)
    catalog.create_database("db")
    table = catalog.create_table("db.t", "id BIGINT")
    table.append(ROWS)
    return table


@pytest.fixture
def table() -> Table:
    file_io = memory_store(f"engines-{uuid.uuid4()}")
    return make_table(file_io.settings.address.root, dict(file_io.settings.options))


def commit_as_other_engine(table: Table, snapshot_id: int) -> None:
    """Write the next snapshot as an engine that gives no version of its writer."""
    file_io: FileIO = table._ref.file_io  # of a branch, too
    snapshot = json.loads(file_io.read(f"{table.location}/snapshot/snapshot-{snapshot_id - 1}"))
    del snapshot["writerVersion"]
    changed = {**snapshot, "id": snapshot_id, "uuid": str(uuid.uuid4()), "commitUser": "flink-job"}
    file_io.write(f"{table.location}/snapshot/snapshot-{snapshot_id}", json.dumps(changed).encode())
    file_io.write(f"{table.location}/snapshot/LATEST", str(snapshot_id).encode())


def test_a_commit_is_refused_after_that_of_another_engine_unless_an_option_allows_it(table: Table) -> None:
    commit_as_other_engine(table, 2)
    before = {status.path for status in table._ref.file_io.list(f"{table.location}/bucket-0")}
    with pytest.raises(UnsupportedFeatureError, match=r"another engine created snapshot 2 \(commit user flink-job\)"):
        table.append(ROWS)
    with pytest.raises(UnsupportedFeatureError, match=r"'penstock\.object-store\.allow-other-engines' = 'true'"):
        table.truncate()
    assert {status.path for status in table._ref.file_io.list(f"{table.location}/bucket-0")} == before
    allowed = table.with_options({"penstock.object-store.allow-other-engines": "true"})
    allowed.append(ROWS)
    table.append(ROWS)
    assert sorted(table.to_arrow()["id"].to_pylist()) == sorted(ROWS["id"].to_pylist() * 3)


def test_a_reader_is_warned_once(table: Table) -> None:
    commit_as_other_engine(table, 2)
    with pytest.warns(OtherEngineWarning, match="another engine created snapshot 2; reading is safe") as caught:
        assert table.to_arrow().num_rows == 3
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table.to_arrow()


def test_a_stream_warns_too(table: Table) -> None:
    commit_as_other_engine(table, 2)
    with pytest.warns(OtherEngineWarning, match="another engine created snapshot 2; reading is safe"):
        assert sum(batch.num_rows for batch in table.follow(once=True)) == 3


def test_a_branch_is_guarded_like_its_table(table: Table) -> None:
    table.versions.create_branch("b", snapshot_id=1)
    branch = table.with_options({"branch": "b"})
    commit_as_other_engine(branch, 2)
    with pytest.raises(UnsupportedFeatureError, match="another engine created snapshot 2"):
        branch.append(ROWS)
    table.append(ROWS)


def test_a_rollback_is_refused_like_a_commit(table: Table) -> None:
    table.append(ROWS)
    commit_as_other_engine(table, 3)
    before = stored_files(table._ref)
    assert table.rollback_to(snapshot_id=1, dry_run=True).snapshot_ids == (3, 2)
    with pytest.raises(UnsupportedFeatureError, match=r"another engine created snapshot 3 \(commit user flink-job\)"):
        table.rollback_to(snapshot_id=1)
    assert stored_files(table._ref) == before
    table.with_options({"penstock.object-store.allow-other-engines": "true"}).rollback_to(snapshot_id=1)
    assert table.to_arrow().num_rows == 3
    table.append(ROWS)


def test_a_rollback_is_refused_if_another_engine_commits_while_it_runs(table: Table) -> None:
    table.append(ROWS)
    store, plan = MetadataStore(table._ref), plan_rollback(MetadataStore(table._ref), snapshot_id=1)
    commit_as_other_engine(table, 3)
    with pytest.raises(UnsupportedFeatureError, match="another engine created snapshot 3"):
        apply_rollback(store, plan, check=lambda latest: check_other_engines(table._ref, latest))
    assert sorted(store.list_snapshot_ids()) == [1, 2, 3]


def test_fast_forward_is_refused_after_a_commit_of_another_engine(table: Table) -> None:
    commit_as_other_engine(table, 2)
    table.versions.create_branch("b", snapshot_id=2)
    branch = table.with_options({"branch": "b", "penstock.object-store.allow-other-engines": "true"})
    branch.append(ROWS)
    with pytest.raises(UnsupportedFeatureError, match="another engine created snapshot 2"):
        table.versions.fast_forward("b")
    allowed = table.with_options({"penstock.object-store.allow-other-engines": "true"})
    assert allowed.versions.fast_forward("b") == 1


def test_a_store_that_lets_two_commits_land_gets_no_files(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_client: object, _directory: str) -> None:
        raise UnsupportedFeatureError("2 conditional puts succeeded")

    monkeypatch.setattr("penstock.io.object_store.file_io.check_conditional_puts", refuse)
    before = stored_files(table._ref)
    with pytest.raises(UnsupportedFeatureError, match="2 conditional puts"):
        table.append(ROWS)
    assert stored_files(table._ref) == before


def test_on_a_disk_other_engines_commit_as_they_like(tmp_path: Path) -> None:
    table = make_table(str(tmp_path), {})
    commit_as_other_engine(table, 2)
    table.append(ROWS)
    assert table.to_arrow().num_rows == 6
