"""The command that charts the history of tables in an HTML page."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

import typer

from penstock.api.history import DEFAULT_LIMIT, open_history
from penstock.cli.draw.page import draw_page
from penstock.cli.output.render import print_drawn, print_record
from penstock.cli.output.result_rows import load_result, parse_result
from penstock.cli.session import session_of
from penstock.errors import InvalidOptionError, StorageError


def report(
    context: typer.Context,
    tables: Annotated[list[str], typer.Argument(metavar="TABLE...", help="database.table, or the table's path.")],
    *,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="The page to write, replacing an older one; - prints it."),
    ],
    checkpoint: Annotated[
        list[str] | None,
        typer.Option(
            "--checkpoint", metavar="PATH", help="Checkpoint of a Spark query that reads the table; may be repeated."
        ),
    ] = None,
    result: Annotated[
        list[str] | None,
        typer.Option(
            "--result",
            metavar="TABLE=X,Y[,SERIES]",
            help="Draw the rows of a small table too: column Y by column X, a line for each value of SERIES.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many of the newest snapshots to read.")] = DEFAULT_LIMIT,
) -> None:
    """Chart the history of tables in one self-contained HTML file."""
    session = session_of(context)
    if checkpoint and len(tables) > 1:
        raise InvalidOptionError("--checkpoint applies to one table: name that table only")
    wanted = [parse_result(text) for text in result or ()]
    loaded = [session.table(name) for name in tables]
    histories = [open_history(table, checkpoints=checkpoint or (), limit=limit).load() for table in loaded]
    page = draw_page(histories, [load_result(session.table(each.table), each) for each in wanted])
    if str(output) == "-":
        print_drawn(page)
        return
    _write(output, page)
    names = [table.name for table in loaded]
    drawn = ", ".join(names)
    size = len(page.encode())
    print_record(session, {"tables": [*names], "file": str(output), "bytes": size}, f"drew {drawn}: {output}")


def _write(path: Path, text: str) -> None:
    """Replace a file atomically: a reader sees either the old page or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise StorageError(f"the report cannot be written to {path}: {error.strerror}") from error


COMMANDS: Final[dict[str, Callable[..., None]]] = {"report": report}
