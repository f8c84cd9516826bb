"""JSON metadata files: read with type checks, write with the line breaks of Java's printer.

Source:
    Jackson's default pretty printer, as used by Paimon ``api:utils/JsonSerdeUtil.java``.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

from penstock.errors import FormatError, UnsupportedFeatureError
from penstock.format.text.names import check_file_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Json: TypeAlias = Any
"""A parsed JSON value of any type, not checked yet."""

# Java's largest files are schemas: 10,000 columns take 2 MB. Brackets alone take 60 times their size when parsed.
_MOST_BYTES: Final = 32 << 20
# A schema nests about three levels for each ROW in a ROW. Code that traverses a value takes a few frames per level.
_MOST_LEVELS: Final = 300
_MOST_UNKNOWN_LEVELS: Final = 100
_CURE: Final = "restore the file from a copy, or roll back to a state without it"
_LONG_MIN: Final = -(2**63)
_LONG_MAX: Final = 2**63 - 1


def parse_json(text: str) -> Json:
    """Parse one JSON value; fractions become ``Decimal``, so that no digit is lost."""
    return json.loads(text, parse_float=Decimal, parse_constant=_refuse_constant)


def load_json(data: bytes) -> Json:
    """Parse the JSON value of a file or of a server's answer."""
    try:
        value = parse_json(data.decode())
    except RecursionError:
        pass
    else:
        if not _is_deeper(value, _MOST_LEVELS):
            return value
    raise ValueError(f"it nests values more than {_MOST_LEVELS} levels deep")


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def format_json(value: Json, *, pretty: bool = False) -> str:
    """Format a value of ``parse_json``; ``pretty`` breaks lines like Java."""
    return _format(value, "\n" if pretty else "")


def _format(value: Json, newline: str) -> str:
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dict):
        return _format_object(value, newline)
    if isinstance(value, list | tuple):
        items = ", ".join(_format(item, newline) for item in value)
        return f"[ {items} ]" if items else "[ ]"
    return json.dumps(value, ensure_ascii=False)


def _format_object(value: Mapping[str, Json], newline: str) -> str:
    if not value:
        return "{ }"
    deeper = newline + "  " if newline else ""
    members = (f"{json.dumps(key, ensure_ascii=False)} : {_format(member, deeper)}" for key, member in value.items())
    separator = f",{deeper}" if newline else ", "
    return f"{{{deeper or ' '}{separator.join(members)}{newline or ' '}}}"


def encode_json(value: Json) -> bytes:
    """Encode a metadata file: UTF-8, pretty, without a final line break."""
    # Half a surrogate pair has no UTF-8 form; it is written as a JSON escape.
    return format_json(value, pretty=True).encode("utf-8", "backslashreplace")


class JsonObject:
    """The JSON object of one metadata file; every getter checks presence and type.

    Args:
        what: the kind of file for messages, such as "schema file".
        path: only for messages.
        cure: for messages, what to do about a damaged one.
    """

    def __init__(self, values: Mapping[str, Json], what: str, path: str, cure: str = _CURE) -> None:
        self.values = values
        self._name = f"{what} '{path}'"
        self._cure = cure

    def error(self, problem: str) -> FormatError:
        """Return an error that names this file."""
        return FormatError(f"{self._name} {problem}; {self._cure}")

    def optional_integer(self, key: str) -> int | None:
        """Return a 64-bit integer; None if it is absent or null."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not _LONG_MIN <= value <= _LONG_MAX:
            raise self.error(f"has {value!r} under '{key}' where a whole number belongs")
        return value

    def integer(self, key: str) -> int:
        """Return a 64-bit integer."""
        value = self.optional_integer(key)
        if value is None:
            raise self.error(f"lacks the key '{key}'")
        return value

    def version(self, *, absent: int, newest: int) -> int:
        """Return the version of the file's format.

        Args:
            absent: the version of a file that has no number.
            newest: the newest version that this release reads.
        """
        version = self.optional_integer("version")
        if version is not None and version > newest:
            raise UnsupportedFeatureError(
                f"{self._name} has version {version} of the format, and this release of Penstock reads versions up to "
                f"{newest}: update Penstock, or use the engine that wrote the file"
            )
        return absent if version is None else version

    def optional_text(self, key: str) -> str | None:
        """Return a string; None if it is absent or null."""
        value = self.values.get(key)
        if not isinstance(value, str | None):
            raise self.error(f"has {value!r} under '{key}' where a string belongs")
        return value

    def text(self, key: str) -> str:
        """Return a string."""
        value = self.optional_text(key)
        if value is None:
            raise self.error(f"lacks the key '{key}'")
        return value

    def optional_file_name(self, key: str) -> str | None:
        """Return a file name without a directory; None if it is absent or null."""
        name = self.optional_text(key)
        try:
            return None if name is None else check_file_name(name)
        except ValueError as error:
            raise self.error(f"{error}, under '{key}'") from error

    def file_name(self, key: str) -> str:
        """Return a file name without a directory."""
        name = self.optional_file_name(key)
        if name is None:
            raise self.error(f"lacks the key '{key}'")
        return name

    def items(self, key: str) -> list[Json]:
        """Return a list of unchecked values."""
        value = self.values.get(key)
        if not isinstance(value, list):
            raise self.error(f"lacks the list '{key}'" if value is None else f"has no list under '{key}'")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of strings."""
        values = self.items(key)
        if not all(isinstance(value, str) for value in values):
            raise self.error(f"has something other than strings in the list '{key}'")
        return tuple(values)

    def text_pairs(self, key: str) -> tuple[tuple[str, str], ...]:
        """Return an object with string values, in file order; () if it is absent or null.

        Numbers and booleans are returned as their JSON text, as Java's parser does; nulls are left out.
        """
        value = self.values.get(key)
        if value is None:
            return ()
        if not isinstance(value, dict):
            raise self.error(f"has no object under '{key}'")
        return tuple((name, self._scalar_text(key, member)) for name, member in value.items() if member is not None)

    def _scalar_text(self, key: str, value: Json) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, dict | list):
            raise self.error(f"has {value!r} in the object '{key}' where a string belongs")
        return format_json(value)

    def others(self, known: Iterable[str]) -> tuple[tuple[str, str], ...]:
        """Return the entries with keys other than ``known``, as (key, JSON text), in file order."""
        known = frozenset(known)
        if any(_is_deeper(value, _MOST_UNKNOWN_LEVELS) for key, value in self.values.items() if key not in known):
            raise self.error(f"nests values under an unknown key more than {_MOST_UNKNOWN_LEVELS} levels deep")
        return tuple((key, format_json(value)) for key, value in self.values.items() if key not in known)


def decode_json(data: bytes, what: str, path: str, cure: str = _CURE) -> JsonObject:
    """Decode the bytes of a metadata file; the arguments are those of ``JsonObject``."""
    unknown = JsonObject({}, what, path, cure)
    if len(data) > _MOST_BYTES:
        raise unknown.error(f"has {len(data)} bytes, which is more than any")
    if not data.strip():
        raise unknown.error(f"is empty ({len(data)} bytes): its write did not finish")
    try:
        value = load_json(data)
    except ValueError as error:
        raise unknown.error(f"is not JSON, or was cut off ({len(data)} bytes: {error})") from error
    if not isinstance(value, dict):
        raise unknown.error("holds JSON, but no object")
    return JsonObject(value, what, path, cure)


def _is_deeper(value: Json, levels: int) -> bool:
    """Whether lists and objects nest deeper than ``levels``; iterative, so no depth exhausts the stack."""
    layer = [value]
    for _ in range(levels + 1):
        layer = [part for each in layer for part in _parts(each)]
        if not layer:
            return False
    return True


def _parts(value: Json) -> Iterable[Json]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
