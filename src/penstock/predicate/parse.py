"""Parse the text of a WHERE clause to a ``Predicate``.

Grammar, keywords in any case::

    or      := and (OR and)*
    and     := not (AND not)*
    not     := NOT not | '(' or ')' | TRUE | FALSE | test
    test    := name IS [NOT] NULL | name [NOT] IN '(' literal, ... ')' | name [NOT] BETWEEN literal AND literal
             | name [NOT] LIKE 'abc%' | name comparison literal | literal comparison name | name
    name    := word | `any text` | "any text"
    literal := 'text' | number | DATE 'yyyy-mm-dd' | TIMESTAMP 'yyyy-mm-dd hh:mm:ss[.fff]' | TIME 'hh:mm:ss'
             | X'hex' | DOUBLE 'NaN' | DOUBLE '[-]Infinity' | DOUBLE '[-]0.0' | TRUE | FALSE | NULL

As a partition, each of the last two zeros is not equal to the other one, unlike all other numbers that are zero.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Final

from penstock.errors import InvalidFilterError
from penstock.format.lexer import (
    BLANK,
    END,
    IN_BACK_QUOTES,
    IN_DOUBLE_QUOTES,
    IN_SINGLE_QUOTES,
    NAME_WORD,
    NUMBER,
    QUOTED,
    SIGN,
    TEXT,
    WORD,
    Lexer,
    Token,
    TokenReader,
    unquoted,
)
from penstock.predicate.literals import TYPED_LITERALS
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
    SignedZero,
    StartsWith,
    UnpaddedText,
)

_LEXER: Final = Lexer(
    skip=BLANK,
    ignore_case=True,
    typed=rf"(?:DATE|TIMESTAMP|TIME|X|DOUBLE)\s*{IN_SINGLE_QUOTES}",
    number=r"(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?![\w.])",
    word=rf"{NAME_WORD}(?:\.{NAME_WORD})*",
    quoted=f"{IN_BACK_QUOTES}|{IN_DOUBLE_QUOTES}",
    text=IN_SINGLE_QUOTES,
    sign=r"<=|>=|<>|!=|==|[-+=<>(),]",
)
_COMPARISONS: Final = {**{operator.value: operator for operator in Operator}, "!=": Operator.NE, "==": Operator.EQ}
_TYPED: Final = "typed"
_KEYWORDS: Final = frozenset({"AND", "OR", "NOT", "IN", "IS", "NULL", "LIKE", "BETWEEN", "TRUE", "FALSE"})
MAX_DEPTH: Final = 100
"""Levels of nesting of a filter."""
# Enough for long lists of keys: 300,000 of them are 2 million characters, parsed in 2 s of CPU.
_MAX_CHARACTERS: Final = 10_000_000
# The largest DOUBLE has 309 digits. Python's own limit for an integer is 4,300 digits, and comparing a DECIMAL of a
# million digits takes minutes.
_BEYOND_DOUBLES: Final = Decimal(10**309)
_MAX_NUMBER_CHARACTERS: Final = 400
# Maximum length of the filter text that an error quotes.
_SHOWN_CHARACTERS: Final = 200


def parse_filter(text: str) -> Predicate:
    """Parse the text of a WHERE clause, without the word WHERE."""
    if len(text) > _MAX_CHARACTERS:
        hint = "filter on fewer values, or join with a table of them in an engine"
        raise _error(text, 0, f"{len(text):,} characters, and a filter has at most {_MAX_CHARACTERS:,}", hint)
    reader = _FilterReader(text)
    predicate = reader.disjunction(0)
    if reader.current.kind != END:
        raise reader.refusal(f"unexpected {reader.current}", "end the text here, or join conditions with AND or OR")
    return predicate


class _FilterReader(TokenReader):
    """Parses a filter, left to right."""

    def __init__(self, text: str) -> None:
        super().__init__(text, "filter", _LEXER)

    def unknown(self, token: Token) -> InvalidFilterError:
        hint = "close the quote" if token.text in "'\"`" else "see the grammar of filters"
        return self.refusal(f"unexpected '{token.text}'", hint, at=token)

    def refusal(self, what: str, hint: str, *, at: Token | None = None) -> InvalidFilterError:
        """Return an error at a token (default: the current one)."""
        return _error(self.text, (at or self.current).start, what, hint)

    def disjunction(self, depth: int) -> Predicate:
        operands = [self._conjunction(depth)]
        while self.take_words("OR"):
            operands.append(self._conjunction(depth))
        return operands[0] if len(operands) == 1 else Or(operands=tuple(operands))

    def _conjunction(self, depth: int) -> Predicate:
        operands = [self._negation(depth)]
        while self.take_words("AND"):
            operands.append(self._negation(depth))
        return operands[0] if len(operands) == 1 else And(operands=tuple(operands))

    def _negation(self, depth: int) -> Predicate:
        token = self.current
        if depth > MAX_DEPTH:
            raise self.refusal(f"more than {MAX_DEPTH} levels of nesting", "flatten the condition", at=token)
        if self.take_words("NOT"):
            return Not(operand=self._negation(depth + 1))
        if self.take_sign("("):
            inner = self.disjunction(depth + 1)
            self._expect(")", "close the parenthesis that was opened at " + str(token.start + 1))
            return inner
        if token.word in {"TRUE", "FALSE"} and self.ahead(1).text not in _COMPARISONS:
            self.take()
            return TRUE if token.word == "TRUE" else FALSE
        return self._test()

    def _test(self) -> Predicate:
        token = self.current
        if not self._is_name(token):
            value = self._literal()
            operator = self._comparison()
            return Compare(column=self._name(), operator=MIRRORED[operator], value=value)
        name = self._name()
        if self.current.text in _COMPARISONS:
            operator = self._comparison()
            return self._compare_with_literal(name, operator)
        return self._worded_test(name)

    def _compare_with_literal(self, name: str, operator: Operator) -> Compare:
        token = self.current
        if self._is_name(token):
            hint = f"quote a text value: '{token.text}'" if token.kind == WORD else "text values are in single quotes"
            raise self.refusal("columns compare with values only, not with columns", hint, at=token)
        return Compare(column=name, operator=operator, value=self._literal())

    def _worded_test(self, name: str) -> Predicate:
        if self.take_words("IS"):
            negated = self.take_words("NOT")
            self._expect("NULL", "write IS NULL or IS NOT NULL")
            return IsNull(column=name, negated=negated)
        negated = self.take_words("NOT")
        token = self.current
        test: Predicate
        if self.take_words("IN"):
            test = In(column=name, values=self._list(), negated=negated)
        elif self.take_words("LIKE"):
            test = self._like(name, negated=negated)
        elif self.take_words("BETWEEN"):
            low = _unpadded(self._literal())
            self._expect("AND", "write BETWEEN low AND high")
            both = (
                Compare(column=name, operator=Operator.GE, value=low),
                Compare(column=name, operator=Operator.LE, value=_unpadded(self._literal())),
            )
            test = Not(operand=And(operands=both)) if negated else And(operands=both)
        elif negated:
            raise self.refusal(f"unexpected {token}", "after NOT comes IN, LIKE or BETWEEN", at=token)
        else:
            test = self._bare_column(name, token)
        return test

    def _bare_column(self, name: str, token: Token) -> Compare:
        """Read a boolean column used as a condition; only an end of the condition may follow."""
        if token.kind == END or token.text == ")" or token.word in {"AND", "OR"}:
            return Compare(column=name, operator=Operator.EQ, value=True)
        hint = "after a column comes =, <>, <, <=, >, >=, IN, BETWEEN, LIKE or IS NULL"
        raise self.refusal(f"unexpected {token}", hint, at=token)

    def _like(self, name: str, *, negated: bool) -> Predicate:
        token = self.current
        pattern = self._literal()
        if not isinstance(pattern, str):
            raise self.refusal("LIKE needs a text", "write LIKE 'abc%'", at=token)
        prefix, wildcards = split_pattern(pattern)
        if wildcards == "%":
            return StartsWith(column=name, prefix=prefix, negated=negated)
        if wildcards:
            hint = "only 'abc%' (a prefix) is supported; filter the rest after reading"
            raise self.refusal(f"LIKE pattern '{pattern}' is more than a prefix", hint, at=token)
        return Compare(column=name, operator=Operator.NE if negated else Operator.EQ, value=UnpaddedText(prefix))

    def _list(self) -> tuple[object, ...]:
        hint = "write IN (value, value, ...)"
        self._expect("(", hint)
        values = [self._literal()]
        while self.take_sign(","):
            values.append(self._literal())
        self._expect(")", hint)
        return tuple(map(_unpadded, values) if None in values else values)

    def _comparison(self) -> Operator:
        token = self.take()
        operator = _COMPARISONS.get(token.text)
        if operator is None:
            hint = "a value needs a comparison and a column, for example price > 5"
            raise self.refusal(f"expected a comparison, found {token}", hint, at=token)
        return operator

    def _name(self) -> str:
        token = self.take()
        if not self._is_name(token):
            hint = 'one side of a comparison must be a column; quote names that are keywords: `in` or "in"'
            raise self.refusal(f"expected a column, found {token}", hint, at=token)
        return token.content

    def _literal(self) -> object:
        token = self.take()
        if token.kind == TEXT:
            return unquoted(token.text)
        if token.kind == _TYPED:
            return _typed_literal(self.text, token)
        if token.kind == SIGN and token.text in {"-", "+"} and self.current.kind == NUMBER:
            number = self._number(self.take())
            if token.text == "+":
                return number
            # Negating a Decimal with a minus sign rounds to 28 digits; copy_negate does not.
            return number.copy_negate() if isinstance(number, Decimal) else -number
        if token.kind == NUMBER:
            return self._number(token)
        if token.word in _WORD_LITERALS:
            return _WORD_LITERALS[token.word]
        hint = (
            "values are 'text', 12.5, DATE '2024-01-31', TIMESTAMP '2024-01-31 10:00:00', X'00ff', TRUE, FALSE or NULL"
        )
        raise self.refusal(f"expected a value, found {token}", hint, at=token)

    def _number(self, token: Token) -> int | float | Decimal:
        """Parse a number with SQL's rules: digits are an integer, a point makes a decimal, an exponent a double."""
        text = token.text
        if len(text) > _MAX_NUMBER_CHARACTERS:
            what = f"a number of {len(text):,} digits, and there may be {_MAX_NUMBER_CHARACTERS}"
            raise self.refusal(what, "no type of a column holds as many", at=token)
        if text.isdigit():
            return int(text)
        if "e" not in text.lower():
            return Decimal(text)
        # Larger than any double: a value above all finite ones compares like the text; infinity would match infinite
        # values.
        return _BEYOND_DOUBLES if math.isinf(number := float(text)) else number

    def _is_name(self, token: Token) -> bool:
        return token.kind == QUOTED or (token.kind == WORD and token.word not in _KEYWORDS)

    def _expect(self, word: str, hint: str) -> None:
        """Advance past a keyword or a sign."""
        if self.current.word != word:
            expected = word if word.isalpha() else f"'{word}'"
            raise self.refusal(f"expected {expected}, found {self.current}", hint)
        self.take()


def _unpadded(value: object) -> object:
    return UnpaddedText(value) if isinstance(value, str) else value


_WORD_LITERALS: Final[dict[str, object]] = {"TRUE": True, "FALSE": False, "NULL": None}


def _double(text: str) -> float:
    number = float(text)
    return number or SignedZero(number)


_LITERALS: Final = {**TYPED_LITERALS, "DOUBLE": _double}


def _typed_literal(text: str, token: Token) -> object:
    keyword, _, rest = token.text.partition("'")
    keyword = keyword.strip().upper()
    try:
        return _LITERALS[keyword](rest[:-1].replace("''", "'"))
    except ValueError:
        hint = "write X'00ff', DATE '2024-01-31', TIME '10:00:00', TIMESTAMP '2024-01-31 10:00:00.123' or DOUBLE 'NaN'"
        raise _error(text, token.start, f"{token.text} is not a valid {keyword} value", hint) from None


def split_pattern(pattern: str) -> tuple[str, str]:
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
