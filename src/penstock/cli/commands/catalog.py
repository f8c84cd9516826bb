"""Commands about databases and tables as a whole: create, list, show, options, rename, drop."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any, Final

import pyarrow as pa
import typer

from penstock.api.exchange.options import InputFormat, InputOptions
from penstock.cli.arguments import DryRun, IfExists, Options, TableName, Yes, parse_pairs, split_list
from penstock.cli.confirm import confirm
from penstock.cli.input.files import infer_schema
from penstock.cli.output.describe import describe_table, table_columns
from penstock.cli.output.render import print_record, print_records, print_rows, print_text
from penstock.cli.output_format import OutputFormat
from penstock.cli.session import Session
from penstock.errors import InvalidOptionError, NotFoundError, TableStoreError
from penstock.options import describe_options

_NAME_HELP: Final = "A database, or database.table, or the path of a table."


def create(
    session: Session,
    name: Annotated[str, typer.Argument(help=_NAME_HELP)],
    columns: Annotated[
        str | None, typer.Argument(help="Such as \"id BIGINT NOT NULL, name STRING COMMENT 'x'\".")
    ] = None,
    *,
    schema_from: Annotated[str | None, typer.Option(help="Take the columns of this CSV, Parquet or JSON file.")] = None,
    input_format: Annotated[
        InputFormat | None, typer.Option(help="Format of that file, when its name does not show it.")
    ] = None,
    partition_by: Annotated[str | None, typer.Option(help="Columns, separated by commas.")] = None,
    option: Options = None,
    watermark: Annotated[
        str | None, typer.Option(help="Event time column, with a delay: \"order_time - INTERVAL '5' SECOND\".")
    ] = None,
    comment: Annotated[str | None, typer.Option(help="Comment of the table.")] = None,
    if_not_exists: Annotated[bool, typer.Option(help="No error when it exists; it is left as it is.")] = False,
) -> None:
    """Create a database, or a table with its columns."""
    if columns is None and schema_from is None:
        _create_database(session, name, if_not_exists)
        return
    if columns is not None and schema_from is not None:
        raise InvalidOptionError("give the columns or --schema-from, not both")
    schema: Any = columns
    if schema_from is not None:
        schema = infer_schema(schema_from, InputOptions(format=input_format))
    table = session.catalog(name).create_table(
        name,
        schema,
        partition_by=split_list(partition_by) or (),
        options=parse_pairs(option, "--option"),
        comment=comment,
        watermark=_parse_watermark(watermark),
        if_not_exists=if_not_exists,
    )
    print_record(session, {"table": table.name, "location": table.location}, f"created table {table.name}")


def list_names(
    session: Session,
    database: Annotated[
        str | None, typer.Argument(help="List the tables of this database; without it, the databases.")
    ] = None,
) -> None:
    """List databases, or the tables of one."""
    if database is None:
        warehouse = session.open_warehouse()
        databases = warehouse.list_databases()
        if not databases and not warehouse.exists():
            raise NotFoundError(
                f"there is no directory {warehouse.location}: check --warehouse; penstock create DATABASE creates it"
            )
        print_rows(session, pa.table({"database": pa.array(databases, pa.string())}))
    else:
        print_rows(session, pa.table({"table": pa.array(session.catalog().list_tables(database), pa.string())}))


def show(session: Session, table: TableName) -> None:
    """Show columns, keys, options, the latest snapshot, and the size of a table."""
    ref = session.table(table)
    properties = describe_table(ref)
    columns = table_columns(ref.schema)
    if session.format is OutputFormat.TABLE:
        print_records(session, columns, list(columns[0]))
        print_text("")
        print_record(session, properties)
    else:
        print_record(session, {**properties, "columns": [dict(column) for column in columns]})


def options(
    session: Session,
    table: Annotated[str | None, typer.Argument(help="database.table, or the table's path.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every option that exists, with its meaning.")] = False,
) -> None:
    """Show the options of a table, or all known options."""
    if all_:
        print_rows(session, pa.Table.from_pylist([asdict(row) for row in describe_options()]))
    elif table is not None:
        print_rows(session, session.table(table).inspect.system_table("options"))
    else:
        raise InvalidOptionError("name a table, or give --all for every option that exists")


def rename(
    session: Session,
    source: TableName,
    target: Annotated[str, typer.Argument(help="The new database.table.")],
) -> None:
    """Rename a table within its warehouse. Nothing may read or write it meanwhile."""
    session.catalog().rename_table(source, target)
    print_record(session, {"table": target, "was": source}, f"renamed {source} to {target}")


def drop(
    session: Session,
    name: Annotated[str, typer.Argument(help=_NAME_HELP)],
    if_exists: IfExists = False,
    cascade: Annotated[bool, typer.Option(help="A database together with its tables.")] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Permanently remove a table or a database with its files."""
    kind = "table" if _is_table(name) else "database"
    goes = _preview_table(session, name) if kind == "table" else _preview_database(session, name, cascade)
    if goes is None:
        if not if_exists:
            raise NotFoundError(f"{kind} {name} does not exist in {session.catalog(name).warehouse}; nothing to drop")
        print_record(session, {kind: name, "dropped": False}, f"there is no {kind} {name}")
        return
    if dry_run:
        print_record(session, {**goes, "dry_run": True})
        return
    confirm(session, f"drop {kind} {name} and all its files?", yes=yes)
    if kind == "table":
        session.catalog(name).drop_table(name, if_exists=if_exists)
    else:
        session.catalog(name).drop_database(name, if_exists=if_exists, cascade=cascade)
    print_record(session, {kind: name}, f"dropped {kind} {name}")


def _create_database(session: Session, name: str, if_not_exists: bool) -> None:
    if _is_table(name):
        raise InvalidOptionError(f'give the columns of table {name}, such as "id BIGINT, name STRING"')
    session.catalog().create_database(name, if_not_exists=if_not_exists)
    print_record(session, {"database": name}, f"created database {name}")


def _is_table(name: str) -> bool:
    return "." in name or "/" in name


def _parse_watermark(text: str | None) -> tuple[str, str | None] | None:
    if text is None:
        return None
    column, minus, delay = text.partition(" - ")
    return column.strip(), delay.strip() if minus else None


def _preview_table(session: Session, name: str) -> dict[str, Any] | None:
    place = session.place(name)
    if not place.file_io.exists(place.location):
        return None
    try:
        properties = describe_table(session.table(name))
    except TableStoreError as error:
        # A table that cannot be read can be dropped, too.
        return {"table": place.name, "location": place.location, "problem": str(error)}
    return {key: properties[key] for key in ("table", "location", "snapshots", "rows", "files", "bytes")}


def _preview_database(session: Session, name: str, cascade: bool) -> dict[str, Any] | None:
    catalog = session.catalog()
    if name not in catalog.list_databases():
        return None
    tables = list(catalog.list_tables(name))
    if tables and not cascade:
        raise InvalidOptionError(f"database {name} has {len(tables):,} tables: drop them first, or give --cascade")
    return {"database": name, "tables": tables}


COMMANDS: Final[dict[str, Callable[..., None]]] = {
    "create": create,
    "list": list_names,
    "show": show,
    "options": options,
    "rename": rename,
    "drop": drop,
}
