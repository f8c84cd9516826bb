"""Print the results of commands: as a table for people, as JSON or CSV for programs.

Tables are drawn as a grid as wide as the terminal. Rows of a table are printed as they are; metadata is printed for
people by the rules of ``penstock.cli.output.figures``.
"""

from __future__ import annotations

import io
import json
import sys
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import pyarrow as pa
import pyarrow.csv as pc
from pyarrow import types as arrow
from rich import box
from rich.cells import cell_len
from rich.console import Console, Group
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from penstock.cli.draw.labels import name_text
from penstock.cli.output.figures import figure_text, is_figure
from penstock.cli.output.plain import check_texts, to_plain
from penstock.cli.output_format import OutputFormat
from penstock.printable import visible, visible_json, visible_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from penstock.cli.output.plain import Plain
    from penstock.cli.session import Session
    from penstock.datafile.types import ArrowAny

    Rows: TypeAlias = pa.Table | pa.RecordBatchReader
    from rich.console import RenderableType

# Wider than any line: output to a file or a pipe is neither wrapped nor truncated.
_UNBOUNDED: Final = 1_000_000
_NULL: Final = Text("NULL", style="dim")
# Of a name that is cut, to be recognized still.
_MIN_CUT: Final = 12


def print_rows(session: Session, rows: Rows, *, exact: bool = False) -> int:
    """Print rows; JSON and CSV batch by batch, a table all at once since its column widths depend on all rows.

    Args:
        exact: the rows are the table's data: CSV, which has no escapes, keeps control characters, unless the output is
            a terminal.

    Returns:
        The number of rows.
    """
    batches = _batches(rows)
    match session.format:
        case OutputFormat.JSON:
            return _print_json(batches)
        case OutputFormat.CSV:
            return _print_csv(batches, rows.schema, exact=exact)
        case OutputFormat.TABLE:
            return _print_table(batches, rows.schema)


def print_record(session: Session, record: Mapping[str, Plain], message: str | None = None) -> None:
    """Print what was done, or one object with its properties.

    Args:
        record: for JSON an array of one object, for CSV a line per property.
        message: printed instead in table format; None prints the properties that have a value. ``--quiet`` drops it.
    """
    match session.format:
        case OutputFormat.JSON:
            _write(f"[{_dump(record)}]\n")
        case OutputFormat.CSV:
            flat = dict(_flat(record))
            pairs = pa.table(
                {"property": list(flat), "value": list(flat.values())},
                pa.schema({"property": pa.string(), "value": pa.string()}),
            )
            _print_csv(iter(pairs.to_batches()), pairs.schema)
        case OutputFormat.TABLE if message is None:
            shown = [
                (name, figure_text(key, value)) for key, name, value in _properties(record) if value not in (None, "")
            ]
            _draw(("property", "value"), [tuple(map(_line, row)) for row in shown], numbers=(False, False))
        case OutputFormat.TABLE:
            if not session.quiet:
                _write(f"{visible(message)}\n")


def print_records(
    session: Session,
    records: Sequence[Mapping[str, Plain]],
    columns: Iterable[str],
    heads: Mapping[str, str] | None = None,
    *,
    cut: str | None = None,
) -> None:
    """Print one line per record; all have the same columns.

    Args:
        heads: columns of the table format with their heads, as for ``print_listing``; None for all.
        cut: as for ``print_listing``.
    """
    match session.format:
        case OutputFormat.JSON:
            _write("[" + ",\n ".join(_dump(record) for record in records) + "]\n")
        case OutputFormat.CSV:
            schema = pa.schema([(name, pa.string()) for name in columns])
            texts = {name: [_cell_text(record[name]) for record in records] for name in columns}
            print_rows(session, pa.table(texts, schema))
        case OutputFormat.TABLE:
            _draw_listing(records, {name: name.replace("_", " ") for name in columns} if heads is None else heads, cut)


def print_listing(
    session: Session, rows: pa.Table, heads: Mapping[str, str], *, cut: str | None = None, wide: bool = False
) -> None:
    """Print rows of metadata.

    Args:
        heads: the columns of the table format, with what stands above them; those without any value are left out.
        cut: a column of long names, which are cut in their middle on a terminal that is too narrow for them.
        wide: print all columns and exact values under their own names, as JSON and CSV have them.
    """
    if wide or session.format is not OutputFormat.TABLE:
        print_rows(session, rows)
        return
    columns = [to_plain(rows.column(name).combine_chunks()) for name in heads]
    _draw_listing([dict(zip(heads, row, strict=True)) for row in zip(*columns, strict=True)], heads, cut)


def print_line(record: Mapping[str, Plain]) -> None:
    """Print a JSON object as one line of JSON lines."""
    _write(f"{_dump(record)}\n")


def print_text(text: str) -> None:
    """Print text unchanged, in every format."""
    _write(f"{visible_lines(text)}\n")


def note(session: Session, text: str) -> None:
    """Print a message on the error stream; nothing with ``--quiet``."""
    if not session.quiet:
        say(text)


def print_drawn(text: str) -> None:
    """Print text with colors, or a page: names in it are escaped already."""
    _write(f"{text}\n")


def say(text: str) -> None:
    """Write a line to the error stream."""
    sys.stderr.write(f"{visible(text)}\n")
    sys.stderr.flush()


def json_objects(batch: pa.RecordBatch) -> Iterator[str]:
    """Yield each row as the text of a JSON object."""
    check_texts(batch)
    names = batch.schema.names
    columns = [to_plain(column) for column in batch.columns]
    for row in zip(*columns, strict=True):
        yield _dump(dict(zip(names, row, strict=True)))


def cells_of(batch: pa.RecordBatch) -> Iterator[tuple[Text, ...]]:
    """Yield each row as the cells of a table."""
    check_texts(batch)
    columns = [
        [_cell(value, field.type) for value in to_plain(column)]
        for column, field in zip(batch.columns, batch.schema, strict=True)
    ]
    yield from zip(*columns, strict=True)


def csv_header(schema: pa.Schema, *, exact: bool = False) -> str:
    """Return the header of CSV."""
    flat = pa.schema([(field.name, _csv_type(field.type)) for field in schema])
    return _csv_text(flat.empty_table(), header=True, exact=exact)


def csv_lines(batch: pa.RecordBatch, *, exact: bool = False) -> str:
    """Return rows as lines of CSV; ``exact`` as for ``print_rows``."""
    check_texts(batch)
    flat = pa.schema([(field.name, _csv_type(field.type)) for field in batch.schema])
    arrays = [_csv_array(column) for column in batch.columns]
    return _csv_text(pa.Table.from_arrays(arrays, schema=flat), header=False, exact=exact)


def is_number(data_type: ArrowAny) -> bool:
    """Whether a table aligns values of the type right."""
    return arrow.is_integer(data_type) or arrow.is_floating(data_type) or arrow.is_decimal(data_type)


def _batches(rows: Rows) -> Iterator[pa.RecordBatch]:
    return iter(rows.to_batches() if isinstance(rows, pa.Table) else rows)


def _print_json(batches: Iterable[pa.RecordBatch]) -> int:
    count = 0
    for batch in batches:
        for text in json_objects(batch):
            _write(",\n " if count else "[")
            _write(text)
            count += 1
    _write("]\n" if count else "[]\n")
    return count


def _print_csv(batches: Iterable[pa.RecordBatch], schema: pa.Schema, *, exact: bool = False) -> int:
    _write(csv_header(schema, exact=exact))
    count = 0
    for batch in batches:
        _write(csv_lines(batch, exact=exact))
        count += batch.num_rows
    return count


def _csv_text(rows: pa.Table, *, header: bool, exact: bool) -> str:
    sink = io.BytesIO()
    pc.write_csv(rows, sink, pc.WriteOptions(include_header=header))
    text = sink.getvalue().decode()
    return text if exact and not sys.stdout.isatty() else visible_lines(text)


def _csv_type(data_type: ArrowAny) -> pa.DataType:
    is_text = arrow.is_nested(data_type) or arrow.is_binary(data_type)
    return pa.string() if is_text else data_type


def _csv_array(array: ArrowAny) -> ArrowAny:
    if arrow.is_binary(array.type):
        return pa.array(to_plain(array), pa.string())
    if arrow.is_nested(array.type):
        return pa.array([None if value is None else _dump(value) for value in to_plain(array)], pa.string())
    return array


def _print_table(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> int:
    rows = [row for batch in batches for row in cells_of(batch)]
    _draw(schema.names, rows, numbers=[is_number(field.type) for field in schema])
    return len(rows)


def _draw_listing(records: Sequence[Mapping[str, Plain]], heads: Mapping[str, str], cut: str | None) -> None:
    values = {name: [record[name] for record in records] for name in heads}
    wanted = [name for name in heads if any(each not in (None, "") for each in values[name])] or list(heads)
    figures = [all(is_figure(each) for each in values[name] if each is not None) for name in wanted]
    texts = {name: [visible(figure_text(name, each)) for each in values[name]] for name in wanted}
    if cut in texts:
        others = sum(max(map(cell_len, (heads[name], *texts[name]))) + _GAP for name in wanted if name != cut)
        most = max(_width() - others, cell_len(heads[cut]), _MIN_CUT)
        texts[cut] = [name_text(each, most) for each in texts[cut]]
    rows = [tuple(map(Text, row)) for row in zip(*texts.values(), strict=True)]
    fixed = [is_fixed or name == cut for name, is_fixed in zip(wanted, figures, strict=True)]
    _draw([heads[name] for name in wanted], rows, numbers=figures, fixed=fixed)


def _draw(
    names: Sequence[str], rows: Sequence[Sequence[Text]], *, numbers: Sequence[bool], fixed: Sequence[bool] = ()
) -> None:
    """Print a table, on a terminal with its colors, otherwise without trailing spaces."""
    width = _width()
    drawn = draw_rows(names, rows, numbers=numbers, fixed=fixed, width=width)
    if sys.stdout.isatty():
        Console(file=sys.stdout, highlight=False).print(drawn)
        return
    console = Console(file=io.StringIO(), highlight=False, width=width)
    with console.capture() as captured:
        console.print(drawn)
    _write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def _width() -> int:
    return Console(file=sys.stdout).width if sys.stdout.isatty() else _UNBOUNDED


def _properties(record: Mapping[str, Plain]) -> Iterator[tuple[str, str, Plain]]:
    """Yield the key, the name for people and the value of each property, those of an inner object one by one."""
    for key, value in record.items():
        name = key.replace("_", " ")
        if isinstance(value, dict):
            yield from ((inner, f"{name}.{inner}", each) for inner, each in value.items())
        else:
            yield key, name, value


def _flat(record: Mapping[str, Plain]) -> Iterator[tuple[str, str | None]]:
    """Yield properties as text, those of an inner object one by one."""
    for name, value in record.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{key}", _cell_text(inner)) for key, inner in value.items())
        elif isinstance(value, list) and all(isinstance(item, str) for item in value):
            yield name, ", ".join(str(item) for item in value)
        else:
            yield name, _cell_text(value)


def _line(text: str) -> Text:
    return Text(visible(text))


def _cell(value: Plain, data_type: ArrowAny) -> Text:
    if value is None:
        return _NULL
    text = _cell_text(value) or ""
    return Text(visible(text.replace("T", " ", 1) if arrow.is_timestamp(data_type) else text))


def _cell_text(value: Plain) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(value) if isinstance(value, float) else _dump(value)


def _dump(value: Any) -> str:  # noqa: ANN401 - whatever JSON can hold
    return visible_json(json.dumps(value, ensure_ascii=False))


def _write(text: str) -> None:
    sys.stdout.write(text)


_GAP = 3
"""Spaces between two columns."""


def draw_rows(
    names: Sequence[str],
    rows: Sequence[Sequence[Text]],
    *,
    numbers: Sequence[bool],
    width: int,
    fixed: Sequence[bool] = (),
) -> RenderableType:
    """Return the table or the lists.

    Args:
        numbers: for each column whether its values are aligned right.
        width: of the terminal, in cells. Wider values are wrapped, column names never.
        fixed: for each column whether its values are never wrapped either; by default none are.
    """
    heads = [visible(name) for name in names]
    fixed = fixed or [False] * len(heads)
    widths = [
        max(map(cell_len, (head, *(row[place].plain for row in rows)))) if is_fixed else cell_len(head)
        for place, (head, is_fixed) in enumerate(zip(heads, fixed, strict=True))
    ]
    if sum(widths) + _GAP * (len(heads) - 1) > width:
        return _one_under_the_other(heads, rows)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for head, is_number, min_width, is_fixed in zip(heads, numbers, widths, fixed, strict=True):
        justify: Literal["left", "right"] = "right" if is_number else "left"
        table.add_column(Text(head), justify=justify, overflow="fold", min_width=min_width, no_wrap=is_fixed)
    for row in rows:
        table.add_row(*row)
    return table


def _one_under_the_other(heads: Sequence[str], rows: Iterable[Sequence[Text]]) -> RenderableType:
    parts: list[RenderableType] = []
    for number, row in enumerate(rows, start=1):
        grid = Table.grid(padding=(0, _GAP, 0, 0))
        grid.add_column(no_wrap=True, style="bold")
        grid.add_column(overflow="fold")
        for head, cell in zip(heads, row, strict=True):
            grid.add_row(Text(head), cell)
        parts += [Rule(Text(f"row {number}"), align="left", style="dim"), grid]
    return Group(*parts) if parts else Text("no rows")
