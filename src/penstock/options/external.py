"""Options that allow files outside of a table's directory; they are set by the user, never by the table itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from penstock.options.group import Key, OptionGroup
from penstock.options.values import ValueKind

PREFIX: Final = "penstock.external-paths."
"""Prefix of the keys that have an effect only as options of a catalog or of one use."""


def _decode_places(text: str) -> tuple[str, ...]:
    return tuple(place.strip() for place in text.split(",") if place.strip())


_PLACES: Final = ValueKind("places", _decode_places, ",".join)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalPathOptions(OptionGroup):
    """Directories that a table's external paths may be in.

    Attributes:
        readable: paths or URIs of directories; data files in them may be read.
        deletable: paths or URIs of directories; expiration may delete files in them.
    """

    readable: Annotated[
        tuple[str, ...],
        Key(
            f"{PREFIX}read",
            _PLACES,
            "directories outside of the table whose data files may be read; counts only when given to a catalog or "
            "for one use",
            honoured=True,
        ),
    ] = ()
    deletable: Annotated[
        tuple[str, ...],
        Key(
            f"{PREFIX}delete",
            _PLACES,
            "directories outside of the table from which expiration may delete; counts only when given to a catalog "
            "or for one use",
            honoured=True,
        ),
    ] = ()
