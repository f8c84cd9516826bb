"""Find syntax errors in queries and describe them: position, what was found, and what is valid there."""

from __future__ import annotations

import re
from difflib import get_close_matches
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from penstock.dialect.parse.windows import WINDOWS
from penstock.format.lexer import WORD

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlglot.errors import SqlglotError

    from penstock.dialect.parse.reader import StatementReader, StatementText
    from penstock.errors import InvalidSqlError
    from penstock.format.lexer import Token

_WORDS: Final = (
    *("SELECT", "DISTINCT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "JOIN", "INNER", "LEFT", "RIGHT"),
    *("CROSS", "UNION", "INTERSECT", "EXCEPT", "BETWEEN", "VALUES", "INTERVAL", "USING", "WINDOW", "PARTITION"),
)
_PAIRS: Final = ("GROUP", "ORDER", "PARTITION", "SORT", "CLUSTER", "DISTRIBUTE")
_MISSING: Final = re.compile(r"Required keyword: '\w+' missing for ")
_EXPECTING: Final = re.compile(r"Expecting (?P<sign>\S+)")
_EXPECTED: Final = re.compile(r"Expected (?P<what>(?!table name).+)")
_HINT: Final = re.compile(r"/\*\+\s*(?P<word>\w+)\s*\(")
_CUTOFF: Final = 0.7
_SHOWN: Final = 200
_END: Final = "the end"


def check_text(reader: StatementReader) -> None:
    """Raise an error for mistakes that sqlglot accepts but Spark or Flink does not.

    Raises:
        InvalidSqlError: an extra comma, no columns after SELECT, a missing condition or key, a misspelt hint or
            window function.
    """
    source, tokens = reader.statement, reader.tokens
    for place, token in enumerate(tokens[:-1]):
        after, following = tokens[place + 1], tokens[min(place + 2, len(tokens) - 1)].word
        # A column may be named FROM.
        is_clause = after.word in {"FROM", "WHERE"} and following not in {"FROM", ","}
        if token.text == "," and (after.word in {"", ")"} or is_clause):
            raise source.error(after.start, f"found {_named(after)}: expected another item after ',', or no comma")
        if token.word == "SELECT" and is_clause:
            raise source.error(after.start, f"found {_named(after)}: expected columns, or *")
        if token.word in {"ON", "BY"} and after.word == "":
            raise source.error(after.start, f"found {after}: expected something after '{token.word}'")
        _check_window(source, tokens[place : place + 4])
    for _, hint in reader.hints:
        _check_hint(source, hint)


def parse_error(
    source: StatementText, tokens: Sequence[Token], error: SqlglotError, replaced: Collection[int]
) -> InvalidSqlError:
    """Convert an error of sqlglot to an error with line and column.

    Args:
        replaced: offsets of what was one token for sqlglot; its first word is shown, because hints may have secrets.
    """
    details = getattr(error, "errors", None)
    if not details:
        return source.error(0, f"the query cannot be read: {str(error)[:_SHOWN]}")
    first = details[0]
    found, said = str(first.get("highlight") or ""), str(first.get("description") or "")
    lines = source.text.split("\n")[: int(first.get("line") or 1) - 1]
    end = sum(len(text) + 1 for text in lines) + int(first.get("col") or 1)
    start, tokens = max(end - len(found), 0), tokens[:-1]
    if start in replaced:
        found = next(token.text for token in tokens if token.start == start)
    misspelt = _misspelt(tokens, start) if said.startswith("Invalid") else None
    if misspelt is not None:
        token, word = misspelt
        return source.error(token.start, f"found '{token.text}': did you mean {word}?")
    is_last = not tokens or tokens[-1].start <= start
    is_unexpected = not any(pattern.match(said) for pattern in (_MISSING, _EXPECTING)) and "table name" not in said
    if is_last and not is_unexpected:
        expected = _expected(said, f"something after '{found}'")
        return source.error(len(source.text), f"found {_END}: {expected}")
    before = next((token.word for token in reversed(tokens) if token.start < start), "")
    if before in _PAIRS and said.startswith("Invalid"):
        return source.error(start, f"found '{found}': expected BY after {before}")
    return source.error(start, f"found '{found}': {_expected(said, 'an expression, which is missing here')}")


def _expected(said: str, missing: str) -> str:
    if _MISSING.match(said):
        return f"expected {missing}"
    if "table name" in said:
        return "expected a table's name"
    if match := _EXPECTING.match(said):
        return f"expected '{match['sign']}'"
    if match := _EXPECTED.match(said):
        return f"expected {match['what']}"
    return "expected a clause such as JOIN, WHERE, GROUP BY or LIMIT, or the end"


def _named(token: Token) -> str:
    return f"'{token.word}'" if token.word else _END


def _misspelt(tokens: Sequence[Token], start: int) -> tuple[Token, str] | None:
    """Return the token at an offset, or one of the two before it, if it is similar to an SQL keyword."""
    around = [token for token in tokens if token.start <= start][-3:]
    for before, token in pairwise(around):
        is_table = before.word in {"FROM", "JOIN", ","}
        if is_table or token.kind != WORD or token.word in _WORDS:
            continue
        near = get_close_matches(token.word, _WORDS, n=1, cutoff=_CUTOFF)
        if near:
            return token, near[0]
    return None


def _check_hint(source: StatementText, token: Token) -> None:
    match = _HINT.match(token.text)
    word = "" if match is None else match["word"].upper()
    if match is not None and word != "OPTIONS" and get_close_matches(word, ("OPTIONS",), cutoff=_CUTOFF):
        raise source.error(token.start + match.start("word"), f"found '{match['word']}': did you mean OPTIONS?")


def _check_window(source: StatementText, tokens: Sequence[Token]) -> None:
    words = [token.word for token in tokens]
    if words[:2] != ["TABLE", "("] or words[3:] != ["("] or words[2] in WINDOWS or not tokens[2].is_name:
        return
    near = get_close_matches(words[2], WINDOWS, n=1, cutoff=_CUTOFF)
    if near:
        raise source.error(tokens[2].start, f"found '{tokens[2].text}': did you mean {near[0]}?")
