"""The command as a whole: global options anywhere on the line, errors as one line and an exit code."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import typer
from typer.core import TyperGroup

from penstock.cli.command_list import SECTIONS, Commands
from penstock.cli.exit_codes import ExitCode, exit_code_of
from penstock.errors import OptionWarning, TableStoreError
from penstock.printable import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ClickAny: TypeAlias = Any
"""An object of click: some versions of typer bring a click of their own, so the module of its classes differs."""

_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
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
        """Take global options from anywhere on the line.

        Raises:
            BadParameter: an argument with bytes that are not text, which Python decodes to lone surrogates.
        """
        for arg in args:
            if not _is_text(arg):
                raise typer.BadParameter(f"{arg!a} is not in UTF-8; names and values are text")
        with _output_errors(ctx):  # of --help and --version
            parsed: list[str] = super().parse_args(ctx, hoist(args))
        return parsed

    def invoke(self, ctx: ClickAny) -> ClickAny:
        """Run the command."""
        try:
            with _output_errors(ctx), warnings.catch_warnings():
                warnings.simplefilter("always", OptionWarning)
                warnings.showwarning = _show_warning
                result = super().invoke(ctx)
                sys.stdout.flush()
                return result
        except TableStoreError as error:
            if getattr(ctx.obj, "debug", False):
                raise
            _say("error", str(error))
            raise typer.Exit(exit_code_of(error)) from error
        except KeyboardInterrupt:
            _say("error", "interrupted")
            raise typer.Exit(ExitCode.INTERRUPTED) from None


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


def _show_warning(message: Warning | str, category: type[Warning], *_rest: object, **_more: object) -> None:
    _say("warning", str(message) if issubclass(category, OptionWarning) else f"{category.__name__}: {message}")


def _say(kind: str, text: str) -> None:
    typer.echo(f"{kind}: {one_line(text)}", err=True)
