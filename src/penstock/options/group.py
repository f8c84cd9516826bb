"""Option groups: frozen dataclasses in which ``option`` and ``family`` declare each field with its key."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, TypeVar

from penstock.errors import InvalidOptionError
from penstock.options.values import ValueKind, choice

if TYPE_CHECKING:
    from collections.abc import Mapping
    from enum import StrEnum

T = TypeVar("T")
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

        Raises:
            InvalidOptionError: a value is not valid for its key; keys of other groups are not checked.
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
