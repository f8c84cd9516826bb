"""Arguments shared by several commands."""

from typing import Annotated, Final

import typer

from penstock.errors import InvalidOptionError

TableName = Annotated[str, typer.Argument(metavar="TABLE", help="database.table, or the table's path.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would happen; change nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
IfExists = Annotated[bool, typer.Option("--if-exists", help="No error when it does not exist.")]
Wide = Annotated[bool, typer.Option("--wide", help="All columns and exact values, as JSON and CSV have them.")]
Where = Annotated[str | None, typer.Option("--where", "--filter", help="Such as \"dt = '2026-01-01' AND price > 10\".")]
SnapshotId = Annotated[int | None, typer.Option("--snapshot-id", help="This snapshot instead of the latest.")]
Tag = Annotated[str | None, typer.Option("--tag", help="The snapshot with this tag.")]
Timestamp = Annotated[
    str | None,
    typer.Option("--timestamp", help="The newest snapshot at that time: ISO 8601, local without a zone; or ms."),
]
Watermark = Annotated[
    str | None, typer.Option("--watermark", help="The first snapshot whose watermark has reached that time.")
]
Partitions = Annotated[
    list[str] | None, typer.Option("--partition", metavar="KEY=VALUE", help="Repeat it for several keys.")
]
Options = Annotated[list[str] | None, typer.Option("--option", "-o", metavar="KEY=VALUE", help="May be repeated.")]

GLOBAL_OPTIONS: Final = (
    "-w/--warehouse, --format, --quiet and --debug may be given anywhere on the line: penstock --help."
)


def parse_pairs(texts: list[str] | None, what: str) -> dict[str, str]:
    """Return ``key=value`` strings as a mapping; the value may contain further equals signs."""
    pairs: dict[str, str] = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InvalidOptionError(f"{what} '{text}': expected KEY=VALUE")
        if key in pairs:
            raise InvalidOptionError(f"{what}: '{key}' is given twice")
        pairs[key] = value
    return pairs


def split_list(text: str | None) -> list[str] | None:
    """Return comma-separated names; None if none are given."""
    return None if text is None else [name.strip() for name in text.split(",")]
