"""All keys together: what is known, what looks misspelt, and the table of options for the documentation."""

from __future__ import annotations

import difflib
import warnings
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from penstock.errors import OptionWarning
from penstock.options.compact import CompactOptions, SortOptions
from penstock.options.done import MarkDoneOptions
from penstock.options.elsewhere import DOCUMENTED, OTHERS, PREFIXES
from penstock.options.group import Key, OptionField, OptionGroup, option_fields
from penstock.options.layout import BucketOptions, FormatOptions, LayoutOptions, StatsOptions
from penstock.options.metadata import MetadataOptions
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
    "limits of metadata": MetadataOptions,
    "read": ReadOptions,
    "stream": StreamOptions,
    "consumer": ConsumerOptions,
    "watermark": WatermarkOptions,
    "compaction": CompactOptions,
    "sort": SortOptions,
    "snapshots": RetentionOptions,
    "partitions": PartitionExpireOptions,
    "partitions that are done": MarkDoneOptions,
    "tags": TagOptions,
}
"""Every group, in the order of the documentation."""


class Side(StrEnum):
    """A side of a stream, by its word in messages."""

    SOURCE = "source"
    SINK = "sink"


_GROUPS_OF_SIDES: Final = {
    Side.SOURCE: (ReadOptions, StreamOptions, ConsumerOptions),
    Side.SINK: (StatsOptions, WriteOptions, CommitOptions, ManifestOptions),
}
# Of groups that speak to both, and those that are not of their group's side.
_KEYS_OF_SIDES: Final = {
    "read.batch-size": Side.SOURCE,
    "write.batch-size": Side.SINK,
    "write.batch-memory": Side.SINK,
    # Who commits looks for silent consumers.
    "consumer.expiration-time": Side.SINK,
    "scan.watermark.emit.strategy": Side.SOURCE,
    "scan.watermark.idle-timeout": Side.SOURCE,
    "scan.watermark.alignment.group": Side.SOURCE,
    "scan.watermark.alignment.max-drift": Side.SOURCE,
    "scan.watermark.alignment.update-interval": Side.SOURCE,
    "penstock.scan.watermark.alignment.path": Side.SOURCE,
    "penstock.read.watermark": Side.SOURCE,
    "snapshot.watermark-idle-timeout": Side.SINK,
    "end-input.watermark": Side.SINK,
    "penstock.sink.watermark-idle-timeout": Side.SINK,
}


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


def check_side(options: Iterable[str], table: str, side: Side, *, stacklevel: int = 2) -> None:
    """Warn with ``OptionWarning`` of each key that only the other side of a stream acts on.

    Args:
        options: of this use, keys or a mapping by key. Those stored with the table speak to both sides.
        side: of the stream that they were given to.
        stacklevel: as for ``check_keys``.
    """
    for key in options:
        theirs = _SIDES.get(key)
        if theirs is not None and theirs is not side:
            warnings.warn(
                f"table {table}: option '{key}' is one of the {theirs} and has no effect on a {side}: give it to the "
                "query that " + ("reads" if theirs is Side.SOURCE else "writes") + " the table",
                OptionWarning,
                stacklevel=stacklevel,
            )


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


def _sides() -> dict[str, Side]:
    sides: dict[str, Side] = {}
    for side, groups in _GROUPS_OF_SIDES.items():
        for group in groups:
            for field in option_fields(group):
                if isinstance(field.option, Key):
                    sides |= dict.fromkeys((field.option.name, *field.option.fallbacks), side)
    return sides | _KEYS_OF_SIDES


_SIDES: Final = _sides()
KNOWN_KEYS: Final = _known_keys()
"""Every key without a free part, older names included."""
