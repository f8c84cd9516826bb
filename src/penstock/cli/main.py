"""The ``penstock`` command."""

import atexit
import importlib
import os
import sys
from contextlib import suppress
from importlib.metadata import version
from io import TextIOWrapper
from typing import Annotated, Final, Literal, NoReturn, TextIO

import typer

from penstock.cli.group import PenstockGroup
from penstock.cli.output_format import OutputFormat

_UTF_8: Final = "utf-8"

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
    _leave_out_pandas()
    # The commands have bars of their own.
    importlib.import_module("penstock.api.handle").show_progress(False)
    context.obj = session(warehouse=warehouse, format=format, quiet=quiet, debug=debug)


def _leave_out_pandas() -> None:
    """Keep pyarrow from importing pandas, which takes half a second, only to see that no list of values is a Series.

    It tries once, and again where it converts to pandas, or has to infer the type of values.
    """
    if "pandas" in sys.modules:
        return
    sys.modules["pandas"] = None  # type: ignore[assignment] # as the import system documents
    with suppress(ImportError, AttributeError):
        importlib.import_module("pyarrow").array([])
    del sys.modules["pandas"]


def main() -> NoReturn:
    """Run the command line; ends the process with an exit code of ``ExitCode``."""
    _prepare_streams()
    try:
        sys.exit(app())
    except SystemExit as ended:
        _end(ended.code)


def _end(code: int | str | None) -> NoReturn:
    """End the process as the interpreter would, but without finalizing it.

    Arrow's threads read ahead from Python files, such as standard input. The interpreter ends a thread that wants its
    lock during finalization, and Arrow then aborts the process (``terminate called without an active exception``).
    """
    atexit._run_exitfuncs()  # noqa: SLF001 - os._exit does not run them
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # closed, or its reader has gone
            stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def _prepare_streams() -> None:
    """Make the standard streams usable: each may be closed, and the output may have an encoding without all letters."""
    sys.stdin = sys.stdin or _open_null("r")
    sys.stdout = sys.stdout or _open_null("w")
    sys.stderr = sys.stderr or _open_null("w")
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.encoding.lower() != _UTF_8:
        is_asked_for = sys.stdout.isatty() or "PYTHONIOENCODING" in os.environ
        sys.stdout.reconfigure(encoding=None if is_asked_for else _UTF_8, errors="backslashreplace")


def _open_null(mode: Literal["r", "w"]) -> TextIO:
    return open(os.devnull, mode, encoding=_UTF_8)  # noqa: PTH123 - it stays open until the process ends
