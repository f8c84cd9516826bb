"""Scripts cut into statements."""

from __future__ import annotations

import pytest

from penstock import InvalidSqlError
from penstock.dialect.parse.reader import StatementText, is_whole, split_script


def test_semicolons_in_quotes_and_comments_do_not_end_a_statement() -> None:
    script = "SELECT ';' AS `a;b` -- c;\n/* d; */ FROM t; SELECT \"x;\"\n"
    assert [each.text for each in split_script(script)] == [
        "SELECT ';' AS `a;b` -- c;\n/* d; */ FROM t",
        'SELECT "x;"',
    ]


def test_a_statement_knows_its_line_and_column() -> None:
    first, second = split_script("-- about\n\n  USE a;;  \n ; USE\n  b")
    assert (first.line, first.column) == (3, 3)
    assert (second.line, second.column) == (4, 4)
    assert second.place(second.text.index("b")) == (5, 3)


def test_hints_belong_to_the_statement_and_comments_around_it_do_not() -> None:
    (statement,) = split_script("/* before */ SELECT * FROM t /*+ OPTIONS('a'='b') */ -- after")
    assert statement.text == "SELECT * FROM t /*+ OPTIONS('a'='b') */"


@pytest.mark.parametrize("text", ["", " ; ;\n", "-- nothing", "/* nothing; */"])
def test_what_is_empty_is_no_statement(text: str) -> None:
    assert split_script(text) == ()


@pytest.mark.parametrize("quote", ["'", '"', "`", "/*"])
def test_an_open_quote_is_reported_with_its_position(quote: str) -> None:
    with pytest.raises(InvalidSqlError, match=r"line 2, column 8: .* is never closed"):
        split_script(f"USE a;\nSELECT {quote}abc; SELECT 1")


def test_a_position_in_the_first_line_counts_from_the_start_of_the_statement() -> None:
    assert StatementText(text="abc", line=7, column=10).place(2) == (7, 12)


def test_a_backslash_before_a_quote_leaves_a_statement_whole() -> None:
    assert [is_whole(text) for text in (r"SELECT 'it\'s';", r"SET 'a' = 'C:\';", "SELECT 'its;")] == [
        True,
        True,
        False,
    ]
