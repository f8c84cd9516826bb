"""Import the SQL parser on first use: importing sqlglot takes as long as importing the rest of the command line."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.dialect.outcome import Outcome
    from penstock.dialect.state import SqlState


def run_script_late(state: SqlState, script: str) -> Iterator[Outcome]:
    """Run a script as ``session.run_script`` does, and import that module first."""
    outcomes: Iterator[Outcome] = importlib.import_module("penstock.dialect.session").run_script(state, script)
    return outcomes
