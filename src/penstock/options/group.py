"""Option groups: frozen dataclasses in which ``option`` and ``family`` declare each field; the kinds of their values.

Exactly the texts that Paimon accepts are accepted, because the text is stored and other engines read it.

Source:
    Paimon ``api:options/MemorySize.java``, ``api:utils/TimeUtils.java``, ``api:options/OptionsUtils.java``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeAlias, TypeVar

from penstock.errors import InvalidOptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

KIB: Final = 1024
MIB: Final = 1024 * KIB
GIB: Final = 1024 * MIB
TIB: Final = 1024 * GIB
MAX_INT: Final = 2**31 - 1
MAX_LONG: Final = 2**63 - 1

_NUMBER_AND_UNIT: Final = re.compile(r"\s*([0-9]+)\s*(\S*)\s*")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_DECIMAL: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

_SIZE_UNITS: Final = {
    name: factor
    for names, factor in (
        (("", "b", "bytes"), 1),
        (("k", "kb", "kibibytes"), KIB),
        (("m", "mb", "mebibytes"), MIB),
        (("g", "gb", "gibibytes"), GIB),
        (("t", "tb", "tebibytes"), TIB),
    )
    for name in names
}

_MICROS: Final = 1_000
_MILLIS: Final = 1_000_000
_SECONDS: Final = 1_000 * _MILLIS
_DURATION_UNITS: Final = {
    name: nanos
    for names, nanos in (
        (("d", "day", "days"), 86_400 * _SECONDS),
        (("h", "hour", "hours"), 3_600 * _SECONDS),
        (("min", "m", "minute", "minutes"), 60 * _SECONDS),
        (("s", "sec", "secs", "second", "seconds"), _SECONDS),
        (("", "ms", "milli", "millis", "millisecond", "milliseconds"), _MILLIS),
        # Java accepts the micro sign; users may also type the Greek letter, which looks the same.
        (("\u00b5s", "\u03bcs", "micro", "micros", "microsecond", "microseconds"), _MICROS),
        (("ns", "nano", "nanos", "nanosecond", "nanoseconds"), 1),
    )
    for name in names
}


@dataclass(frozen=True, slots=True)
class ValueKind(Generic[T]):
    """One kind of option value; calling it parses a text.

    Attributes:
        name: name in the table of options: "size", "duration", ...
        decode: converts text to a value; raises ``ValueError`` with the text that follows "expected".
        encode: converts a value to text, for the table of options.
    """

    name: str
    decode: Callable[[str], T]
    encode: Callable[[T], str] = str

    def __call__(self, text: str) -> T:
        """Parse a text. Raises ``InvalidOptionError`` that says what was expected."""
        try:
            return self.decode(text)
        except ValueError as error:
            raise InvalidOptionError(f"'{text}': expected {error}") from error


def choice(enum: type[E], aliases: Mapping[str, E] | None = None) -> ValueKind[E]:
    """Return the kind for an enum, in any letter case; ``aliases`` are older spellings, in lower case."""
    members = {**{member.value.lower(): member for member in enum}, **(aliases or {})}
    one_of = "one of " + ", ".join(member.value for member in enum)

    def decode(text: str) -> E:
        if text.lower() not in members:
            raise ValueError(one_of)
        return members[text.lower()]

    return ValueKind(one_of, decode, lambda member: member.value)


def at_least(least: int, kind: ValueKind[int]) -> ValueKind[int]:
    """Return a kind with a minimum for numbers, sizes or durations; ``least`` is in the unit of the value."""

    def decode(text: str) -> int:
        value = kind.decode(text)
        if value < least:
            raise ValueError(f"{kind.encode(least)} or more")
        return value

    return ValueKind(kind.name, decode, kind.encode)


def _decode_bytes(text: str) -> int:
    value = _scaled(text, _SIZE_UNITS)
    if value is None or value > MAX_LONG:
        raise ValueError("a size such as '128 mb'")
    return value


def _decode_duration_ms(text: str) -> int:
    nanos = _scaled(text, _DURATION_UNITS)
    if nanos is None or nanos // _MILLIS > MAX_LONG:
        raise ValueError("a duration such as '10 s'")
    return nanos // _MILLIS


def _scaled(text: str, units: Mapping[str, int]) -> int | None:
    match = _NUMBER_AND_UNIT.fullmatch(text)
    if match is None or match[2].lower() not in units or int(match[1]) > MAX_LONG:
        return None
    return int(match[1]) * units[match[2].lower()]


def format_bytes(value: int) -> str:
    """Format a size in the largest unit that divides it."""
    if value == MAX_LONG:
        return "unlimited"
    for unit, factor in (("tb", TIB), ("gb", GIB), ("mb", MIB), ("kb", KIB)):
        if value and value % factor == 0:
            return f"{value // factor} {unit}"
    return f"{value} b"


def format_duration_ms(value: int) -> str:
    """Format a duration in the largest unit that divides it."""
    for unit, millis in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000)):
        if value and value % millis == 0:
            return f"{value // millis} {unit}"
    return f"{value} ms"


def _decode_bool(text: str) -> bool:
    match text.lower():
        case "true":
            return True
        case "false":
            return False
        case _:
            raise ValueError("true or false")


def _whole(text: str, limit: int) -> int:
    # int() alone would also accept "1_000", blanks and digits of other scripts.
    if not _INTEGER.fullmatch(text) or not -limit - 1 <= int(text) <= limit:
        raise ValueError("a whole number such as '8'")
    return int(text)


def _decode_millis(text: str) -> int:
    try:
        return _whole(text, MAX_LONG)
    except ValueError:
        raise ValueError("a time in ms since 1970-01-01 UTC, such as '1763683200000'") from None


def _decode_float(text: str) -> float:
    if not _DECIMAL.fullmatch(text):
        raise ValueError("a number such as '0.7'")
    return float(text)


def _decode_fraction(text: str) -> float:
    if not _DECIMAL.fullmatch(text) or not 0 < float(text) < 1:
        raise ValueError("a number between 0 and 1, such as '0.01'")
    return float(text)


def _decode_names(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


parse_bytes: Final = ValueKind("size", _decode_bytes, format_bytes)
"""Bytes from ``128 mb``, ``64kb``, ``1024``: units b, k, kb, m, mb, g, gb, t, tb in any case, powers of 1,024."""

parse_duration_ms: Final = ValueKind("duration", _decode_duration_ms, format_duration_ms)
"""Milliseconds, rounded down, from ``10 s``, ``1 h``, ``2 d``, ``500`` (ms); units from ns to d in any case."""

parse_bool: Final = ValueKind("boolean", _decode_bool, lambda value: str(value).lower())
"""``true`` or ``false`` in any case."""

parse_int: Final = ValueKind("integer", lambda text: _whole(text, MAX_INT))
"""A 32-bit integer."""

parse_long: Final = ValueKind("integer", lambda text: _whole(text, MAX_LONG))
"""A 64-bit integer."""

parse_millis: Final = ValueKind("integer", _decode_millis)
"""A point in time, or an event time, in ms since 1970-01-01; negative values are allowed."""

parse_float: Final = ValueKind("number", _decode_float)
"""A decimal number."""

parse_fraction: Final = ValueKind("number", _decode_fraction)
"""A number between 0 and 1, without these."""

parse_text: Final[ValueKind[str]] = ValueKind("text", str)
"""Any text, unchanged."""

parse_lower: Final = ValueKind("text", lambda text: text.strip().lower())
"""A name whose case does not matter, in lower case."""

parse_names: Final[ValueKind[tuple[str, ...]]] = ValueKind("names", _decode_names, ",".join)
"""Column names separated by commas, with blanks kept as Paimon keeps them; the empty text is an empty list."""


D = TypeVar("D")

_OPTION: Final = "option"


@dataclass(frozen=True, slots=True)
class Key:
    """One key.

    Attributes:
        parser: parser of the text; an enum accepts its values in any letter case.
        meaning: one line for the table of options.
        fallbacks: older names, tried in order if the key itself is not set.
        honoured: whether Penstock acts on it today.
    """

    name: str
    parser: ValueKind[Any] | type[StrEnum]
    meaning: str
    fallbacks: tuple[str, ...] = ()
    honoured: bool = True

    @property
    def kind(self) -> ValueKind[Any]:
        """The kind of value, which parses the text."""
        return choice(self.parser) if isinstance(self.parser, type) else self.parser

    def load(self, options: Mapping[str, str], default: object, table: str | None) -> object:
        """Return the value of the first name that is set, else the default."""
        for name in (self.name, *self.fallbacks):
            if name in options:
                return _parsed(self.kind, name, options[name], table)
        return default


@dataclass(frozen=True, slots=True)
class Family:
    """Keys with a free part: the value is a tuple of (free part, parsed value), in the order of the options."""

    prefix: str
    suffix: str
    parser: ValueKind[Any] | type[StrEnum]
    meaning: str
    honoured: bool = True

    @property
    def name(self) -> str:
        """The pattern of the keys."""
        return f"{self.prefix}*{self.suffix}"

    @property
    def kind(self) -> ValueKind[Any]:
        """The kind of each value, which parses the text."""
        return choice(self.parser) if isinstance(self.parser, type) else self.parser

    def load(self, options: Mapping[str, str], default: object, table: str | None) -> object:
        """Return all pairs that are set, else the default."""
        pairs = tuple(
            (name[len(self.prefix) : len(name) - len(self.suffix)], _parsed(self.kind, name, value, table))
            for name, value in options.items()
            if name.startswith(self.prefix)
            and name.endswith(self.suffix)
            and len(name) > len(self.prefix) + len(self.suffix)
        )
        return pairs or default


Option: TypeAlias = Key | Family


def option(  # noqa: PLR0913 - the columns of the table of options
    name: str,
    kind: ValueKind[T] | type[T],
    default: D,
    meaning: str,
    fallbacks: tuple[str, ...] = (),
    *,
    honoured: bool = True,
    is_secret: bool = False,
) -> T | D:
    """Declare a field of a group whose value stands under one key; arguments as in ``Key``.

    Args:
        is_secret: leave the value out of the group's text.
    """
    key = Key(name, kind, meaning, fallbacks, honoured)  # type: ignore[arg-type] # a type is an enum
    declared: T | D = field(default=default, repr=not is_secret, metadata={_OPTION: key})
    return declared


def family(
    prefix: str,
    suffix: str,
    kind: ValueKind[T] | type[T],
    meaning: str,
    *,
    honoured: bool = True,
    is_secret: bool = False,
) -> tuple[tuple[str, T], ...]:
    """Declare a field of a group whose values stand under keys with a free part; see ``Family``. None by default."""
    keys = Family(prefix, suffix, kind, meaning, honoured)  # type: ignore[arg-type] # as above
    declared: tuple[tuple[str, T], ...] = field(default=(), repr=not is_secret, metadata={_OPTION: keys})
    return declared


@dataclass(frozen=True, slots=True)
class OptionField:
    """A field of a group, with its option and default."""

    name: str
    option: Option
    default: object


class OptionGroup:
    """Base class of option groups: frozen dataclasses of declared fields, all with defaults."""

    __slots__ = ()

    @classmethod
    def parse(cls, *options: Mapping[str, str | None], table: str | None = None) -> Self:
        """Parse the keys of the group.

        Args:
            options: mappings of options; later ones take precedence, and None removes a value of an earlier one.
            table: table name for messages.
        """
        merged = {name: value for each in options for name, value in each.items()}
        given = {name: value for name, value in merged.items() if value is not None}
        return cls(**{each.name: each.option.load(given, each.default, table) for each in option_fields(cls)})


# Not functools.cache: mypy does not accept a class as a hashable argument.
_FIELDS: Final[dict[type[OptionGroup], tuple[OptionField, ...]]] = {}


def option_fields(group: type[OptionGroup]) -> tuple[OptionField, ...]:
    """Return the fields of a group in order."""
    if group not in _FIELDS:
        # mypy does not know that every group is a dataclass.
        _FIELDS[group] = tuple(OptionField(each.name, each.metadata[_OPTION], each.default) for each in fields(group))  # type: ignore[arg-type]
    return _FIELDS[group]


def _parsed(kind: ValueKind[Any], name: str, text: str, table: str | None) -> object:
    try:
        return kind.decode(text)
    except ValueError as error:
        of_table = f"table {table}: " if table else ""
        raise InvalidOptionError(f"{of_table}option '{name}' = '{text}': expected {error}") from error
