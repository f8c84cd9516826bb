"""The command that creates a table from a directory of files."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Final

import typer

from penstock.cli.arguments import DryRun, Options, TableName, parse_pairs
from penstock.cli.output.progress import progress_bar
from penstock.cli.output.render import print_record
from penstock.cli.session import session_of

if TYPE_CHECKING:
    from penstock.cli.output.plain import Plain


def migrate(
    context: typer.Context,
    table: TableName,
    directory: Annotated[
        str, typer.Argument(help="The directory that holds the partition directories, such as dt=2026-01-01.")
    ],
    *,
    partition_type: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=TYPE", help="Type of a partition column, such as dt=DATE; else STRING."),
    ] = None,
    copy: Annotated[bool, typer.Option("--copy", help="Copy the files, where hard links are not possible.")] = False,
    option: Options = None,
    dry_run: DryRun = False,
) -> None:
    """Create a table from a Hive-style directory of Parquet or ORC files, by hard links.

    The directory is not changed, but its files must no longer be modified. To undo the migration, drop the table.
    """
    session = session_of(context)
    types = parse_pairs(partition_type, "--partition-type")
    options = parse_pairs(option, "--option")
    found = session.catalog().migrate(directory, table, partition_types=types, options=options, copy=copy, dry_run=True)
    rows = None
    if not dry_run:
        with progress_bar(session, "adopting", found.bytes) as report:
            rows = (
                session.catalog()
                .migrate(directory, table, partition_types=types, options=options, copy=copy, progress=report)
                .rows
            )
    record: dict[str, Plain] = {
        "table": table,
        "columns": list(found.columns),
        "partition_by": list(found.partition_by),
        "files": found.files,
        "bytes": found.bytes,
        "rows": rows,
    }
    done = "would make" if dry_run else "made"
    print_record(session, record, f"{done} table {table} of {found.files} files in {directory}")


COMMANDS: Final[dict[str, Callable[..., None]]] = {"migrate": migrate}
