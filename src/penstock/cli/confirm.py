"""Ask before something is removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from penstock.cli.exit_codes import ExitCode
from penstock.cli.output.render import note
from penstock.printable import visible

if TYPE_CHECKING:
    from penstock.cli.session import Session


def confirm(session: Session, question: str, *, yes: bool) -> None:
    """Ask for confirmation, and return if the answer is yes; otherwise end the command.

    Args:
        question: with a question mark.
        yes: ``--yes`` was given: do not ask.
    """
    if yes:
        return
    try:
        agreed = typer.confirm(visible(question), err=True)
    except typer.Abort:
        agreed = False  # no terminal for an answer
    if not agreed:
        note(session, "nothing was changed (--yes answers for you)")
        raise typer.Exit(ExitCode.FAILED)
