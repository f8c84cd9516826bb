"""Procedures for branches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.dialect.run.procedures.procedure import Procedure, success, table_of
from penstock.errors import AlreadyExistsError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.dialect.outcome import Outcome
    from penstock.dialect.run.procedures.arguments import Arguments
    from penstock.dialect.state import SqlState


def _create_branch(state: SqlState, arguments: Arguments) -> Outcome:
    if_not_exists = arguments.flag("ignoreIfExists", default=False)
    try:
        table_of(state, arguments).versions.create_branch(arguments.needed("branch"), tag=arguments.text("tag"))
    except AlreadyExistsError:
        if not if_not_exists:
            raise
    return success()


def _delete_branch(state: SqlState, arguments: Arguments) -> Outcome:
    table = table_of(state, arguments)
    for name in arguments.needed("branch").split(","):
        table.versions.delete_branch(name.strip())
    return success()


def _rename_branch(state: SqlState, arguments: Arguments) -> Outcome:
    table_of(state, arguments).versions.rename_branch(arguments.needed("from_branch"), arguments.needed("to_branch"))
    return success()


def _fast_forward(state: SqlState, arguments: Arguments) -> Outcome:
    table_of(state, arguments).versions.fast_forward(arguments.needed("branch"))
    return success()


PROCEDURES: Final[Mapping[str, Procedure]] = {
    "create_branch": Procedure(parameters=("table", "branch", "tag", "ignoreIfExists"), run=_create_branch),
    "delete_branch": Procedure(parameters=("table", "branch"), run=_delete_branch),
    "rename_branch": Procedure(parameters=("table", "from_branch", "to_branch"), run=_rename_branch),
    "fast_forward": Procedure(parameters=("table", "branch"), run=_fast_forward),
}
