"""Option groups: frozen dataclasses in which each field is annotated with its key."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, get_type_hints

from penstock.errors import InvalidOptionError
from penstock.options.values import ValueKind, choice

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from enum import StrEnum


class Option(Protocol):
    """The annotation of a field: how to find its value among options, and its documentation."""

    @property
    def name(self) -> str:
        """The key, or the pattern of a family of keys."""
        ...

    @property
    def meaning(self) -> str:
        """One line for the table of options."""
        ...

    @property
    def honoured(self) -> bool:
        """Whether Penstock acts on it today."""
        ...

    @property
    def kind(self) -> ValueKind[Any]:
        """The kind of value, which parses the text."""
        ...

    def load(self, options: Mapping[str, str], default: object, table: str | None) -> object:
        """Find and parse the value. Raises ``InvalidOptionError``."""
        ...


@dataclass(frozen=True, slots=True)
class Key:
    """One key.

    Attributes:
        parser: parser of the text; an enum accepts its values in any letter case.
        fallbacks: older names, tried in order if the key itself is not set.
    """

    name: str
    parser: ValueKind[Any] | type[StrEnum]
    meaning: str
    fallbacks: tuple[str, ...] = ()
    honoured: bool = False

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
    honoured: bool = False

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


@dataclass(frozen=True, slots=True)
class OptionField:
    """A field of a group, with its option and default."""

    name: str
    option: Option
    default: object


class OptionGroup:
    """Base class of option groups: frozen dataclasses of annotated fields, all with defaults."""

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
        return cls(**{field.name: field.option.load(given, field.default, table) for field in option_fields(cls)})


# Not functools.cache: mypy does not accept a class as a hashable argument.
_FIELDS: Final[dict[type[OptionGroup], tuple[OptionField, ...]]] = {}


def option_fields(group: type[OptionGroup]) -> tuple[OptionField, ...]:
    """Return the fields of a group in order."""
    if group not in _FIELDS:
        _FIELDS[group] = tuple(_inspect(group))
    return _FIELDS[group]


def _inspect(group: type[OptionGroup]) -> Iterator[OptionField]:
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):  # type: ignore[arg-type] # every group is a dataclass
        default = field.default_factory() if field.default_factory is not MISSING else field.default
        yield OptionField(field.name, hints[field.name].__metadata__[0], default)


def _parsed(kind: ValueKind[Any], name: str, text: str, table: str | None) -> object:
    try:
        return kind.decode(text)
    except ValueError as error:
        of_table = f"table {table}: " if table else ""
        raise InvalidOptionError(f"{of_table}option '{name}' = '{text}': expected {error}") from error
