"""Write the tables of procedures in docs/sql.md from the declarations of the operations."""

from __future__ import annotations

import inspect
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from typer.main import get_command

import penstock
from penstock.api.operations.declaration import method_name
from penstock.api.procedures import PROCEDURES, UNSUPPORTED
from penstock.cli.main import app

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.api.operations.procedure import Procedure

PAGE: Final = Path(__file__).parents[1] / "docs" / "sql.md"
_BEGIN: Final = "<!-- scripts/procedures_table.py writes this table from the code: {}. -->\n"
_END: Final = "<!-- end of the table -->\n"
_OWNERS: Final = {
    "Catalog": penstock.Catalog,
    "Table": penstock.Table,
    "Table.maintenance": penstock.TableMaintenance,
    "Table.versions": penstock.TableVersions,
}


def _procedures() -> Iterator[str]:
    commands = {operation: f"`penstock {name}`" for name, operation in _commands(get_command(app), "")}
    yield "| procedure | arguments | method | command | does |"
    yield "|---|---|---|---|---|"
    for name, procedure in PROCEDURES.items():
        table = "`table` or `database.*`, " if procedure.takes_database else ""
        names = ", ".join(procedure.parameters)
        arguments = f"{table}`{names.removeprefix('table, ') if table else names}`"
        command = commands.get(procedure.operation, "")
        yield f"| `{name}` | {arguments} | `{_method(procedure)}` | {command} | {_does(procedure)} |"


def _commands(group: Any, path: str) -> Iterator[tuple[str, type]]:  # noqa: ANN401 - some versions of typer bring a click of their own
    """Yield the commands of operations, each with its operation."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{path}{name} ")
        elif (operation := getattr(command.callback, "operation", None)) is not None:
            yield f"{path}{name}", operation


def _method(procedure: Procedure) -> str:
    name = method_name(procedure.operation)
    return next(f"{owner}.{name}" for owner, kind in _OWNERS.items() if inspect.isfunction(vars(kind).get(name)))


def _does(procedure: Procedure) -> str:
    is_shared = sum(each.operation is procedure.operation for each in PROCEDURES.values()) > 1
    return (
        f"{procedure.note[0].upper()}{procedure.note[1:]}." if is_shared and procedure.note else procedure.description
    )


def _aliases() -> Iterator[str]:
    yield "| procedure | on Spark | here |"
    yield "|---|---|---|"
    names: dict[tuple[tuple[str, str], ...], list[str]] = defaultdict(list)
    for name, procedure in PROCEDURES.items():
        names[tuple(procedure.aliases.items())].append(name)
    for pairs, found in names.items():
        if pairs:
            theirs, ours = (", ".join(column) for column in zip(*pairs, strict=True))
            yield f"| {_listed(found)} | `{theirs}` | `{ours}` |"


def _unsupported() -> Iterator[str]:
    yield "| procedures of Paimon | reason, or what to do instead |"
    yield "|---|---|"
    names: dict[str, list[str]] = defaultdict(list)
    for name, reason in UNSUPPORTED.items():
        names[reason].append(name)
    yield from (f"| {_listed(found)} | {reason} |" for reason, found in names.items())


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


_TABLES: Final = {"procedures": _procedures, "names on Spark": _aliases, "procedures that are not there": _unsupported}


def render_page() -> str:
    """Return the page with the tables of today."""
    page = PAGE.read_text("utf-8")
    for name, render in _TABLES.items():
        head, begin, rest = page.partition(_BEGIN.format(name))
        _, end, tail = rest.partition(_END)
        page = f"{head}{begin}\n" + "\n".join(render()) + f"\n\n{end}{tail}"
    return page


if __name__ == "__main__":
    PAGE.write_text(render_page(), encoding="utf-8")
