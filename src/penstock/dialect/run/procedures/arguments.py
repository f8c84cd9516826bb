"""Parse the arguments of procedures: by position or by name, each with the type that its procedure expects."""

from __future__ import annotations

from datetime import datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from penstock.errors import InvalidOptionError
from penstock.format.text.partitions import PathText

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from penstock.dialect.parse.statements import Argument

_MAX_LONG: Final = 2**63 - 1
# Maximal length of a value in an error message.
_SHOWN: Final = 40


class Arguments:
    """The arguments of one call.

    Args:
        parameters: the parameters of the procedure, in positional order.
        aliases: further names of parameters.

    Raises:
        InvalidOptionError: there are too many arguments, or a name is unknown or given twice.
    """

    def __init__(
        self, procedure: str, parameters: Sequence[str], aliases: Mapping[str, str], given: Iterable[Argument]
    ) -> None:
        self._procedure = procedure
        self._values: dict[str, object] = {}
        for place, argument in enumerate(given):
            if argument.name is None and place >= len(parameters):
                raise self.error(f"takes at most {len(parameters)} arguments: {', '.join(parameters)}")
            name = parameters[place] if argument.name is None else argument.name
            name = aliases.get(name, name)
            if name not in parameters:
                near = get_close_matches(name, parameters, n=1)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(parameters)}"
                raise self.error(f"has no argument '{name}'; {hint}")
            if name in self._values:
                raise self.error(f"was given '{name}' twice")
            self._values[name] = argument.value

    def error(self, problem: str) -> InvalidOptionError:
        """Return an error about this call."""
        return InvalidOptionError(f"procedure sys.{self._procedure} {problem}")

    def text(self, name: str) -> str | None:
        """Return a text; None if it is missing or empty, as in Flink."""
        value = self._values.get(name)
        return None if value is None or value == "" else str(value)

    def is_number(self, name: str) -> bool:
        """Return whether a number was given, not a text."""
        return isinstance(self._values.get(name), int)

    def needed(self, name: str) -> str:
        """Return a required text. Raises ``InvalidOptionError`` if it is missing."""
        value = self.text(name)
        if value is None:
            raise self.error(f"needs the argument {name}")
        return value

    def integer(self, name: str) -> int | None:
        """Return a number, given as a number or as text. Raises ``InvalidOptionError``."""
        text = self.text(name)
        if text is None:
            return None
        try:
            number = int(text)
        except ValueError:
            raise self.error(f"expects a whole number for {name}, found '{text[:_SHOWN]}'") from None
        if abs(number) > _MAX_LONG:
            raise self.error(f"expects a number of at most 64 bits for {name}, found {text[:_SHOWN]}")
        return number

    def needed_integer(self, name: str) -> int:
        """Return a required number. Raises ``InvalidOptionError`` if it is missing."""
        number = self.integer(name)
        if number is None:
            raise self.error(f"needs the argument {name}")
        return number

    def flag(self, name: str, *, default: bool) -> bool:
        """Return a boolean. Raises ``InvalidOptionError``."""
        text = self.text(name)
        if text is None:
            return default
        if text.lower() not in {"true", "false"}:
            raise self.error(f"expects TRUE or FALSE for {name}, found '{text}'")
        return text.lower() == "true"

    def time(self, name: str) -> datetime | None:
        """Return a local time in the time zone of this machine. Raises ``InvalidOptionError``."""
        text = self.text(name)
        if text is None:
            return None
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            raise self.error(f"expects a time such as '2026-01-01 00:00:00' for {name}, found '{text}'") from None

    def pairs(self, name: str, separator: str = ",") -> dict[str, str] | None:
        """Return ``k=v,k=v`` as a mapping. Raises ``InvalidOptionError``."""
        text = self.text(name)
        return None if text is None else self._pairs(name, text, separator)

    def partitions(self, name: str) -> list[dict[str, PathText]] | None:
        """Return ``k=v,k2=v2;k=v3`` as partition specs. Raises ``InvalidOptionError``."""
        text = self.text(name)
        if text is None:
            return None
        parts = (self._pairs(name, part, ",") for part in text.removesuffix(";").split(";"))
        return [{key: PathText(value) for key, value in each.items()} for each in parts]

    def names(self, name: str) -> list[str] | None:
        """Return a list of names from text separated by commas."""
        text = self.text(name)
        return None if text is None else [part.strip() for part in text.split(",")]

    def _pairs(self, name: str, text: str, separator: str) -> dict[str, str]:
        pairs: dict[str, str] = {}
        for part in text.split(separator):
            key, equals, value = part.partition("=")
            if not equals:
                raise self.error(f"expects key=value for {name}, found '{part.strip()}'")
            pairs[key.strip()] = value.strip()
        return pairs
