"""Options that say what a catalog is trusted with; they are set by the user, never by a table or a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from penstock.options.group import OptionGroup, ValueKind, option, parse_bool

PREFIX: Final = "penstock.external-paths."
"""Prefix of the keys that have an effect only as options of a catalog or of one use."""

VIEWS_KEY: Final = "penstock.views"
_OWN: Final = "penstock."


def is_of_user(key: str) -> bool:
    """Whether only the user of a catalog sets an option, and no answer of its server.

    All keys of Penstock's own, also those of later versions: they permit access to files, raise limits, or turn off
    flushing to disk, and servers of other projects have no use for them.
    """
    return key.startswith(_OWN)


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

    readable: tuple[str, ...] = option(
        f"{PREFIX}read",
        _PLACES,
        (),
        "directories outside of the table whose data files may be read; counts only when given to a catalog or "
        "for one use",
    )
    deletable: tuple[str, ...] = option(
        f"{PREFIX}delete",
        _PLACES,
        (),
        "directories outside of the table from which expiration may delete; counts only when given to a catalog "
        "or for one use",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewOptions(OptionGroup):
    """Whether views of a catalog are read."""

    allowed: bool = option(
        VIEWS_KEY,
        parse_bool,
        True,
        "whether the views of a catalog can be read; a view runs SQL of whoever wrote it in the reader's session. "
        "Counts only when given to a catalog",
    )
