"""The runbook, docs/operate.md: from each damage, its own words lead back to a table that is read and appended."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from penstock import AddColumn, Table, sql
from penstock.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.cli.conftest import Command

    from penstock.table.ref import TableRef

PAGE: Final = (Path(__file__).parents[3] / "docs" / "operate.md").read_text(encoding="utf-8")
DISASTER: Final = PAGE.partition("## Disaster\n")[2].partition("\n## ")[0]
PARAGRAPHS: Final = {
    " ".join(title.split()).rstrip("."): " ".join(text.split())
    for title, text in re.findall(r"\*\*(.+?)\*\*(.*?)(?=\n\*\*|\Z)", DISASTER, re.DOTALL)
}
ELSEWHERE: Final = {
    "A commit ended with `CommitUnknownError`": "tests/unit/table/commit/test_put.py",
    "A checkpoint is lost": "tests/unit/table/stream_sink/test_checkpoints.py",
    "The disk is full": "tests/unit/table/expire and docs/robustness.md",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A damage, and the cure of a paragraph.

    Attributes:
        says: words of the paragraph that the cure follows.
        cure: commands, each of which is in the paragraph, with the table's name for TABLE.
        ids: rows of the table after the cure; each snapshot adds its own id.
        by_hand: what is done with the tools of the storage, before the commands.
        has_finding: whether fsck finds it.
        rows: what a call of SQL does, before the commands.
    """

    name: str
    paragraph: str
    says: str
    damage: Callable[[TableRef], None]
    cure: tuple[tuple[str, ...], ...] = ()
    ids: tuple[int, ...] = (1, 2, 3, 4)
    by_hand: Callable[[TableRef, dict[str, bytes]], None] = field(default=lambda _ref, _copy: None)
    statement: str | None = None
    has_finding: bool = True


def write(place: Callable[[TableRef], str], data: bytes) -> Callable[[TableRef], None]:
    return lambda ref: ref.file_io.write(place(ref), data)


def cut(place: Callable[[TableRef], str]) -> Callable[[TableRef], None]:
    return lambda ref: ref.file_io.write(place(ref), ref.file_io.read(place(ref))[:-20])


def lose(*places: Callable[[TableRef], str]) -> Callable[[TableRef], None]:
    def damage(ref: TableRef) -> None:
        for path in [place(ref) for place in places]:
            ref.file_io.delete(path)

    return damage


def lose_all(place: Callable[[TableRef], str]) -> Callable[[TableRef], None]:
    return lambda ref: [ref.file_io.delete(each.path) for each in ref.file_io.list(place(ref))] and None


def restore(ref: TableRef, copy: dict[str, bytes]) -> None:
    for path, data in copy.items():
        if not ref.file_io.has_file(path) or ref.file_io.read(path) != data:
            ref.file_io.write(path, data)


def move_away(place: Callable[[TableRef], str]) -> Callable[[TableRef, dict[str, bytes]], None]:
    return lambda ref, _copy: ref.file_io.delete(place(ref))


def snapshot(number: int) -> Callable[[TableRef], str]:
    return lambda ref: ref.layout.snapshot_path(number)


def schema(number: int) -> Callable[[TableRef], str]:
    return lambda ref: ref.layout.schema_path(number)


def data_file(number: int) -> Callable[[TableRef], str]:
    """The data file of a snapshot, found by its partition."""
    return lambda ref: next(
        each.path for each in ref.file_io.list(f"{ref.location}/dt={number}/bucket-0") if each.name.endswith(".parquet")
    )


def manifest(number: int) -> Callable[[TableRef], str]:
    def place(ref: TableRef) -> str:
        store = Table.at(ref.location)._store
        found = store.load_snapshot(number)
        return ref.layout.manifest_path(store.load_delta_manifests(found)[0].file_name)

    return place


def manifest_list(number: int) -> Callable[[TableRef], str]:
    return lambda ref: ref.layout.manifest_path(Table.at(ref.location)._store.load_snapshot(number).delta_manifest_list)


LATEST = "The latest snapshot is damaged"
OLDER = "An older snapshot is damaged"
SCHEMA = "A schema file is lost or damaged"
FILE = "A file is missing or damaged"
MISSING = "A snapshot file is missing"
NAMED = "A tag or a consumer is damaged"
BACK_TO_3 = (("rollback", "--snapshot-id", "3", "--yes"),)
TO_OLD_SCHEMA = (("rollback", "--snapshot-id", "2", "--yes"),)

CASES: Final = (
    Case(
        name="wrong rows", paragraph="Wrong rows were committed", says="`penstock rollback TABLE --as-latest`",
        damage=lambda _ref: None, cure=(("rollback", "--as-latest", "--snapshot-id", "3"),), ids=(1, 2, 3),
        has_finding=False,
    ),
    *(
        Case(
            name=f"latest snapshot {name}", paragraph=LATEST, says="`penstock rollback TABLE --snapshot-id M`",
            damage=damage, cure=BACK_TO_3, ids=(1, 2, 3),
        )
        for name, damage in (
            ("empty", write(snapshot(4), b"")),
            ("cut off", cut(snapshot(4))),
            ("of other bytes", write(snapshot(4), b"\0" * 300)),
        )
    ),
    Case(
        name="older snapshot, left as it is", paragraph=OLDER, says="Without one, nothing has to be done",
        damage=write(snapshot(2), b""),
    ),
    Case(
        name="older snapshot, from a copy", paragraph=OLDER, says="Restore the file from a copy",
        damage=cut(snapshot(2)), by_hand=restore,
    ),
    Case(
        name="schema of the latest snapshot lost", paragraph=SCHEMA,
        says="roll back to a snapshot with an older schema, `penstock rollback TABLE --snapshot-id M`",
        damage=lose(schema(1)), cure=TO_OLD_SCHEMA, ids=(1, 2),
    ),
    Case(
        name="schema of the latest snapshot lost, from a copy", paragraph=SCHEMA,
        says="Restore the file from a copy: schema files never change", damage=lose(schema(1)), by_hand=restore,
    ),
    Case(
        name="schema of the latest snapshot empty", paragraph=SCHEMA,
        says="deletes damaged schema files that are newer than the schema of snapshot M",
        damage=write(schema(1), b""), cure=TO_OLD_SCHEMA, ids=(1, 2),
    ),
    Case(
        name="newest schema empty, named by no snapshot", paragraph=SCHEMA, says="M may be the latest snapshot",
        damage=write(schema(2), b""), cure=(("rollback", "--snapshot-id", "4", "--yes"),),
    ),
    Case(
        name="all schemas lost", paragraph=SCHEMA, says="If all schema files are lost, the table can be neither read",
        damage=lose(schema(0), schema(1)), by_hand=restore, has_finding=False,
    ),
    Case(
        name="data file lost", paragraph=FILE, says="As a last resort, `CALL sys.remove_unexisting_files`",
        damage=lose(data_file(3)), statement="CALL sys.remove_unexisting_files('shop.t')", ids=(1, 2, 4),
    ),
    Case(
        name="data file lost, from a copy", paragraph=FILE, says="Restore them from a backup",
        damage=lose(data_file(3)), by_hand=restore,
    ),
    Case(
        name="data file cut off", paragraph=FILE, says="They do nothing about damaged files: move these away first",
        damage=cut(data_file(3)), by_hand=move_away(data_file(3)), ids=(1, 2, 4),
        statement="CALL sys.remove_unexisting_files('shop.t')",
    ),
    Case(
        name="data file of the latest snapshot lost", paragraph=FILE, damage=lose(data_file(4)), ids=(1, 2, 3),
        says="roll back to a snapshot that does not need the file", cure=BACK_TO_3,
    ),
    Case(
        name="manifest lost", paragraph=FILE, says="`sys.remove_unexisting_manifests`", damage=lose(manifest(3)),
        statement="CALL sys.remove_unexisting_manifests('shop.t')", ids=(1, 2, 4),
    ),
    Case(
        name="manifest cut off", paragraph=FILE, says="move these away first", damage=cut(manifest(3)),
        by_hand=move_away(manifest(3)), statement="CALL sys.remove_unexisting_manifests('shop.t')", ids=(1, 2, 4),
    ),
    Case(
        name="manifest list of the latest snapshot lost", paragraph=FILE, damage=lose(manifest_list(4)),
        says="roll back to a snapshot that does not need the file", cure=BACK_TO_3, ids=(1, 2, 3),
    ),
    Case(
        name="snapshot lost between others", paragraph=MISSING, says="restore it from a backup",
        damage=lose(snapshot(2)), by_hand=restore,
    ),
    Case(
        name="newest snapshots lost", paragraph=MISSING, says="Write nothing before they are restored",
        damage=lose(snapshot(3), snapshot(4)), by_hand=restore,
    ),
    Case(
        name="all snapshots and hints lost", paragraph=MISSING,
        says="`penstock rollback TABLE --tag NAME` brings back the state of a tag",
        damage=lose_all(lambda ref: ref.layout.snapshot_directory), cure=(("rollback", "--tag", "kept", "--yes"),),
        ids=(1, 2),
    ),
    Case(
        name="tag damaged", paragraph=NAMED, says="delete it (`penstock tag delete`)",
        damage=write(lambda ref: ref.layout.tag_path("kept"), b"{"), cure=(("tag delete", "kept", "--yes"),),
    ),
    Case(
        name="consumer damaged", paragraph=NAMED, says="(`penstock consumer reset`)",
        damage=write(lambda ref: ref.layout.consumer_path("reader"), b"{"),
        cure=(("consumer reset", "reader", "--to", "earliest"),),
    ),
    Case(
        name="consumer damaged and not needed", paragraph=NAMED, says="delete it (`penstock consumer delete`)",
        damage=write(lambda ref: ref.layout.consumer_path("reader"), b"{"),
        cure=(("consumer delete", "reader", "--yes"),),
    ),
)  # fmt: skip


@pytest.fixture
def table(penstock: Command) -> TableRef:
    """Four snapshots, each with the row of its id in a partition of its own; the third is the first of schema 1."""
    made = penstock.catalog.create_table(
        "shop.t", "id BIGINT, dt STRING", partition_by="dt", options={"write-only": "true"}
    )
    made.append([{"id": 1, "dt": "1"}])
    made.append([{"id": 2, "dt": "2"}])
    made.create_tag("kept", snapshot_id=2)
    made = penstock.catalog.alter_table("shop.t", AddColumn(column="note", type="STRING"))
    for number in (3, 4):
        made.append([{"id": number, "dt": str(number), "note": "x"}])
    made.maintenance.reset_consumer("reader", 3)
    return made._ref


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_runbook_leads_from_a_damage_to_a_table_that_is_read_and_appended(
    penstock: Command, table: TableRef, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.table.store._CONSUMER_WAIT_SECONDS", 0)
    assert case.says in PARAGRAPHS[case.paragraph]
    copy = {path: table.file_io.read(path) for path in _files(table, table.location)}
    case.damage(table)
    if case.has_finding:
        found = json.loads(penstock("fsck", "shop.t", "--format", "json", code=ExitCode.DAMAGED).stdout)
        assert found
    case.by_hand(table, copy)
    if case.statement is not None:
        sql(None, penstock.catalog, case.statement)
    for command, *arguments in case.cure:
        named = f"penstock {command}"
        assert named in PARAGRAPHS[case.paragraph], "a command that the paragraph names"
        penstock(*command.split(), "shop.t", *arguments)
    assert sorted(row["id"] for row in penstock.rows("shop.t")) == list(case.ids)
    assert penstock.catalog.load_table("shop.t").append(
        [{name: None if name == "note" else 9 if name == "id" else "1" for name in _columns(penstock)}]
    )
    assert sorted(row["id"] for row in penstock.rows("shop.t")) == [*case.ids, 9]
    # Older snapshots may still need what was lost, until they expire.
    penstock("consumer", "reset", "shop.t", "reader", "--to", "latest", "--yes")
    penstock("compact", "shop.t", "--strategy", "full")
    unmended = case.name == "older snapshot, left as it is"
    expired = penstock("expire", "shop.t", "--retain-min", "1", "--retain-max", "1", "--yes", code=8 if unmended else 0)
    assert "expired" in expired.stdout
    assert penstock.catalog.load_table("shop.t")._store.list_snapshot_ids()[1:] == ()
    penstock("fsck", "shop.t", "--all-snapshots")


def test_each_paragraph_of_the_runbook_is_followed() -> None:
    assert {case.paragraph for case in CASES} == PARAGRAPHS.keys() - ELSEWHERE.keys()
    assert ELSEWHERE.keys() <= PARAGRAPHS.keys()
    assert len(CASES) >= 11


def _columns(penstock: Command) -> list[str]:
    return [each.name for each in penstock.catalog.load_table("shop.t").schema.fields]


def _files(ref: TableRef, directory: str) -> list[str]:
    found = []
    for status in ref.file_io.list(directory):
        found += _files(ref, status.path) if status.is_dir else [status.path]
    return found
