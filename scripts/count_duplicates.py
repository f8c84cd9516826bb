"""Count duplicated code that is logic: in a list of duplicates, those that are not only imports and tables of values.

Reads rows such as ``D1 a.py:10-24 ~ b.py:40-54`` from standard input and prints those that count. A pair counts if on
both sides at least six of the repeated lines are inside of functions. Imports, ``__all__``, fields of dataclasses,
members of enumerations, options, decorators, signatures and docstrings do not count: they are declarations, and sharing
them would couple things that only look alike.
"""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
LEAST_LINES: Final = 6
_ROW: Final = re.compile(r"^D\d+ (\S+):(\d+)-(\d+) ~ (\S+):(\d+)-(\d+)")


@cache
def logic_lines(path: str) -> frozenset[int]:
    """Return the numbers of the lines of statements in functions; all lines of a file that is not Python."""
    text = (ROOT / path).read_text("utf-8")
    if not path.endswith(".py"):
        return frozenset(range(1, text.count("\n") + 2))
    found: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in node.body:
                is_docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
                if not is_docstring:
                    found.update(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
    blank = {number for number, line in enumerate(text.splitlines(), 1) if not line.strip()}
    return frozenset(found - blank)


def counts(row: re.Match[str]) -> bool:
    """Whether a pair counts."""
    sides = ((row[1], int(row[2]), int(row[3])), (row[4], int(row[5]), int(row[6])))
    return all(len(logic_lines(path) & set(range(first, last + 1))) >= LEAST_LINES for path, first, last in sides)


def main() -> None:
    """Print the rows that count, and how many there are."""
    rows = [(match, line.rstrip()) for line in sys.stdin if (match := _ROW.match(line))]
    kept = [line for match, line in rows if counts(match)]
    print("\n".join(kept))
    print(f"{len(kept)} of {len(rows)} pairs repeat logic")


if __name__ == "__main__":
    main()
