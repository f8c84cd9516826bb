"""Parse the text of a WHERE clause to a ``Predicate``.

Grammar, keywords in any case::

    or      := and (OR and)*
    and     := not (AND not)*
    not     := NOT not | '(' or ')' | TRUE | FALSE | test
    test    := name IS [NOT] NULL | name [NOT] IN '(' literal, ... ')' | name [NOT] BETWEEN literal AND literal
             | name [NOT] LIKE 'abc%' | name comparison literal | literal comparison name | name
    name    := word | `any text` | "any text"
    literal := 'text' | number | DATE 'yyyy-mm-dd' | TIMESTAMP 'yyyy-mm-dd hh:mm:ss[.fff]' | TIME 'hh:mm:ss'
             | X'hex' | TRUE | FALSE | NULL
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from penstock.errors import InvalidFilterError
from penstock.format.lexer import (
    BLANK,
    IN_BACK_QUOTES,
    IN_DOUBLE_QUOTES,
    IN_SINGLE_QUOTES,
    NAME_WORD,
    Lexer,
    Piece,
    unquoted,
)
from penstock.predicate.literals import parse_time_text, parse_timestamp_text
from penstock.predicate.tree import (
    FALSE,
    MIRRORED,
    TRUE,
    And,
    Compare,
    In,
    IsNull,
    Not,
    Operator,
    Or,
    Predicate,
    StartsWith,
)

_LEXER: Final = Lexer(
    skip=BLANK,
    ignore_case=True,
    typed=rf"(?:DATE|TIMESTAMP|TIME|X)\s*{IN_SINGLE_QUOTES}",
    number=r"(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?![\w.])",
    word=rf"{NAME_WORD}(?:\.{NAME_WORD})*",
    quoted=f"{IN_BACK_QUOTES}|{IN_DOUBLE_QUOTES}",
    text=IN_SINGLE_QUOTES,
    sign=r"<=|>=|<>|!=|==|[-+=<>(),]",
)
_COMPARISONS: Final = {**{operator.value: operator for operator in Operator}, "!=": Operator.NE, "==": Operator.EQ}
_KEYWORDS: Final = frozenset({"AND", "OR", "NOT", "IN", "IS", "NULL", "LIKE", "BETWEEN", "TRUE", "FALSE"})
_MAX_DEPTH: Final = 100
# Enough for long lists of keys: 300,000 of them are 2 million characters, parsed in 2 s of CPU.
_MAX_CHARACTERS: Final = 10_000_000
# The largest DOUBLE has 309 digits. Python's own limit for an integer is 4,300 digits, and comparing a DECIMAL of a
# million digits takes minutes.
_BEYOND_DOUBLES: Final = Decimal(10**309)
_MAX_NUMBER_CHARACTERS: Final = 400
# Maximum length of the filter text that an error quotes.
_SHOWN_CHARACTERS: Final = 200
_END: Final = "end of text"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Token(Piece):
    @property
    def keyword(self) -> str | None:
        upper = self.text.upper()
        return upper if self.kind == "word" and upper in _KEYWORDS else None


def parse_filter(text: str) -> Predicate:
    """Parse the text of a WHERE clause, without the word WHERE.

    Raises:
        InvalidFilterError: the text is invalid; the message has the position (from 1) and a hint. Also for a text, a
            number or a nesting depth beyond the limits above.
    """
    if len(text) > _MAX_CHARACTERS:
        hint = "filter on fewer values, or join with a table of them in an engine"
        raise _error(text, 0, f"{len(text):,} characters, and a filter has at most {_MAX_CHARACTERS:,}", hint)
    parser = _Parser(text)
    predicate = parser.disjunction(0)
    parser.expect_end()
    return predicate


class _Parser:
    """A cursor over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokenize(text)
        self._index = 0

    def disjunction(self, depth: int) -> Predicate:
        operands = [self._conjunction(depth)]
        while self._accept_keyword("OR"):
            operands.append(self._conjunction(depth))
        return operands[0] if len(operands) == 1 else Or(operands=tuple(operands))

    def expect_end(self) -> None:
        token = self._peek()
        if token.kind != "end":
            hint = "end the text here, or join conditions with AND or OR"
            raise _error(self._text, token.start, f"unexpected '{token.text}'", hint)

    def _conjunction(self, depth: int) -> Predicate:
        operands = [self._negation(depth)]
        while self._accept_keyword("AND"):
            operands.append(self._negation(depth))
        return operands[0] if len(operands) == 1 else And(operands=tuple(operands))

    def _negation(self, depth: int) -> Predicate:
        token = self._peek()
        if depth > _MAX_DEPTH:
            raise _error(self._text, token.start, f"more than {_MAX_DEPTH} levels of nesting", "flatten the condition")
        if self._accept_keyword("NOT"):
            return Not(operand=self._negation(depth + 1))
        if self._accept_sign("("):
            inner = self.disjunction(depth + 1)
            self._expect_sign(")", "close the parenthesis that was opened at " + str(token.start + 1))
            return inner
        if token.keyword in {"TRUE", "FALSE"} and self._peek(1).text not in _COMPARISONS:
            self._next()
            return TRUE if token.keyword == "TRUE" else FALSE
        return self._test()

    def _test(self) -> Predicate:
        token = self._peek()
        if not self._is_name(token):
            value = self._literal()
            operator = self._comparison()
            return Compare(column=self._name(), operator=MIRRORED[operator], value=value)
        name = self._name()
        if self._peek().text in _COMPARISONS:
            operator = self._comparison()
            return self._compare_with_literal(name, operator)
        return self._worded_test(name)

    def _compare_with_literal(self, name: str, operator: Operator) -> Compare:
        token = self._peek()
        if self._is_name(token):
            hint = f"quote a text value: '{token.text}'" if token.kind == "word" else "text values are in single quotes"
            raise _error(self._text, token.start, "columns compare with values only, not with columns", hint)
        return Compare(column=name, operator=operator, value=self._literal())

    def _worded_test(self, name: str) -> Predicate:
        if self._accept_keyword("IS"):
            negated = self._accept_keyword("NOT")
            self._expect_keyword("NULL", "write IS NULL or IS NOT NULL")
            return IsNull(column=name, negated=negated)
        negated = self._accept_keyword("NOT")
        token = self._peek()
        test: Predicate
        if self._accept_keyword("IN"):
            test = In(column=name, values=self._list(), negated=negated)
        elif self._accept_keyword("LIKE"):
            test = self._like(name, negated=negated)
        elif self._accept_keyword("BETWEEN"):
            low = self._literal()
            self._expect_keyword("AND", "write BETWEEN low AND high")
            both = (
                Compare(column=name, operator=Operator.GE, value=low),
                Compare(column=name, operator=Operator.LE, value=self._literal()),
            )
            test = Not(operand=And(operands=both)) if negated else And(operands=both)
        elif negated:
            raise _error(self._text, token.start, f"unexpected '{token.text}'", "after NOT comes IN, LIKE or BETWEEN")
        else:
            test = self._bare_column(name, token)
        return test

    def _bare_column(self, name: str, token: _Token) -> Compare:
        """Read a boolean column used as a condition; only an end of the condition may follow."""
        if token.kind == "end" or token.text == ")" or token.keyword in {"AND", "OR"}:
            return Compare(column=name, operator=Operator.EQ, value=True)
        hint = "after a column comes =, <>, <, <=, >, >=, IN, BETWEEN, LIKE or IS NULL"
        raise _error(self._text, token.start, f"unexpected '{token.text}'", hint)

    def _like(self, name: str, *, negated: bool) -> Predicate:
        token = self._peek()
        pattern = self._literal()
        if not isinstance(pattern, str):
            raise _error(self._text, token.start, "LIKE needs a text", "write LIKE 'abc%'")
        prefix, wildcards = _split_pattern(pattern)
        if wildcards == "%":
            return StartsWith(column=name, prefix=prefix, negated=negated)
        if wildcards:
            hint = "only 'abc%' (a prefix) is supported; filter the rest after reading"
            raise _error(self._text, token.start, f"LIKE pattern '{pattern}' is more than a prefix", hint)
        return Compare(column=name, operator=Operator.NE if negated else Operator.EQ, value=prefix)

    def _list(self) -> tuple[object, ...]:
        hint = "write IN (value, value, ...)"
        self._expect_sign("(", hint)
        values = [self._literal()]
        while self._accept_sign(","):
            values.append(self._literal())
        self._expect_sign(")", hint)
        return tuple(values)

    def _comparison(self) -> Operator:
        token = self._next()
        operator = _COMPARISONS.get(token.text)
        if operator is None:
            hint = "a value needs a comparison and a column, for example price > 5"
            raise _error(self._text, token.start, f"expected a comparison, found '{token.text}'", hint)
        return operator

    def _name(self) -> str:
        token = self._next()
        if not self._is_name(token):
            hint = 'one side of a comparison must be a column; quote names that are keywords: `in` or "in"'
            raise _error(self._text, token.start, f"expected a column, found '{token.text}'", hint)
        if token.kind == "word":
            return token.text
        return unquoted(token.text)

    def _literal(self) -> object:
        token = self._next()
        if token.kind == "text":
            return unquoted(token.text)
        if token.kind == "typed":
            return _typed_literal(self._text, token)
        if token.kind == "sign" and token.text in {"-", "+"} and self._peek().kind == "number":
            number = self._number(self._next())
            if token.text == "+":
                return number
            # Negating a Decimal with a minus sign rounds to 28 digits; copy_negate does not.
            return number.copy_negate() if isinstance(number, Decimal) else -number
        if token.kind == "number":
            return self._number(token)
        if token.keyword in _WORD_LITERALS:
            return _WORD_LITERALS[token.keyword]
        hint = (
            "values are 'text', 12.5, DATE '2024-01-31', TIMESTAMP '2024-01-31 10:00:00', X'00ff', TRUE, FALSE or NULL"
        )
        raise _error(self._text, token.start, f"expected a value, found '{token.text}'", hint)

    def _number(self, token: _Token) -> int | float | Decimal:
        """Parse a number with SQL's rules: digits are an integer, a point makes a decimal, an exponent a double."""
        text = token.text
        if len(text) > _MAX_NUMBER_CHARACTERS:
            what = f"a number of {len(text):,} digits, and there may be {_MAX_NUMBER_CHARACTERS}"
            raise _error(self._text, token.start, what, "no type of a column holds as many")
        if text.isdigit():
            return int(text)
        if "e" not in text.lower():
            return Decimal(text)
        # Larger than any double: a value above all finite ones compares like the text; infinity would match infinite
        # values.
        return _BEYOND_DOUBLES if math.isinf(number := float(text)) else number

    def _is_name(self, token: _Token) -> bool:
        return token.kind == "quoted" or (token.kind == "word" and token.keyword is None)

    def _peek(self, ahead: int = 0) -> _Token:
        return self._tokens[min(self._index + ahead, len(self._tokens) - 1)]

    def _next(self) -> _Token:
        token = self._peek()
        self._index += 1
        return token

    def _accept_keyword(self, keyword: str) -> bool:
        found = self._peek().keyword == keyword
        self._index += found
        return found

    def _accept_sign(self, sign: str) -> bool:
        token = self._peek()
        found = token.kind == "sign" and token.text == sign
        self._index += found
        return found

    def _expect_keyword(self, keyword: str, hint: str) -> None:
        token = self._peek()
        if not self._accept_keyword(keyword):
            raise _error(self._text, token.start, f"expected {keyword}, found '{token.text}'", hint)

    def _expect_sign(self, sign: str, hint: str) -> None:
        token = self._peek()
        if not self._accept_sign(sign):
            raise _error(self._text, token.start, f"expected '{sign}', found '{token.text}'", hint)


_WORD_LITERALS: Final[dict[str | None, object]] = {"TRUE": True, "FALSE": False, "NULL": None}


def _tokenize(text: str) -> list[_Token]:
    tokens = []
    for piece in _LEXER.pieces(text):
        if piece.kind == "unknown":
            hint = "close the quote" if piece.text in "'\"`" else "see the grammar of filters"
            raise _error(text, piece.start, f"unexpected '{piece.text}'", hint)
        tokens.append(_Token(kind=piece.kind, text=piece.text, start=piece.start))
    tokens.append(_Token(kind="end", text=_END, start=len(text)))
    return tokens


def _typed_literal(text: str, token: _Token) -> object:
    keyword, _, rest = token.text.partition("'")
    keyword = keyword.strip().upper()
    body = rest[:-1].replace("''", "'")
    try:
        if keyword == "X":
            return bytes.fromhex(body)
        if keyword == "DATE":
            return dt.date.fromisoformat(body.strip())
        return parse_time_text(body) if keyword == "TIME" else parse_timestamp_text(body)
    except ValueError:
        hint = "write X'00ff', DATE '2024-01-31', TIME '10:00:00' or TIMESTAMP '2024-01-31 10:00:00.123'"
        raise _error(text, token.start, f"{token.text} is not a valid {keyword} value", hint) from None


def _split_pattern(pattern: str) -> tuple[str, str]:
    """Split at the first wildcard without a backslash: return the plain prefix and the rest."""
    prefix = []
    index = 0
    while index < len(pattern):
        character = pattern[index]
        if character == "\\" and pattern[index + 1 : index + 2] in {"%", "_", "\\"}:
            index += 1
            character = pattern[index]
        elif character in "%_":
            break
        prefix.append(character)
        index += 1
    return "".join(prefix), pattern[index:]


def _error(text: str, position: int, what: str, hint: str) -> InvalidFilterError:
    return InvalidFilterError(f"filter '{_excerpt(text, position)}', position {position + 1}: {what}; {hint}")


def _excerpt(text: str, position: int) -> str:
    """Return the text; of a long text only the part around a position."""
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    start = max(0, min(position - _SHOWN_CHARACTERS // 2, len(text) - _SHOWN_CHARACTERS))
    end = start + _SHOWN_CHARACTERS
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
