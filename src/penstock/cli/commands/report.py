"""The command that draws tables over time as a page."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

import typer

from penstock.cli.draw.page import draw_page
from penstock.cli.output.render import print_drawn, print_record
from penstock.cli.output.result_rows import load_result, parse_result
from penstock.cli.session import session_of
from penstock.errors import InvalidOptionError, StorageError
from penstock.table.inspect.history.commits import DEFAULT_LIMIT
from penstock.table.inspect.history.history import HistoryReader
from penstock.table.store import MetadataStore


def report(
    context: typer.Context,
    tables: Annotated[list[str], typer.Argument(metavar="TABLE...", help="database.table, or the table's path.")],
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The page to write, over an older one; - prints it.")
    ],
    checkpoint: Annotated[
        list[str] | None,
        typer.Option("--checkpoint", metavar="PATH", help="Of a Spark query that reads the table; may be repeated."),
    ] = None,
    result: Annotated[
        list[str] | None,
        typer.Option(
            "--result",
            metavar="TABLE=X,Y[,SERIES]",
            help="Draw the rows of a small table too: column Y by column X, a line for each value of SERIES.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Newest snapshots to look at.")] = DEFAULT_LIMIT,
) -> None:
    """Draw tables over time: one HTML file that needs nothing from elsewhere."""
    session = session_of(context)
    if checkpoint and len(tables) > 1:
        raise InvalidOptionError("--checkpoint is about one table: draw that alone")
    wanted = [parse_result(text) for text in result or ()]
    refs = [session.ref(name) for name in tables]
    histories = [
        HistoryReader(ref, MetadataStore(ref), checkpoints=checkpoint or (), limit=limit).load() for ref in refs
    ]
    page = draw_page(histories, [load_result(session.table(each.table), each) for each in wanted])
    if str(output) == "-":
        print_drawn(page)
        return
    _write(output, page)
    drawn = ", ".join(ref.name for ref in refs)
    size = len(page.encode())
    print_record(
        session, {"tables": [ref.name for ref in refs], "file": str(output), "bytes": size}, f"drew {drawn}: {output}"
    )


def _write(path: Path, text: str) -> None:
    """Write a file whole: whoever looks at the old one meanwhile sees all of it."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise StorageError(f"the report cannot be written to {path}: {error.strerror}") from error


COMMANDS: Final[dict[str, Callable[..., None]]] = {"report": report}
