"""All keys together: what is known, what looks misspelt, and the table of options for the documentation."""

from __future__ import annotations

import difflib
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.errors import OptionWarning
from penstock.options.compact import CompactOptions, SortOptions
from penstock.options.elsewhere import DOCUMENTED, OTHERS, PREFIXES
from penstock.options.group import Key, OptionField, OptionGroup, option_fields
from penstock.options.layout import BucketOptions, FormatOptions, LayoutOptions, StatsOptions
from penstock.options.retain import PartitionExpireOptions, RetentionOptions, TagOptions
from penstock.options.scan import ReadOptions
from penstock.options.stream import ConsumerOptions, StreamOptions, WatermarkOptions
from penstock.options.write import CommitOptions, ManifestOptions, WriteOptions

if TYPE_CHECKING:
    from collections.abc import Iterable

GROUPS: Final[dict[str, type[OptionGroup]]] = {
    "layout": LayoutOptions,
    "buckets": BucketOptions,
    "format": FormatOptions,
    "statistics": StatsOptions,
    "write": WriteOptions,
    "commit": CommitOptions,
    "manifests": ManifestOptions,
    "read": ReadOptions,
    "stream": StreamOptions,
    "consumer": ConsumerOptions,
    "watermark": WatermarkOptions,
    "compaction": CompactOptions,
    "sort": SortOptions,
    "snapshots": RetentionOptions,
    "partitions": PartitionExpireOptions,
    "tags": TagOptions,
}
"""Every group, in the order of the documentation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionRow:
    """One row of the table of options.

    Attributes:
        key: or the pattern of a family, with ``*`` for the free part.
        default: as a text that the key takes; empty when unset is a state of its own.
        honoured: whether Penstock acts on it today.
    """

    key: str
    type: str
    default: str
    group: str
    meaning: str
    honoured: bool


def describe_options() -> tuple[OptionRow, ...]:
    """List every documented option once, group by group; a key of two groups under the first."""
    rows: dict[str, OptionRow] = {}
    for group, options in GROUPS.items():
        for field in option_fields(options):
            rows.setdefault(field.option.name, _row(group, field))
    for known in DOCUMENTED:
        rows.setdefault(
            known.name,
            OptionRow(
                key=known.name,
                type=known.type,
                default=known.default,
                group=known.group,
                meaning=known.meaning,
                honoured=False,
            ),
        )
    return tuple(rows.values())


def check_keys(options: Iterable[str], table: str, *, stacklevel: int = 2) -> None:
    """Warn with ``OptionWarning`` of each key that nobody knows, naming the nearest that somebody does.

    Nothing is refused: other engines may know it.

    Args:
        options: keys, or a mapping by key.
        stacklevel: of ``warnings.warn``; 2 points at the caller, 3 at the caller's caller.
    """
    for key in options:
        if not is_known(key):
            near = nearest_key(key)
            hint = f"did you mean '{near}'?" if near else "it has no effect here"
            warnings.warn(f"table {table}: option '{key}' is not known: {hint}", OptionWarning, stacklevel=stacklevel)


def is_known(key: str) -> bool:
    """Whether the key, or a family that it belongs to, is known here or to another engine."""
    return key in KNOWN_KEYS or key.startswith(PREFIXES)


def nearest_key(key: str) -> str | None:
    """The known key that looks most like this one; None when none does."""
    folded = {known.lower(): known for known in sorted(KNOWN_KEYS - OTHERS)}
    found = difflib.get_close_matches(key.lower().replace("_", "-"), folded, n=1)
    return folded[found[0]] if found else None


def _row(group: str, field: OptionField) -> OptionRow:
    unset = field.default in (None, ())
    return OptionRow(
        key=field.option.name,
        type=field.option.kind.name,
        default="" if unset else field.option.kind.encode(field.default),
        group=group,
        meaning=field.option.meaning,
        honoured=field.option.honoured,
    )


def _known_keys() -> frozenset[str]:
    keys = set(OTHERS) | {known.name for known in DOCUMENTED}
    for options in GROUPS.values():
        for field in option_fields(options):
            if isinstance(field.option, Key):
                keys |= {field.option.name, *field.option.fallbacks}
    return frozenset(keys)


KNOWN_KEYS: Final = _known_keys()
"""Every key without a free part, older names included."""
