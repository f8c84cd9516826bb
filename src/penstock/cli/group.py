"""The command as a whole: global options anywhere on the line, errors as one line and an exit code."""

from __future__ import annotations

import errno
import importlib
import os
import re
import sys
import warnings
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import typer
from typer.core import TyperGroup
from typer.main import get_group

from penstock.api.lazy import load_module
from penstock.cli.arguments import GLOBAL_OPTIONS
from penstock.cli.exit_codes import ExitCode, exit_code_of
from penstock.errors import DamagedFileWarning, OptionWarning, TableStoreError
from penstock.printable import one_line, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ClickAny: TypeAlias = Any
"""An object of click: some versions of typer bring a click of their own, so the module of its classes differs."""

_UsageError: ClickAny = next(each for each in typer.BadParameter.__mro__ if each.__name__ == "UsageError")

_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
_OURS: Final = (OptionWarning, DamagedFileWarning)
_FLAGS: Final = frozenset({"--quiet", "-q", "--debug"})
_WITH_VALUE: Final = frozenset({"--warehouse", "-w", "--format"})
_JOINED: Final = ("--warehouse=", "--format=")


class PenstockGroup(TyperGroup):
    """Runs a command and turns errors into messages and exit codes."""

    def __init__(self, **attributes: ClickAny) -> None:
        super().__init__(**attributes)
        self.commands = Commands()

    def format_commands(self, ctx: ClickAny, formatter: ClickAny) -> None:
        """List the commands by purpose, without importing them."""
        del ctx
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, words) for name, (_, words) in commands.items()])

    def parse_args(self, ctx: ClickAny, args: list[str]) -> list[str]:
        """Take global options from anywhere on the line."""
        with _usage_errors(), _output_errors(ctx):  # of --help and --version
            for arg in args:
                if not _is_text(arg):
                    raise typer.BadParameter(f"{arg!a} is not in UTF-8; names and values are text")
            parsed: list[str] = super().parse_args(ctx, hoist(args))
        return parsed

    def invoke(self, ctx: ClickAny) -> ClickAny:
        """Run the command."""
        try:
            with _usage_errors(), _output_errors(ctx), warnings.catch_warnings():
                shown: list[type[Warning]] = []
                for category in _OURS:
                    warnings.simplefilter("always", category)
                warnings.showwarning = partial(_show_warning, shown)
                result = super().invoke(ctx)
                sys.stdout.flush()
        except TableStoreError as error:
            if getattr(ctx.obj, "debug", False):
                raise
            _say("error", str(error))
            raise typer.Exit(exit_code_of(error)) from error
        except KeyboardInterrupt:
            _say("error", "interrupted")
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        if DamagedFileWarning in shown:
            raise typer.Exit(ExitCode.DAMAGED)
        return result


@contextmanager
def _usage_errors() -> Iterator[None]:
    """End the command when its line is not valid: with the usage, and an error in the form of all others."""
    try:
        yield
    except _UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            raise
        if error.ctx is not None:
            line = f"{error.ctx.get_usage()}\nTry '{error.ctx.command_path} --help' for help.\n"
            typer.echo(line, err=True)
        typer.echo(f"error: {visible(usage_message(error))}", err=True)
        raise typer.Exit(error.exit_code) from error


def usage_message(error: ClickAny) -> str:
    """Return the message of an invalid command line as a phrase, with the nearest name if there is one."""
    text = str(error.message).rstrip(".")
    command = re.fullmatch(r"(No such command '.*?')(?:\. Did you mean '(.*?)'.*)?", text)
    near: str | None = None
    if command is not None:
        text, near = command[1], command[2]
    elif getattr(error, "possibilities", None):
        near = next(iter(get_close_matches(error.option_name, error.possibilities, n=1)), None)
    else:
        text = str(error.format_message()).rstrip(".").replace(": Value error, ", ": ")
    hint = "" if near is None else f"; did you mean {near}?"
    return f"{text[:1].lower()}{text[1:]}{hint}"


@contextmanager
def _output_errors(ctx: ClickAny) -> Iterator[None]:
    """End the command when its output cannot be written: quietly where its reader has closed the pipe."""
    try:
        yield
    except BrokenPipeError:
        _discard_output()
        raise typer.Exit(ExitCode.DONE) from None
    except OSError as error:
        # Errors of files have names, and storages raise errors of ours.
        is_output = error.filename is None and error.errno in _NO_SPACE
        if not is_output or getattr(ctx.obj, "debug", False):
            raise
        _discard_output()
        _say("error", f"the output cannot be written: {error.strerror}")
        raise typer.Exit(ExitCode.STORAGE) from error


def _discard_output() -> None:
    """Keep Python from writing the rest of the buffer when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def hoist(args: Sequence[str]) -> list[str]:
    """Return the arguments with the global options first; what follows ``--`` stays."""
    front: list[str] = []
    rest: list[str] = []
    waiting = iter(args)
    for arg in waiting:
        if arg == "--":
            rest += [arg, *waiting]
        elif arg in _FLAGS or arg.startswith(_JOINED):
            front.append(arg)
        elif arg in _WITH_VALUE:
            front += [arg, *_next(waiting)]
        else:
            rest.append(arg)
    return [*front, *rest]


def _is_text(arg: str) -> bool:
    try:
        arg.encode()
    except UnicodeEncodeError:
        return False
    return True


def _next(waiting: ClickAny) -> list[str]:
    return [value for value in [next(waiting, None)] if value is not None]


def _show_warning(
    shown: list[type[Warning]], message: Warning | str, category: type[Warning], *_rest: object, **_more: object
) -> None:
    shown.append(category)
    _say("warning", str(message) if issubclass(category, _OURS) else f"{category.__name__}: {message}")


def _say(kind: str, text: str) -> None:
    typer.echo(f"{kind}: {one_line(text)}", err=True)


_HERE: Final = "penstock.cli.commands"
SECTIONS: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "Tables": {
        "create": ("catalog", "Create a database, or a table with its columns."),
        "list": ("catalog", "List databases, or the tables of one."),
        "show": ("catalog", "Show columns, keys, options, the latest snapshot and the size."),
        "options": ("catalog", "Show the options of a table, or all options."),
        "alter": ("alter", "Change columns, options and comments of a table."),
        "rename": ("catalog", "Rename a table within its warehouse."),
        "drop": ("catalog", "Permanently remove a table or a database with its files."),
    },
    "Rows": {
        "read": ("rows", "Print rows of the latest snapshot or an older one."),
        "append": ("rows", "Append the rows of files in order, as one commit."),
        "overwrite": ("rows", "Replace rows with the rows of files."),
        "import": ("rows", "Copy a Hive-style directory of Parquet files."),
        "migrate": ("convert", "Create a table from a Hive-style directory, by hard links."),
        "convert": ("convert", "Copy files, or a Delta or Iceberg table, into a new table."),
        "export": ("convert", "Write rows as a directory of Parquet files."),
        "delete": ("rows", "Delete the rows that match a condition."),
        "truncate": ("rows", "Remove all rows in a new snapshot."),
        "drop-partition": ("rows", "Remove the rows of partitions in a new snapshot."),
        "sql": ("sql", "Run Flink SQL statements, or open a prompt."),
    },
    "Servers": {
        "connect-server": ("servers", "Serve catalogs to clients of Spark Connect."),
        "thrift-server": ("servers", "Serve catalogs over JDBC and ODBC."),
        "spark-sql": ("servers", "Run Spark SQL in Spark's own spark-sql."),
    },
    "Inspection": {
        "snapshots": ("inspect", "List snapshots, in table format the newest first."),
        "schemas": ("inspect", "List schemas, oldest first."),
        "files": ("inspect", "List data files; with --wide also their statistics."),
        "partitions": ("inspect", "List partitions with rows, files and bytes."),
        "buckets": ("inspect", "List buckets with rows, files and bytes."),
        "manifests": ("inspect", "List manifests."),
        "debt": ("inspect", "List the small files of each partition, and what a compaction would merge."),
        "tags": ("inspect", "List tags; the same as tag list."),
        "consumers": ("inspect", "List consumers and the snapshot that each reads next."),
        "explain": ("inspect", "Print which files a read would open and what pruned the others."),
        "fsck": ("inspect", "Check that the files that the table needs exist."),
    },
    "Over time": {
        "follow": ("stream", "Print rows as they are added."),
        "lag": ("stream", "Print the lag of consumers and streaming queries."),
        "watch": ("watch", "Show a table's health and history, live."),
        "report": ("report", "Chart the history of tables in one HTML file."),
        "wait": ("completeness", "Wait until the table has all rows up to an event time."),
        "mark-done": ("completeness", "Mark partitions as done."),
        "consumer": ("consumer", "Manage consumers: positions of readers, which retain unread snapshots."),
    },
    "Upkeep": {
        "compact": ("compact", "Merge small files into large ones."),
        "expire": ("upkeep", "Expire old snapshots."),
        "expire-partitions": ("upkeep", "Drop the partitions that are older than their expiration time."),
        "remove-orphan-files": ("upkeep", "Delete files that no snapshot uses."),
        "branch": ("versions", "Manage branches, each with its own snapshots."),
        "tag": ("versions", "Manage tags, which retain the snapshots they name."),
        "rollback": ("versions", "Make an older snapshot the latest."),
    },
}
"""The module of each command, and its line in the list of commands; the command's own help is longer."""

_MODULES: Final = {name: module for commands in SECTIONS.values() for name, (module, _) in commands.items()}


class Commands(MutableMapping[str, Any]):
    """Typer's commands by name, each created on first use."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - some versions of typer bring a click of their own
        if name not in self._made:
            self._made[name] = _make(name, _MODULES[name])
        return self._made[name]

    def __setitem__(self, name: str, command: object) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**_MODULES, **self._made})

    def __len__(self) -> int:
        return len({**_MODULES, **self._made})


def _make(name: str, home: str) -> Any:  # noqa: ANN401 - as above
    found = load_module(f"{_HERE}.{home}").COMMANDS[name]
    parent = typer.Typer(rich_markup_mode=None)
    if isinstance(found, typer.Typer):
        parent.add_typer(found, name=name, epilog=GLOBAL_OPTIONS)
    else:
        module = importlib.import_module("penstock.cli.command")
        parent.command(name, cls=module.UsageCommand, epilog=GLOBAL_OPTIONS)(module.command(found))
    return get_group(parent).commands[name]
