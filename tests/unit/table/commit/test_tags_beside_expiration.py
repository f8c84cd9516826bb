from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest
from tests.support.garbage import needed_files, stored_files
from tests.unit.table.commit.interleaved import PausedFileIO, commit_rows, expire_to
from tests.unit.table.commit_tables import committer, new_table, on

from penstock import Catalog, Table
from penstock.errors import NotFoundError
from penstock.table.actions.restore import restore_snapshot
from penstock.table.expire.rollback import apply_rollback, plan_rollback
from penstock.table.expire.snapshots import SnapshotExpirer
from penstock.table.expire.tags import delete_tag
from penstock.table.store import MetadataStore
from penstock.table.tags import create_tag
from penstock.testing.file_io import Operation, RecordingFileIO

if TYPE_CHECKING:
    from penstock.table.ref import TableRef


def test_a_tag_on_a_snapshot_whose_files_are_being_deleted_is_refused_and_leaves_nothing() -> None:
    ref = new_table()
    commit_rows(ref, 1, 2, 3, 4)
    errors: list[str] = []

    def tag() -> None:
        with pytest.raises(NotFoundError, match=r"table db\.t: snapshot 2 is about to expire") as caught:
            create_tag(MetadataStore(ref), "keep", snapshot_id=2)
        errors.append(str(caught.value))

    paused = PausedFileIO(ref.file_io, "/snapshot-1", before=tag)
    expire_to(on(ref, paused), 1)
    assert errors
    assert MetadataStore(ref).list_tags() == ()
    create_tag(MetadataStore(ref), "keep", snapshot_id=4)


def test_an_expiration_sees_a_tag_that_was_made_after_it_was_planned() -> None:
    ref = new_table()
    commit_rows(ref, 1, 2, 3, 4)
    manifest = MetadataStore(ref).load_snapshot(2).base_manifest_list

    class TagOnPlan(RecordingFileIO):
        """Tags snapshot 2 when the expiration says that it begins."""

        def write(self, path: str, data: bytes) -> None:
            if path.endswith("/.penstock/expiring"):
                create_tag(MetadataStore(ref), "keep", snapshot_id=2)
            super().write(path, data)

    expire_to(on(ref, TagOnPlan(ref.file_io)), 1)
    assert MetadataStore(ref).list_snapshot_ids() == (4,)
    tagged = MetadataStore(ref).load_tag("keep").snapshot
    assert tagged.base_manifest_list == manifest
    assert len(MetadataStore(ref).load_manifests(tagged)) == 2


def test_a_dry_run_says_nothing_to_those_who_tag() -> None:
    ref = new_table()
    commit_rows(ref, 1, 2, 3)
    recording = RecordingFileIO(ref.file_io)
    expirer = SnapshotExpirer(on(ref, recording), MetadataStore(on(ref, recording)))
    expirer.run(expirer.rules(retain_min=1, retain_max=1, older_than=4_000_000_000_000), dry_run=True)
    assert not recording.paths(Operation.WRITE)
    create_tag(MetadataStore(ref), "keep", snapshot_id=1)


def test_a_snapshot_that_came_back_from_its_tag_can_be_tagged_again() -> None:
    ref = new_table()
    commit_rows(ref, 1, 2, 3)
    store = MetadataStore(ref)
    create_tag(store, "one", snapshot_id=1)
    expire_to(ref, 1)
    assert not ref.file_io.exists(ref.layout.snapshot_path(1))
    apply_rollback(store, plan_rollback(store, tag="one"))
    create_tag(store, "again", snapshot_id=1)
    assert store.list_tags() == ("again", "one")


def table_of_expired_tag() -> TableRef:
    """A table whose first snapshot has expired and has the tag ``one``."""
    catalog = Catalog(f"memory://{uuid.uuid4()}")
    catalog.create_database("db")
    table = catalog.create_table("db.t", "n INT", options={"write-only": "true"})
    for number in (1, 2):
        table.overwrite([{"n": number}])
    table.create_tag("one", snapshot_id=1)
    expire_to(table._handle.ref, 1)
    return table._handle.ref


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_rollback_to_a_tag_that_is_deleted_meanwhile_changes_nothing(when: str) -> None:
    ref = table_of_expired_tag()

    def forget() -> None:
        delete_tag(ref, MetadataStore(ref), "one")

    slow = MetadataStore(on(ref, PausedFileIO(ref.file_io, "/snapshot-1", **{when: forget})))
    with pytest.raises(NotFoundError, match=r"table db\.t: the tag of snapshot 1, which has expired, was deleted"):
        apply_rollback(slow, plan_rollback(slow, tag="one"))
    assert MetadataStore(ref).list_snapshot_ids() == (2,)
    assert needed_files(ref) <= stored_files(ref)


def test_a_tag_that_is_deleted_while_its_rows_are_restored_does_not_take_them_along() -> None:
    ref = table_of_expired_tag()
    paused = PausedFileIO(ref.file_io, "/snapshot-3", before=lambda: delete_tag(ref, MetadataStore(ref), "one"))
    restored = restore_snapshot(committer(on(ref, paused)), tag="one")
    assert paused.was_paused
    assert restored is not None
    assert needed_files(ref) <= stored_files(ref)
    assert Table(ref).to_arrow()["n"].to_pylist() == [1]
    assert MetadataStore(ref).list_tags() == ()


def table_to_roll_back() -> TableRef:
    """A table with a tag of its first snapshot, of which the third lacks the file."""
    catalog = Catalog(f"memory://{uuid.uuid4()}")
    catalog.create_database("db")
    table = catalog.create_table("db.t", "n INT, p INT", partition_by=["p"], options={"write-only": "true"})
    table.append([{"n": 1, "p": 1}])
    table.create_tag("one")
    table.append([{"n": 2, "p": 2}])
    table.drop_partitions({"p": "1"})
    return table._handle.ref


def check_tags_after_more_commits(ref: TableRef) -> None:
    table = Table(ref)
    table.append([{"n": 3, "p": 3}])
    table.truncate()
    table.append([{"n": 4, "p": 4}])
    expire_to(ref, 1)
    assert table._store.list_tags() == ("one",)
    assert table.to_arrow(tag="one")["n"].to_pylist() == [1]


def test_a_snapshot_that_is_rolled_back_while_it_is_tagged_gets_no_tag() -> None:
    ref = table_to_roll_back()

    def roll_back() -> None:
        table = Table(ref)
        table.rollback_to(snapshot_id=2)
        table.append([{"n": 5, "p": 2}])

    paused = PausedFileIO(ref.file_io, "/tag-two", before=roll_back)
    with pytest.raises(NotFoundError, match="or was rolled back"):
        create_tag(MetadataStore(on(ref, paused)), "two", snapshot_id=3)
    check_tags_after_more_commits(ref)


def test_a_rollback_deletes_the_tags_that_are_made_while_it_runs() -> None:
    ref = table_to_roll_back()
    paused = PausedFileIO(
        ref.file_io, "/snapshot-4", before=lambda: create_tag(MetadataStore(ref), "two", snapshot_id=3)
    )
    slow = MetadataStore(on(ref, paused))
    apply_rollback(slow, plan_rollback(slow, snapshot_id=2))
    assert paused.was_paused
    check_tags_after_more_commits(ref)
