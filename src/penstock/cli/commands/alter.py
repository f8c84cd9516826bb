"""Commands that change a table's schema, one change each."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from penstock.catalog.changes import (
    FIRST,
    AddColumn,
    ColumnPath,
    DropColumn,
    MoveColumn,
    Position,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetOption,
    UpdateColumnComment,
    UpdateColumnDefault,
    UpdateColumnNullability,
    UpdateColumnType,
    UpdateComment,
    after,
)
from penstock.cli.arguments import DryRun, TableName, parse_pairs
from penstock.cli.command import CommandGroup
from penstock.cli.output.describe import table_columns
from penstock.cli.output.render import note, print_record, print_records
from penstock.cli.output_format import OutputFormat
from penstock.cli.session import Session
from penstock.errors import InvalidOptionError
from penstock.format.schema import TableSchema
from penstock.printable import mask_options

if TYPE_CHECKING:
    from penstock.cli.output.plain import Plain

app = CommandGroup("Change columns, options and comments of a table.")

Column = Annotated[str, typer.Argument(metavar="COLUMN", help="A column; a.b is the field b of the ROW a.")]
SqlType = Annotated[str, typer.Argument(metavar="TYPE", help='Such as BIGINT or "DECIMAL(10, 2)".')]
First = Annotated[bool, typer.Option("--first", help="As the first column.")]
After = Annotated[str | None, typer.Option("--after", metavar="COLUMN", help="After this column.")]


@app.add("add-column")
def add_column(
    session: Session,
    table: TableName,
    column: Column,
    sql_type: SqlType,
    *,
    comment: Annotated[str | None, typer.Option(help="Comment of the column.")] = None,
    first: First = False,
    after_column: After = None,
    dry_run: DryRun = False,
) -> None:
    """Add a column; existing rows have NULL in it."""
    path = _path(session, table, column)
    change = AddColumn(column=path, type=sql_type, description=comment, position=_position(first, after_column))
    _alter(session, table, [change], dry_run)


@app.add("drop-column")
def drop_column(session: Session, table: TableName, column: Column, dry_run: DryRun = False) -> None:
    """Remove a column; older snapshots keep it."""
    _alter(session, table, [DropColumn(column=_path(session, table, column))], dry_run)


@app.add("rename-column")
def rename_column(
    session: Session,
    table: TableName,
    column: Column,
    new_name: Annotated[str, typer.Argument(help="Without the path before it.")],
    dry_run: DryRun = False,
) -> None:
    """Rename a column; it keeps its data."""
    _alter(session, table, [RenameColumn(column=_path(session, table, column), new_name=new_name)], dry_run)


@app.add("change-type")
def change_type(
    session: Session,
    table: TableName,
    column: Column,
    sql_type: SqlType,
    lossy: Annotated[
        bool, typer.Option("--lossy", help="Also to a type in which values may lose precision or digits.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Change the type of a column; existing rows are cast when they are read."""
    change = UpdateColumnType(column=_path(session, table, column), type=sql_type, allow_explicit=lossy)
    _alter(session, table, [change], dry_run)


@app.add("set-nullable")
def set_nullable(
    session: Session,
    table: TableName,
    column: Column,
    nullable: Annotated[bool, typer.Option("--nullable/--not-null", help="Whether the column may hold NULL.")] = True,
    dry_run: DryRun = False,
) -> None:
    """Allow NULL in a column, or forbid it."""
    _alter(session, table, [UpdateColumnNullability(column=_path(session, table, column), nullable=nullable)], dry_run)


@app.add("move-column")
def move_column(
    session: Session,
    table: TableName,
    column: Column,
    first: First = False,
    after_column: After = None,
    dry_run: DryRun = False,
) -> None:
    """Move a column to another position."""
    position = _position(first, after_column)
    if position is None:
        raise InvalidOptionError("give the place: --first or --after COLUMN")
    _alter(session, table, [MoveColumn(column=_path(session, table, column), position=position)], dry_run)


@app.add("column-comment")
def column_comment(
    session: Session,
    table: TableName,
    column: Column,
    comment: Annotated[str | None, typer.Argument(help="Without it the comment is removed.")] = None,
    dry_run: DryRun = False,
) -> None:
    """Set or remove the comment of a column."""
    _alter(session, table, [UpdateColumnComment(column=_path(session, table, column), comment=comment)], dry_run)


@app.add("column-default")
def column_default(
    session: Session,
    table: TableName,
    column: Column,
    default: Annotated[str | None, typer.Argument(help="Text of the value; without it the default is removed.")] = None,
    dry_run: DryRun = False,
) -> None:
    """Set or remove the default value, which replaces NULL in new rows."""
    _alter(session, table, [UpdateColumnDefault(column=_path(session, table, column), default=default)], dry_run)


@app.add("comment")
def table_comment(
    session: Session,
    table: TableName,
    comment: Annotated[str | None, typer.Argument(help="Without it the comment is removed.")] = None,
    dry_run: DryRun = False,
) -> None:
    """Set or remove the comment of the table."""
    _alter(session, table, [UpdateComment(comment=comment)], dry_run)


@app.add("set")
def set_options(
    session: Session,
    table: TableName,
    pairs: Annotated[list[str], typer.Argument(metavar="KEY=VALUE", help="Options of the table.")],
    dry_run: DryRun = False,
) -> None:
    """Set options."""
    changes = [SetOption(key=key, value=value) for key, value in parse_pairs(pairs, "option").items()]
    _alter(session, table, changes, dry_run)


@app.add("reset")
def reset_options(
    session: Session,
    table: TableName,
    keys: Annotated[list[str], typer.Argument(metavar="KEY", help="Options to set back to their defaults.")],
    dry_run: DryRun = False,
) -> None:
    """Reset options to their defaults."""
    _alter(session, table, [RemoveOption(key=key) for key in keys], dry_run)


def _alter(session: Session, table: str, changes: Sequence[SchemaChange], dry_run: bool) -> None:
    loaded = session.table(table)
    name = loaded.name
    if dry_run:
        _print_schema(session, name, loaded.preview.alter(*changes))
        return
    schema = session.catalog(table).alter_table(table, *changes).schema
    if schema.id == loaded.schema.id:
        print_record(session, {"table": name, "schema_id": schema.id}, f"{name} is already so")
    else:
        print_record(session, {"table": name, "schema_id": schema.id}, f"altered {name}: schema {schema.id}")


def _print_schema(session: Session, table: str, schema: TableSchema) -> None:
    columns = table_columns(schema)
    if session.format is OutputFormat.TABLE:
        print_records(session, columns, list(columns[0]))
        note(session, f"{table} would have schema {schema.id}; nothing was changed")
        return
    record: dict[str, Plain] = {
        "table": table,
        "schema_id": schema.id,
        "columns": [dict(column) for column in columns],
        "options": dict(mask_options(schema.options)),
        "comment": schema.comment,
        "dry_run": True,
    }
    print_record(session, record)


def _path(session: Session, table: str, column: str) -> ColumnPath:
    """Read a.b as a field of a ROW, unless a column of the table has exactly that name."""
    names = session.table(table).schema.field_names
    parts = tuple(column.split("."))
    return parts if len(parts) > 1 and column not in names and parts[0] in names else column


def _position(first: bool, after_column: str | None) -> Position | None:
    if first and after_column is not None:
        raise InvalidOptionError("give --first or --after, not both")
    if first:
        return FIRST
    return None if after_column is None else after(after_column)


COMMANDS: Final = {"alter": app}
