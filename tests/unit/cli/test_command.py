"""Commands of operations: what they take is what the operation declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from typer.main import get_command

from penstock.api.migrate import Migrate
from penstock.api.operations.branches import CreateBranch, DeleteBranch, FastForward, RenameBranch
from penstock.api.operations.compaction import Compact
from penstock.api.operations.consumers import DeleteConsumer, ResetConsumer
from penstock.api.operations.declaration import parameters_of
from penstock.api.operations.partitions import ExpirePartitions, MarkPartitionsDone
from penstock.api.operations.rollback import RollbackTo
from penstock.api.operations.snapshots import ExpireSnapshots, RemoveOrphanFiles
from penstock.api.operations.tags import CreateTag, DeleteTag
from penstock.cli.command import command
from penstock.cli.main import app
from penstock.cli.session import Session  # noqa: TC001 - which the annotation of a body is evaluated with

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.unit.cli.conftest import Command

COMMANDS: dict[str, type] = {
    "compact": Compact,
    "expire": ExpireSnapshots,
    "expire-partitions": ExpirePartitions,
    "remove-orphan-files": RemoveOrphanFiles,
    "branch create": CreateBranch,
    "branch rename": RenameBranch,
    "branch fast-forward": FastForward,
    "branch delete": DeleteBranch,
    "tag create": CreateTag,
    "tag delete": DeleteTag,
    "rollback": RollbackTo,
    "consumer reset": ResetConsumer,
    "consumer delete": DeleteConsumer,
    "mark-done": MarkPartitionsDone,
    "migrate": Migrate,
}


def commands(group: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    for name, found in group.commands.items():
        if hasattr(found, "commands"):
            yield from commands(found, f"{path}{name} ")
        else:
            yield f"{path}{name}", found


FOUND = dict(commands(get_command(app)))


def test_these_are_the_commands_of_operations() -> None:
    operations = {name: found.callback.operation for name, found in FOUND.items()}
    assert {name: operation for name, operation in operations.items() if operation is not None} == COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_takes_every_argument_of_its_operation_with_help(name: str) -> None:
    parameters = {each.name: each for each in FOUND[name].params}
    for field in parameters_of(COMMANDS[name]).values():
        if field.type is None or field.name in {"progress", "on_start", "on_done"}:
            continue
        assert parameters[field.name].required == field.is_required
        assert parameters[field.name].help.endswith((".", "[default: cores]"))
        assert "``" not in parameters[field.name].help


def test_values_are_parsed_as_their_types_say(penstock: Command) -> None:
    penstock("create", "shop.days", "id BIGINT, dt STRING", "--partition-by", "dt")
    for arguments, says in (
        (("tag", "create", "shop.days", "x", "--timestamp", "soon"), "--timestamp 'soon': expected a time such as"),
        (("consumer", "reset", "shop.days", "me", "--to", "second"), "--to 'second': expected the id of a snapshot"),
        (("compact", "shop.days", "-o", "x"), "--option 'x': expected KEY=VALUE"),
        (("migrate", "shop.t", "/none", "--partition-type", "dt"), "--partition-type 'dt': expected KEY=VALUE"),
    ):
        assert says in penstock(*arguments, code=2).stderr


def test_a_tag_may_be_created_by_time(orders: Command) -> None:
    orders("append", "shop.orders", "-", "--input-format", "json", input='{"order_id": 1, "dt": "a"}')
    orders("tag", "create", "shop.orders", "first", "--timestamp", "2020-01-01T00:00:00Z")
    assert [row["snapshot_id"] for row in orders.json("tag", "list", "shop.orders")] == [1]


def test_a_command_without_words_of_its_own_has_those_of_the_operation() -> None:
    def body(session: Session, operation: FastForward) -> None:
        pass

    assert command(body).__doc__ == "Move the main branch to the snapshots, schemas and tags of a branch."
