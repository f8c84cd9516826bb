"""Row changes of tables with ``deletion-vectors.enabled``: files stay, and get vectors of the rows that are gone."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc
import pytest
from tests.deletion_vectors import delete_keys

import penstock
from penstock import MergeDelete, MergeInsert, MergeUpdate, SetOption
from penstock.clocks import utc_millis
from penstock.errors import CommitConflictError, OptionWarning, OutOfMemoryError
from penstock.format.snapshot import CommitKind
from penstock.io.memory import MemoryFileIO
from penstock.table.dml import run
from penstock.table.read.live import load_live_entries
from penstock.table.read.scan import load_vector_places

if TYPE_CHECKING:
    from penstock.format.manifest.index_manifest import VectorPlace

NUMBERS: Final = itertools.count()
QUEUE: Final = {"bucket": "1", "bucket-key": "k"}


def new_table(options: dict[str, str] | None = None, *, parts: tuple[str, ...] = (), files: int = 3) -> penstock.Table:
    """Make a table with ten rows in each file."""
    catalog = penstock.Catalog(f"memory://marks-{next(NUMBERS)}/w")
    catalog.create_database("d")
    options = {"deletion-vectors.enabled": "true", "write-only": "true", **(options or {})}
    made = catalog.create_table("d.t", "k INT, p STRING, n INT", partition_by=list(parts), options=options)
    for first in range(0, 10 * files, 10):
        made.append([{"k": k, "p": "ab"[k % 2] if parts else "a", "n": 0} for k in range(first, first + 10)])
    return made


def alter(table: penstock.Table, change: SetOption) -> None:
    penstock.Catalog(table.location.removesuffix("/d.db/t")).alter_table("d.t", change)


def keys(table: penstock.Table) -> list[int]:
    found: list[int] = penstock.Table.at(table.location).to_arrow()["k"].to_pylist()
    return found


def names_of(table: penstock.Table) -> list[str]:
    return [row["file_path"].rpartition("/")[2] for row in table.files().to_pylist()]


def places(table: penstock.Table) -> dict[str, VectorPlace]:
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    return {key.file_name: place for key, place in load_vector_places(table._store, snapshot).items()}


@pytest.mark.parametrize("options", [{}, {"deletion-vectors.bitmap64": "true"}, QUEUE])
def test_a_delete_writes_no_data_file(options: dict[str, str]) -> None:
    table = new_table(options)
    before = names_of(table)
    planned = table.delete("k IN (3, 4, 27)", dry_run=True)
    assert not places(table)
    done = table.delete("k IN (3, 4, 27)")
    assert (planned.files, planned.rows_deleted) == (done.files, done.rows_deleted)
    assert (done.rows_deleted, done.files_added, [each.deleted for each in done.files]) == (3, 0, [2, 1])
    assert names_of(table) == before
    assert {name: place.row_count for name, place in places(table).items()} == {before[0]: 2, before[2]: 1}
    assert len({place.index_file for place in places(table).values()}) == 1
    snapshot = done.snapshot
    assert snapshot is not None
    # As Java counts: the rows of files.
    assert (snapshot.commit_kind, snapshot.delta_record_count, snapshot.total_record_count) == (
        CommitKind.OVERWRITE,
        0,
        30,
    )
    assert table.delete("k IN (4, 5)").rows_deleted == 1
    assert places(table)[before[0]].row_count == 3
    assert keys(table) == [k for k in range(30) if k not in {3, 4, 5, 27}]
    assert table.delete("k IN (3, 4)").snapshot is None


def test_a_file_without_rows_is_removed() -> None:
    table = new_table()
    first, second, third = names_of(table)
    table.delete("k < 9")
    assert list(places(table)) == [first]
    table.delete("k < 12")
    assert (names_of(table), list(places(table))) == ([second, third], [second])
    table.update({"k": pc.add(pc.field("k"), pc.scalar(100))}, "k < 20")
    assert (len(names_of(table)), places(table)) == (2, {})
    assert keys(table) == [*range(20, 30), *range(112, 120)]


@pytest.mark.parametrize("options", [{}, QUEUE])
def test_updated_rows_are_appended(options: dict[str, str]) -> None:
    table = new_table(options)
    before = names_of(table)
    done = table.update({"n": 1}, "k IN (3, 25)")
    assert (done.rows_updated, done.files_added) == (2, 2)
    assert names_of(table)[:3] == before
    assert keys(table) == [*(k for k in range(30) if k not in {3, 25}), 3, 25]
    if options:
        numbers = [(row["min_sequence_number"], row["max_sequence_number"]) for row in table.files().to_pylist()]
        assert numbers == [(0, 9), (10, 19), (20, 29), (30, 30), (31, 31)]
    assert table.update({"n": 2}, "n = 1").rows_updated == 2
    assert table.to_arrow(filter="n = 2")["k"].to_pylist() == [3, 25]


def test_a_merge_marks_what_it_changes_and_appends() -> None:
    table = new_table()
    before = names_of(table)
    source = [{"k": k, "p": "z", "n": k} for k in (2, 5, 40)]
    done = table.merge(
        source, "k", matched=[MergeDelete(where=pc.field("source.k") == 5), MergeUpdate()], not_matched=MergeInsert()
    )
    assert (done.rows_deleted, done.rows_updated, done.rows_inserted) == (1, 1, 1)
    assert names_of(table)[:3] == before
    assert keys(table) == [*(k for k in range(30) if k not in {2, 5}), 2, 40]
    same = table.merge(source, "k", matched=MergeUpdate(where=pc.field("n") == -1))
    assert (same.snapshot, same.files) == (None, ())


def test_a_row_may_move_to_another_partition() -> None:
    table = new_table(parts=("p",))
    table.update({"p": "b"}, "k IN (2, 4)")
    assert table.to_arrow(filter="p = 'b'")["k"].to_pylist() == [*range(1, 30, 2), 2, 4]
    # One index file for each partition.
    assert len(places(table)) == 1


def test_index_files_are_as_large_as_the_table_says_and_one_for_each_bucket() -> None:
    small = {"deletion-vector.index-file.target-size": "1 b"}
    for options, count in (({}, 1), (small, 3), ({**small, **QUEUE}, 1)):
        table = new_table(options)
        table.delete("k IN (1, 11, 21)")
        assert len({place.index_file for place in places(table).values()}) == count
        table.delete("k = 2")
        assert len({place.index_file for place in places(table).values()}) == count
        assert len(keys(table)) == 26


def test_vectors_of_another_width_are_written_again_with_that_of_the_table() -> None:
    table = new_table({"deletion-vectors.bitmap64": "true"})
    assert delete_keys(table, "k", {1}) == 1
    table.delete("k = 2")
    assert keys(table) == [0, *range(3, 30)]


@pytest.mark.parametrize("option", ["deletion-vectors.enabled", "index-file-in-data-file-dir"])
def test_other_tables_have_their_files_rewritten(option: str) -> None:
    """Java reads no vectors in a table without the option; Penstock writes none into directories of data files."""
    table = new_table({option: "false" if option == "deletion-vectors.enabled" else "true"})
    before = names_of(table)
    handle = table.with_options({"deletion-vectors.enabled": "true"}) if option == "deletion-vectors.enabled" else table
    handle.delete("k = 3")
    assert not places(table)
    assert len(set(names_of(table)) & set(before)) == 2


@pytest.mark.parametrize("other", ["append", "delete the row", "delete another", "compact", "drop"])
def test_a_lost_race_is_evaluated_again(monkeypatch: pytest.MonkeyPatch, other: str) -> None:
    table = new_table()
    real, others = MemoryFileIO.put_if_absent, iter([True])
    wanted = [k for k in range(30) if k != 3]

    def put(self: MemoryFileIO, path: str, data: bytes) -> bool:
        if "/snapshot/snapshot-" in path and next(others, False):
            also = penstock.Table.at(table.location)
            match other:
                case "append":
                    also.append([{"k": 3, "p": "a", "n": 1}])
                case "delete the row":
                    also.delete("k = 3")
                case "delete another":
                    delete_keys(also, "k", {4})
                case "compact":
                    also.compact(options={"compaction.min.file-num": "2"})
                case _:
                    also.overwrite([{"k": 3, "p": "a", "n": 1}, {"k": 99, "p": "a", "n": 1}])
        return real(self, path, data)

    monkeypatch.setattr(MemoryFileIO, "put_if_absent", put)
    done = table.delete("k = 3")
    wanted = [k for k in wanted if k != 4] if other == "delete another" else [99] if other == "drop" else wanted
    assert keys(table) == wanted
    assert done.rows_deleted == {"append": 2, "delete the row": 0}.get(other, 1)
    index_files = {status.path.rpartition("/")[2] for status in table._ref.file_io.list(f"{table.location}/index")}
    assert {place.index_file for place in places(table).values()} <= index_files
    assert not penstock.Table.at(table.location).inspect.fsck().findings


def test_partitions_with_another_number_of_buckets_keep_it() -> None:
    table = new_table({"bucket": "2", "bucket-key": "k"}, parts=("p",))
    with pytest.warns(OptionWarning, match="existing ones keep 2 buckets"):
        alter(table, SetOption(key="bucket", value="3"))
    table = penstock.Table.at(table.location)
    planned = table.update({"n": 1}, "k IN (3, 4)", dry_run=True)
    done = table.update({"n": 1}, "k IN (3, 4)")
    assert (planned.rows_updated, done.rows_updated) == (2, 2)
    table.merge([{"k": 5, "p": "b", "n": 7}], "k", matched=MergeUpdate())
    assert len(places(table)) == 3
    snapshot = table._store.load_latest_snapshot()
    assert snapshot is not None
    assert {entry.total_buckets for entry in load_live_entries(table._store, snapshot).values()} == {2}
    rows = {row["k"]: row["n"] for row in penstock.Table.at(table.location).to_arrow().to_pylist()}
    assert rows == {k: {3: 1, 4: 1, 5: 7}.get(k, 0) for k in range(30)}
    # By bucket, as later reads look for them.
    assert [len(table.to_arrow(filter=f"k = {k}")) for k in (3, 4, 5)] == [1, 1, 1]


def test_a_table_that_loses_the_option_meanwhile_has_its_files_rewritten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Java would read no vector of it, and the deleted rows would be there."""
    table = new_table({"deletion-vectors.modifiable": "true"})
    before = names_of(table)
    real, others = run.FileRewriter._updated, iter([True])

    def updated(self: run.FileRewriter, *arguments: Any) -> Any:
        if next(others, False):
            alter(table, SetOption(key="deletion-vectors.enabled", value="false"))
        return real(self, *arguments)

    monkeypatch.setattr(run.FileRewriter, "_updated", updated)
    assert table.delete("k = 3").rows_deleted == 1
    assert not places(table)
    assert len(set(names_of(penstock.Table.at(table.location))) & set(before)) == 2
    assert sorted(keys(table)) == [k for k in range(30) if k != 3]


def test_memory_that_runs_out_for_a_vector_leaves_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table()
    files = {status.path for status in table._ref.file_io.list(f"{table.location}/bucket-0")}

    def encode(*_args: object, **_options: object) -> bytes:
        raise MemoryError("no memory")

    monkeypatch.setattr(run, "encode_deletion_vector", encode)
    with pytest.raises(OutOfMemoryError, match="memory ran out"):
        table.update({"n": 1}, "k = 3")
    assert {status.path for status in table._ref.file_io.list(f"{table.location}/bucket-0")} == files


@pytest.mark.parametrize("retries", ["10", "0"])
def test_a_change_whose_base_expires_is_evaluated_again(monkeypatch: pytest.MonkeyPatch, retries: str) -> None:
    table = new_table({"commit.max-retries": retries})
    table.delete("k = 1")
    real, others = run.FileRewriter._updated, iter([True])

    def mark(self: run.FileRewriter, *arguments: Any) -> Any:
        if next(others, False):
            also = penstock.Table.at(table.location)
            also.delete("k = 2")
            also.expire_snapshots(retain_max=1, retain_min=1)
        return real(self, *arguments)

    monkeypatch.setattr(run.FileRewriter, "_updated", mark)
    if retries == "0":
        with pytest.raises(CommitConflictError, match="snapshot 4, of which the change has read the rows, has expired"):
            table.delete("k = 3")
    assert table.delete("k = 3").rows_deleted == 1
    assert keys(table) == [0, *range(4, 30)]


def test_a_compaction_beside_a_delete_is_planned_again() -> None:
    table = new_table()
    table.delete("k IN (3, 13)")
    table.compact(options={"compaction.min.file-num": "2"})
    assert not places(table)
    assert keys(table) == [k for k in range(30) if k not in {3, 13}]


def test_an_expiration_deletes_index_files_of_expired_snapshots() -> None:
    table = new_table()
    for k in range(5):
        table.delete(f"k = {k}")
    assert len(list(table._ref.file_io.list(f"{table.location}/index"))) == 5
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert len(list(table._ref.file_io.list(f"{table.location}/index"))) == 1
    assert keys(table) == list(range(5, 30))


def test_earlier_states_keep_their_rows() -> None:
    table = new_table()
    table.create_tag("before")
    table.delete("k < 5")
    table.create_tag("between")
    table.versions.create_branch("b", tag="between")
    table.delete("k IN (5, 20)")
    branch = table.with_options({"branch": "b"})
    assert branch.delete("k = 29").rows_deleted == 1
    assert branch.to_arrow()["k"].to_pylist() == list(range(5, 29))
    assert keys(table) == [*range(6, 20), *range(21, 30)]
    assert table.to_arrow(options={"scan.tag-name": "before"})["k"].to_pylist() == list(range(30))
    assert table.to_arrow(options={"scan.tag-name": "between"})["k"].to_pylist() == list(range(5, 30))
    table.expire_snapshots(retain_max=1, retain_min=1)
    table.versions.delete_tag("before")
    table.remove_orphan_files(older_than=utc_millis(), dry_run=False, allow_recent=True)
    assert branch.to_arrow()["k"].to_pylist() == list(range(5, 29))
    table.rollback_to(tag="between")
    assert keys(table) == list(range(5, 30))
    table.remove_orphan_files(older_than=utc_millis(), dry_run=False, allow_recent=True)
    assert keys(table) == list(range(5, 30))
    assert branch.to_arrow()["k"].to_pylist() == list(range(5, 29))
    # Those of the tag and of the branch.
    assert len(list(table._ref.file_io.list(f"{table.location}/index"))) == 2


def test_a_stream_sees_what_was_appended() -> None:
    """As with Java Paimon: neither the deleted rows, nor, without an option, the updated ones."""
    table = new_table()
    table.delete("k = 3")
    stream = {"scan.mode": "from-snapshot", "scan.snapshot-id": "4"}
    table.update({"n": 1}, "k = 4")
    table.append([{"k": 50, "p": "a", "n": 0}])
    for overwrites, wanted in (("false", [50]), ("true", [4, 50])):
        options = {**stream, "streaming-read-append-overwrite": overwrites}
        found = [k for batch in table.follow(once=True, options=options) for k in batch["k"].to_pylist()]
        assert found == wanted
    assert table.to_arrow(options={"incremental-between": "3,6"})["k"].to_pylist() == [50]


@pytest.mark.parametrize("seed", range(6))
def test_random_histories_equal_a_plain_model(seed: int) -> None:
    r = random.Random(seed)  # noqa: S311 - not for secrets
    table = new_table(
        {
            **r.choice(({}, QUEUE, {"bucket": "3", "bucket-key": "k"})),
            "deletion-vectors.bitmap64": r.choice(("true", "false")),
            "deletion-vector.index-file.target-size": r.choice(("1 b", "2 mb")),
        },
        parts=r.choice(((), ("p",))),
    )
    model: dict[int, dict[str, Any]] = {row["k"]: row for row in table.to_arrow().to_pylist()}
    for step in range(25):
        low = r.randrange(30 + step)
        hit = [k for k in model if low <= k < low + 4]
        match r.choice(("delete", "update", "merge", "append", "compact", "other")):
            case "delete":
                assert table.delete(f"k >= {low} AND k < {low + 4}").rows_deleted == len(hit)
                for k in hit:
                    del model[k]
            case "other":
                assert delete_keys(table, "k", set(hit)) == len(hit)
                for k in hit:
                    del model[k]
            case "update":
                assert table.update({"n": step, "p": "b"}, f"k >= {low} AND k < {low + 4}").rows_updated == len(hit)
                for k in hit:
                    model[k] |= {"n": step, "p": "b"}
            case "merge":
                source = [{"k": k, "p": "a", "n": -step} for k in (low, low + 1)]
                table.merge(source, "k", matched=MergeUpdate(), not_matched=MergeInsert())
                model |= {row["k"]: row for row in source}
            case "append":
                table.append([{"k": 30 + step, "p": "a", "n": 0}])
                model[30 + step] = {"k": 30 + step, "p": "a", "n": 0}
            case _:
                table.compact(options={"compaction.min.file-num": "2", "compaction.delete-ratio-threshold": "0.3"})
        assert sorted(table.to_arrow().to_pylist(), key=lambda row: row["k"]) == [model[k] for k in sorted(model)]
    assert not penstock.Table.at(table.location).inspect.fsck(all_snapshots=True).findings
