"""The command that creates a table from a directory of files."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock.api.migrate import Migrate
from penstock.cli.arguments import TableName
from penstock.cli.operation import command
from penstock.cli.output.progress import progress_bar
from penstock.cli.output.render import print_record
from penstock.cli.session import Session

if TYPE_CHECKING:
    from penstock.cli.output.plain import Plain


@command
def migrate(session: Session, name: TableName, operation: Migrate) -> None:
    """Create a table from a Hive-style directory of Parquet or ORC files, by hard links.

    The directory is not changed, but its files must no longer be modified. To undo the migration, drop the table.
    """
    warehouse = session.open_warehouse()
    found = replace(operation, dry_run=True).run(warehouse)
    rows = None
    if not operation.dry_run:
        with progress_bar(session, "adopting", found.bytes) as progress:
            rows = replace(operation, progress=progress).run(warehouse).rows
    record: dict[str, Plain] = {
        "table": name,
        "columns": list(found.columns),
        "partition_by": list(found.partition_by),
        "files": found.files,
        "bytes": found.bytes,
        "rows": rows,
    }
    done = "would make" if operation.dry_run else "made"
    print_record(session, record, f"{done} table {name} of {found.files} files in {operation.directory}")


COMMANDS: Final[dict[str, Callable[..., None]]] = {"migrate": migrate}
