"""The lexer of column lists, statements, queries and filters."""

from __future__ import annotations

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from penstock.format.lexer import SQL, unquoted


def kinds(text: str) -> list[tuple[str, str]]:
    return [(token.kind, token.text) for token in SQL.tokens(text)]


def test_quotes_comments_and_hints_are_distinguished() -> None:
    assert kinds("a -- 'b'\n/* c */ /*+ d */ `e``f`;") == [
        ("word", "a"),
        ("hint", "/*+ d */"),
        ("quoted", "`e``f`"),
        ("sign", ";"),
    ]


@pytest.mark.parametrize("text", ["'never closed", "`a", '"'])
def test_a_quote_that_is_never_closed_is_the_last_token(text: str) -> None:
    assert [token.kind for token in SQL.tokens(f"a {text}")][-1] == "unknown"
    assert list(SQL.tokens(f"a {text}"))[-1].start == 2


@given(st.text(alphabet=st.sampled_from("ab `'\"-/*+\n;"), max_size=20))
def test_pieces_are_where_they_say(text: str) -> None:
    place = 0
    for token in SQL.tokens(text):
        assert token.start >= place
        assert text.startswith(token.text, token.start)
        place = token.end


@given(st.text(min_size=1, max_size=10).filter(lambda text: "\x00" not in text))
def test_a_quoted_text_is_what_sqlglot_reads(text: str) -> None:
    quoted = "`" + text.replace("`", "``") + "`"
    assert [token.content for token in SQL.tokens(quoted)] == [text]
    assert unquoted(quoted) == sqlglot.tokenize(quoted, read="spark")[0].text == text
