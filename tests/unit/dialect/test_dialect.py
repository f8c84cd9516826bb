"""Statements as they are in Paimon's documentation, in one catalog: each works or says why not."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path

import pytest

import penstock

NUMBERS = itertools.count()
FILE = Path(__file__).with_name("paimon_statements.txt")
"""A statement a line, in the order in which they run; the indented line after one that is refused has its error."""


def _statements() -> list[tuple[str, str | None]]:
    found: list[tuple[str, str | None]] = []
    for line in FILE.read_text().splitlines():
        if line.startswith("    "):
            found[-1] = (found[-1][0], line.strip())
        else:
            found.append((line, None))
    return found


def test_each_statement_works_or_says_why_not() -> None:
    catalog = penstock.Catalog(f"memory://paimon-statements-{next(NUMBERS)}")
    catalog.create_database("default")
    wrong = []
    for statement, error in _statements():
        shown = None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", penstock.OptionWarning)
                penstock.sql(None, catalog, statement)
        except penstock.TableStoreError as raised:
            shown = f"{type(raised).__name__}: {raised}"
        if (shown is None) != (error is None) or not _is_shown(error, shown):
            wrong.append(f"{statement}\n    {shown}\n    instead of {error}")
    assert "\n".join(wrong) == ""


def _is_shown(error: str | None, shown: str | None) -> bool:
    if error is None or shown is None:
        return error is shown
    kind, _, words = error.partition(": ")
    return shown.startswith(f"{kind}: ") and words in shown


def test_most_statements_work() -> None:
    refused = [statement for statement, error in _statements() if error is not None]
    assert len(_statements()) > 150
    assert len(refused) < 50


@pytest.mark.parametrize("option", ["file-index.bsi.columns", "lookup.cache-rows"])
def test_an_option_of_theirs_without_an_effect_warns(option: str) -> None:
    catalog = penstock.Catalog(f"memory://paimon-statements-{next(NUMBERS)}")
    catalog.create_database("default")
    with pytest.warns(penstock.OptionWarning, match=f"option '{option}' = 'a' has no effect here"):
        penstock.sql(None, catalog, f"CREATE TABLE t (a INT) WITH ('{option}' = 'a')")
