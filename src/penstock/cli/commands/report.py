"""The command that charts the history of tables in an HTML page.

As JSON or CSV, the same figures are rows.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import pyarrow as pa
import typer
from pyarrow import types as arrow

from penstock.api.history import DEFAULT_LIMIT, open_history
from penstock.cli.arguments import split_list
from penstock.cli.draw.labels import count_text
from penstock.cli.draw.page import draw_page
from penstock.cli.draw.result import COLOURS, Result, Series, XKind
from penstock.cli.output.plain import to_plain
from penstock.cli.output.render import print_drawn, print_record
from penstock.cli.session import Session  # noqa: TC001 - evaluated with the annotations of the command
from penstock.errors import InvalidOptionError, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.api.table import Table
    from penstock.datafile.types import ArrowAny


def report(
    session: Session,
    tables: Annotated[list[str], typer.Argument(metavar="TABLE", help="database.table, or the table's path.")],
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The page to write, replacing an older one; - prints it.  [default: the table's name with .html]",
        ),
    ] = None,
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
    if checkpoint and len(tables) > 1:
        raise InvalidOptionError("--checkpoint applies to one table: name that table only")
    if output is None and len(tables) > 1:
        raise InvalidOptionError("give --output for a page of several tables")
    wanted = [parse_result(text) for text in result or ()]
    loaded = [session.table(name) for name in tables]
    histories = [open_history(table, checkpoints=checkpoint or (), limit=limit).load() for table in loaded]
    for history in histories:
        history.warn_damaged()
    page = draw_page(histories, [load_result(session.table(each.table), each) for each in wanted])
    if str(output) == "-":
        print_drawn(page)
        return
    names = [table.name for table in loaded]
    output = output or Path(f"{names[0].rpartition('/')[2]}.html")
    _write(output, page)
    drawn = ", ".join(names)
    size = len(page.encode())
    print_record(session, {"tables": [*names], "file": str(output), "bytes": size}, f"drew {drawn}: {output}")


def _write(path: Path, text: str) -> None:
    """Replace a file atomically: a reader sees either the old page or the new one.

    What is not a file, such as ``/dev/null`` or a pipe, is written to; a link stays one.
    """
    is_replaced = path.is_file() or not path.exists()
    target = Path(os.path.realpath(path)) if is_replaced else path
    written = target.with_name(f".{target.name}.{os.getpid()}") if is_replaced else path
    try:
        written.write_text(text, encoding="utf-8")
        if is_replaced:
            written.replace(target)
    except OSError as error:
        if is_replaced:
            with suppress(OSError):  # there is none
                written.unlink()
        raise StorageError(f"the report cannot be written to {path}: {error.strerror}") from error


COMMANDS: Final[dict[str, Callable[..., None]]] = {"report": report}


_MOST_ROWS: Final = 20_000
_FORM: Final = "TABLE=X,Y or TABLE=X,Y,SERIES"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to draw of a table.

    Attributes:
        by: a column with one line per value; None for a single line.
    """

    table: str
    x: str
    y: str
    by: str | None


def parse_result(text: str) -> Wanted:
    """Parse ``TABLE=X,Y`` or ``TABLE=X,Y,SERIES``."""
    table, equals, rest = text.rpartition("=")
    columns = split_list(rest) or []
    if not equals or not table or not all(columns) or len(columns) not in {2, 3}:
        raise InvalidOptionError(f"--result '{text}': expected {_FORM}, such as shop.windows=window_start,orders")
    return Wanted(table=table, x=columns[0], y=columns[1], by=columns[2] if len(columns) == 3 else None)


def load_result(table: Table, wanted: Wanted) -> Result:
    """Load the rows to draw."""
    names = [wanted.x, wanted.y, *([] if wanted.by is None else [wanted.by])]
    rows = table.to_arrow(columns=list(dict.fromkeys(names)), limit=_MOST_ROWS)
    if not _is_number(rows.schema.field(wanted.y).type):
        numbers = [field.name for field in table.arrow_schema if _is_number(field.type)]
        raise InvalidOptionError(
            f"--result: table {table.name}: column '{wanted.y}' holds no numbers to draw; those that do are "
            f"{', '.join(numbers) or 'none'}"
        )
    notes = []
    snapshot = table.latest_snapshot()
    total = rows.num_rows if snapshot is None else snapshot.total_record_count or rows.num_rows
    if rows.num_rows == _MOST_ROWS and total > _MOST_ROWS:
        notes.append(f"the first {_MOST_ROWS:,} of {count_text(total, 'row')}")
    kind = _kind(rows.schema.field(wanted.x).type)
    ys = [_float(value) for value in to_plain(rows.column(wanted.y).combine_chunks())]
    xs = _x_values(rows.column(wanted.x).combine_chunks(), kind)
    bys = [""] * len(ys) if wanted.by is None else _texts(rows.column(wanted.by).combine_chunks())
    points = [
        (by, x, y) for by, x, y in zip(bys, xs, ys, strict=True) if x is not None and y is not None and by is not None
    ]
    if len(points) < len(ys):
        notes.append(f"{count_text(len(ys) - len(points), 'row')} with NULL left out")
    series, more = _series(points, kind)
    return Result(
        table=table.name,
        x=wanted.x,
        y=wanted.y,
        by=wanted.by,
        x_kind=kind,
        series=series,
        bars=_bars(points, kind),
        notes=(*notes, *more),
    )


def _kind(data_type: ArrowAny) -> XKind:
    if arrow.is_timestamp(data_type) or arrow.is_date(data_type):
        return XKind.TIME
    return XKind.NUMBER if _is_number(data_type) else XKind.TEXT


def _is_number(data_type: ArrowAny) -> bool:
    return bool(arrow.is_integer(data_type) or arrow.is_floating(data_type) or arrow.is_decimal(data_type))


def _x_values(column: ArrowAny, kind: XKind) -> Sequence[float | str | None]:
    match kind:
        case XKind.TIME:
            instant = pa.timestamp("ms", tz=getattr(column.type, "tz", None))
            millis: list[int | None] = column.cast(instant, safe=False).cast(pa.int64()).to_pylist()
            return millis
        case XKind.NUMBER:
            return [_float(value) for value in to_plain(column)]
        case XKind.TEXT:
            return _texts(column)


def _texts(column: ArrowAny) -> list[str | None]:
    return [None if value is None else str(value) for value in to_plain(column)]


def _float(value: object) -> float | None:
    """Return a number; None also for NaN and infinity, which no axis shows."""
    if value is None or value in {"NaN", "Infinity", "-Infinity"}:
        return None
    return float(str(value))


def _series(
    points: Sequence[tuple[str, float | str, float]], kind: XKind
) -> tuple[tuple[Series, ...], tuple[str, ...]]:
    """Return the lines with the largest sums, and the number of omitted lines."""
    if kind is XKind.TEXT:
        return (), ()
    found: dict[str, list[tuple[float, float]]] = {}
    for by, x, y in points:
        if not isinstance(x, str):
            found.setdefault(by, []).append((x, y))
    names = sorted(found, key=lambda name: (-sum(y for _, y in found[name]), name))
    series = tuple(Series(name=name, points=tuple(sorted(found[name]))) for name in names[:COLOURS])
    left = len(names) - len(series)
    return series, (f"the {COLOURS} lines with the greatest sums; {left:,} more are left out",) if left else ()


def _bars(points: Sequence[tuple[str, float | str, float]], kind: XKind) -> tuple[tuple[str, float], ...]:
    if kind is not XKind.TEXT:
        return ()
    bars = [(f"{x}, {by}" if by else str(x), y) for by, x, y in points]
    return tuple(sorted(bars, key=lambda bar: (-bar[1], bar[0])))
