"""Statements of earlier prompts, in the user's state directory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from prompt_toolkit.history import FileHistory, InMemoryHistory

from penstock.cli.prompt.keys import command_of
from penstock.printable import mask_text

if TYPE_CHECKING:
    from prompt_toolkit.history import History

_NAME: Final = "sql_history"


def open_history() -> History:
    """Return the statements of earlier sessions, or only of this one if the directory is not writable.

    Source:
        The XDG Base Directory Specification: ``$XDG_STATE_HOME``, else ``~/.local/state``.
    """
    try:
        folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "penstock"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / _NAME
        # Statements may hold secrets.
        path.touch(mode=0o600)
    except (OSError, RuntimeError):
        return InMemoryHistory()
    return _StatementHistory(str(path))


class _StatementHistory(FileHistory):
    """Keeps statements, except the prompt's commands, those with secrets, and those that begin with a space."""

    def store_string(self, string: str) -> None:
        """Add a statement to the file."""
        if not string.startswith(" ") and command_of(string) is None and mask_text(string) == string:
            super().store_string(string)
