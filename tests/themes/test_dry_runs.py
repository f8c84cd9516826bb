"""One rule for everything that removes: it does so unless ``dry_run``, and commands ask first."""

from __future__ import annotations

import inspect
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest
from tests.unit.cli.conftest import Command
from typer.main import get_command

import penstock
from penstock.api.operations.branches import DeleteBranch
from penstock.api.operations.consumers import ClearConsumers, DeleteConsumer, ResetConsumer
from penstock.api.operations.declaration import Operation, run_on
from penstock.api.operations.partitions import ExpirePartitions
from penstock.api.operations.rollback import RollbackTo
from penstock.api.operations.snapshots import (
    ExpireSnapshots,
    RemoveMissingFiles,
    RemoveMissingManifests,
    RemoveOrphanFiles,
)
from penstock.api.operations.tags import DeleteTag, ExpireTags
from penstock.api.procedures import PROCEDURES
from penstock.cli.main import app

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NAME: Final = "shop.days"
FUTURE: Final = "2100-01-01 00:00:00"
FUTURE_MILLIS: Final = 4_102_444_800_000
# Verbs of what removes more than rows, which older snapshots keep.
DESTROYING: Final = re.compile("Expire|Remove|Delete|Clear|Reset|RollbackTo$")
ROWS: Final = {"delete", "truncate", "drop-partition"}
FILES: Final = {"drop"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An operation that would remove something from the table.

    Attributes:
        call: its procedure with arguments; None if it has none.
        command: its command with arguments; None if it has none.
        prepare: makes what it removes.
    """

    operation: Callable[..., Operation[Any, Any]]
    arguments: dict[str, Any]
    call: str | None = None
    command: tuple[str, ...] | None = None
    prepare: Callable[[penstock.Table], None] = lambda _table: None


def _lose(pattern: str) -> Callable[[penstock.Table], None]:
    def lose(table: penstock.Table) -> None:
        newest = max(Path(table.location).glob(pattern), key=lambda path: path.stat().st_mtime_ns)
        newest.unlink()

    return lose


def _lose_manifest(table: penstock.Table) -> None:
    name = table.inspect.manifests().column("file_name")[0].as_py()
    (Path(table.location) / "manifest" / name).unlink()


def _leave_orphan(table: penstock.Table) -> None:
    path = Path(table.location) / "manifest" / "manifest-lost-0"
    path.write_bytes(b"???")
    two_days_ago = path.stat().st_mtime - 172_800
    os.utime(path, (two_days_ago, two_days_ago))


CASES: Final = {
    ExpireSnapshots: Case(
        operation=ExpireSnapshots,
        arguments={"retain_min": 1, "retain_max": 1, "older_than": FUTURE_MILLIS},
        call=f"expire_snapshots('{NAME}', 1, 1, '{FUTURE}'",
        command=("expire", NAME, "--retain-min", "1", "--retain-max", "1"),  # the consumer keeps one of them
    ),
    ExpirePartitions: Case(
        operation=ExpirePartitions,
        arguments={"expiration_time": "1 d"},
        call=f"expire_partitions('{NAME}', '1 d'",
        command=("expire-partitions", NAME, "--expiration-time", "1 d"),
    ),
    ExpireTags: Case(
        operation=ExpireTags, arguments={"older_than": FUTURE_MILLIS}, call=f"expire_tags('{NAME}', '{FUTURE}'"
    ),
    RemoveOrphanFiles: Case(
        operation=RemoveOrphanFiles,
        arguments={},
        call=f"remove_orphan_files('{NAME}'",
        command=("remove-orphan-files", NAME),
        prepare=_leave_orphan,
    ),
    RemoveMissingFiles: Case(
        operation=RemoveMissingFiles,
        arguments={},
        call=f"remove_unexisting_files('{NAME}'",
        prepare=_lose("dt=*/bucket-0/data-*"),
    ),
    RemoveMissingManifests: Case(
        operation=RemoveMissingManifests,
        arguments={},
        call=f"remove_unexisting_manifests('{NAME}'",
        prepare=_lose_manifest,
    ),
    RollbackTo: Case(
        operation=RollbackTo,
        arguments={"snapshot_id": 1},
        call=f"rollback_to('{NAME}', 1",
        command=("rollback", NAME, "--snapshot-id", "1"),
    ),
    DeleteTag: Case(
        operation=DeleteTag,
        arguments={"name": "old"},
        call=f"delete_tag('{NAME}', 'old'",
        command=("tag", "delete", NAME, "old"),
    ),
    DeleteBranch: Case(
        operation=DeleteBranch,
        arguments={"name": "trial"},
        call=f"delete_branch('{NAME}', 'trial'",
        command=("branch", "delete", NAME, "trial"),
    ),
    DeleteConsumer: Case(
        operation=DeleteConsumer,
        arguments={"consumer_id": "reader"},
        call=f"reset_consumer('{NAME}', 'reader'",
        command=("consumer", "delete", NAME, "reader"),
    ),
    ResetConsumer: Case(
        operation=ResetConsumer,
        arguments={"consumer_id": "reader", "next_snapshot": 2},
        call=f"reset_consumer('{NAME}', 'reader', 2",
        command=("consumer", "reset", NAME, "reader", "--to", "2"),
    ),
    ClearConsumers: Case(operation=ClearConsumers, arguments={}, call=f"clear_consumers('{NAME}'"),
}
OF_COMMANDS: Final = {
    "delete": ("delete", NAME, "--where", "id = 1"),
    "truncate": ("truncate", NAME),
    "drop-partition": ("drop-partition", NAME, "dt=2026-01-01"),
    "drop": ("drop", NAME),
    **{case.command[0] + " " + case.command[1]: case.command for case in CASES.values() if case.command is not None},
}


def _all(kind: type) -> Iterator[type]:
    for each in kind.__subclasses__():
        yield each
        yield from _all(each)


def _operations() -> set[type]:
    """Return the operations, not the classes that dataclasses with slots replace."""
    return {
        getattr(sys.modules[each.__module__], each.__name__)
        for each in _all(Operation)
        if "penstock" in each.__module__
    }


@pytest.fixture
def days(tmp_path: Path) -> Command:
    """Three snapshots in three partitions, a tag, a branch and a consumer, in a directory."""
    command = Command(warehouse=str(tmp_path / "warehouse"))
    command.catalog.create_database("shop")
    options = {"snapshot.num-retained.min": "1"}
    table = command.catalog.create_table(NAME, "id BIGINT, dt STRING", partition_by=["dt"], options=options)
    for number in range(3):
        table.append(pa.table({"id": [number], "dt": [f"2026-01-0{number + 1}"]}))
    table.create_tag("old", snapshot_id=1)
    table.versions.create_branch("trial", tag="old")
    run_on(table, ResetConsumer("reader", 3))
    return command


def contents(command: Command) -> dict[str, bytes]:
    files = (path for path in Path(command.warehouse).rglob("*") if path.is_file())
    return {str(path): path.read_bytes() for path in files if not path.name.startswith("lease-")}


def test_every_operation_that_removes_is_here() -> None:
    assert {each for each in _operations() if DESTROYING.match(each.__name__)} == set(CASES)


def test_nothing_is_a_dry_run_by_default() -> None:
    functions = [each for each in _operations() if "dry_run" in inspect.signature(each).parameters]
    assert set(CASES) <= set(functions)
    classes = [value for name in penstock.__all__ if inspect.isclass(value := getattr(penstock, name))]
    methods = [each for one in classes for _, each in inspect.getmembers(one, inspect.isfunction)]
    methods = [each for each in methods if "dry_run" in inspect.signature(each).parameters]
    assert len(methods) > 20
    for each in (*functions, *methods):
        assert inspect.signature(each).parameters["dry_run"].default is False, each
    for procedure in PROCEDURES.values():
        takes = "dry_run" in inspect.signature(procedure.operation).parameters
        assert ("dry_run" in procedure.parameters) == takes, procedure.name


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.operation.__name__)
def test_a_dry_run_removes_nothing_and_without_it_something_goes(days: Command, case: Case) -> None:
    table = days.catalog.load_table(NAME)
    case.prepare(table)
    before = contents(days)
    run_on(table, case.operation(**case.arguments, dry_run=True))
    assert contents(days) == before
    days("sql", "-e", f"CALL sys.{case.call}, dry_run => TRUE)")
    assert contents(days) == before
    run_on(table, case.operation(**case.arguments))
    assert contents(days) != before


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.operation.__name__)
def test_a_procedure_does_what_its_name_says(days: Command, case: Case) -> None:
    case.prepare(days.catalog.load_table(NAME))
    before = contents(days)
    days("sql", "-e", f"CALL sys.{case.call})")
    assert contents(days) != before


@pytest.mark.parametrize("arguments", OF_COMMANDS.values(), ids=lambda arguments: arguments[0])
def test_a_command_asks_before_it_removes(days: Command, arguments: tuple[str, ...]) -> None:
    if arguments[0] == "remove-orphan-files":
        _leave_orphan(days.catalog.load_table(NAME))
    before = contents(days)
    days(*arguments, "--dry-run")
    assert contents(days) == before
    assert "--yes answers for you" in days(*arguments, code=1).stderr
    assert "--yes answers for you" in days(*arguments, input="n\n", code=1).stderr
    assert contents(days) == before
    days(*arguments, "--yes")
    assert contents(days) != before


def test_every_command_that_removes_asks() -> None:
    found = dict(_commands(get_command(app)))
    of_operations = {name for name, each in found.items() if each.callback.operation in CASES}
    for name in of_operations | ROWS | FILES:
        assert {"yes", "dry_run"} <= {each.name for each in found[name].params}, name
        assert any(" ".join(arguments).startswith(name) for arguments in OF_COMMANDS.values()), name


def _commands(group: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    for name, each in group.commands.items():
        if hasattr(each, "commands"):
            yield from _commands(each, f"{path}{name} ")
        else:
            yield f"{path}{name}", each
