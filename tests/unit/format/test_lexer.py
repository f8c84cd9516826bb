"""The lexer of column lists, statements, queries and filters."""

from __future__ import annotations

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from penstock.format.lexer import BLANK, COMMENT_BUT_NO_HINT, HINT, IN_QUOTES, NAME_WORD, Lexer, unquoted

LEXER = Lexer(skip=f"{BLANK}|{COMMENT_BUT_NO_HINT}", hint=HINT, quoted=IN_QUOTES, word=NAME_WORD, sign=r"[^`'\"\w\s]")


def kinds(text: str) -> list[tuple[str, str]]:
    return [(piece.kind, piece.text) for piece in LEXER.pieces(text)]


def test_quotes_comments_and_hints_are_distinguished() -> None:
    assert kinds("a -- 'b'\n/* c */ /*+ d */ `e``f`;") == [
        ("word", "a"),
        ("hint", "/*+ d */"),
        ("quoted", "`e``f`"),
        ("sign", ";"),
    ]


@pytest.mark.parametrize("text", ["'never closed", "`a", '"'])
def test_a_quote_that_is_never_closed_is_the_last_piece(text: str) -> None:
    assert [piece.kind for piece in LEXER.pieces(f"a {text}")][-1] == "unknown"
    assert list(LEXER.pieces(f"a {text}"))[-1].start == 2


@given(st.text(alphabet=st.sampled_from("ab `'\"-/*+\n;"), max_size=20))
def test_pieces_are_where_they_say(text: str) -> None:
    place = 0
    for piece in LEXER.pieces(text):
        assert piece.start >= place
        assert text.startswith(piece.text, piece.start)
        place = piece.end


@given(st.text(min_size=1, max_size=10).filter(lambda text: "\x00" not in text))
def test_a_quoted_text_is_what_sqlglot_reads(text: str) -> None:
    quoted = "`" + text.replace("`", "``") + "`"
    assert [piece.content for piece in LEXER.pieces(quoted)] == [text]
    assert unquoted(quoted) == sqlglot.tokenize(quoted, read="spark")[0].text == text
