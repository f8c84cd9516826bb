"""The ``penstock`` command."""

import importlib
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from penstock.cli.group import PenstockGroup
from penstock.cli.output_format import OutputFormat

app = typer.Typer(
    cls=PenstockGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"penstock {version('penstock')}")
        raise typer.Exit


@app.callback()
def penstock(
    context: typer.Context,
    warehouse: Annotated[
        str | None,
        typer.Option("--warehouse", "-w", envvar="PENSTOCK_WAREHOUSE", help="Path or URI of the warehouse."),
    ] = None,
    format: Annotated[OutputFormat, typer.Option("--format", help="How to print.")] = OutputFormat.TABLE,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no messages.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Print errors with their traceback.")] = False,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Create, fill, read and maintain Paimon append tables.

    The options below may be given anywhere on the line. Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 already
    exists, 5 conflict, 6 unknown outcome, 7 storage, 8 damaged, 9 rows do not fit, 10 unsupported, 11 in use, 12 too
    far behind, 13 timed out, 130 interrupted.
    """
    # Imports the table packages, which takes most of the start-up time.
    session = importlib.import_module("penstock.cli.session").Session
    context.obj = session(warehouse=warehouse, format=format, quiet=quiet, debug=debug)


def main() -> None:
    """Run the command line; ends the process with an exit code of ``ExitCode``."""
    sys.exit(app())
