"""All known keys, their status (Penstock acts on it, ignores it with a warning, or refuses it), and misspelt ones.

design/0021 has the reasons.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from penstock.options.compact import ClusteringOptions, CompactOptions, SortOptions
from penstock.options.external import ExternalPathOptions, ViewOptions
from penstock.options.group import Family, Key, OptionField, OptionGroup, option_fields
from penstock.options.layout import BucketOptions, FileIndexOptions, FormatOptions, LayoutOptions, StatsOptions
from penstock.options.metadata import MetadataOptions
from penstock.options.object_store import ObjectStoreOptions
from penstock.options.retain import MarkDoneOptions, PartitionExpireOptions, RetentionOptions, TagOptions
from penstock.options.scan import ReadOptions
from penstock.options.status.documented import DOCUMENTED, FIELD_SUFFIXES, HONOURED, HONOURED_PREFIXES, OTHERS, PREFIXES
from penstock.options.status.features import feature_of
from penstock.options.status.refused import DEFAULT_VALUE, DEFAULT_VALUE_REFUSAL, REFUSED, Refusal
from penstock.options.stream import ConsumerOptions, StreamOptions, WatermarkOptions
from penstock.options.write import CommitOptions, DeletionVectorOptions, ManifestOptions, WriteOptions

GROUPS: Final[dict[str, type[OptionGroup]]] = {
    "layout": LayoutOptions,
    "external paths": ExternalPathOptions,
    "views (as an option of a catalog)": ViewOptions,
    "object stores (as options of a catalog; those of a table do nothing)": ObjectStoreOptions,
    "buckets": BucketOptions,
    "format": FormatOptions,
    "statistics": StatsOptions,
    "file indexes": FileIndexOptions,
    "write": WriteOptions,
    "commit": CommitOptions,
    "deletion vectors": DeletionVectorOptions,
    "manifests": ManifestOptions,
    "limits of metadata": MetadataOptions,
    "read": ReadOptions,
    "stream": StreamOptions,
    "consumer": ConsumerOptions,
    "watermark": WatermarkOptions,
    "compaction": CompactOptions,
    "sort": SortOptions,
    "incremental clustering": ClusteringOptions,
    "snapshots": RetentionOptions,
    "partitions": PartitionExpireOptions,
    "partitions that are done": MarkDoneOptions,
    "tags": TagOptions,
}
"""All groups, in the order of the documentation."""


class Status(StrEnum):
    """The status of a key, by its name in the documentation."""

    HONOURED = "honoured"
    IGNORED = "ignored"
    REFUSED = "refused"


def status_of(key: str) -> Status | None:
    """Return the status of a key; None for an unknown key."""
    if refusal_of(key) is not None:
        return Status.REFUSED
    if key in _HONOURED or key.startswith(HONOURED_PREFIXES) or any(_is_of(key, family) for family in _FAMILIES):
        return Status.HONOURED
    return Status.IGNORED if is_known(key) else None


def refusal_of(key: str) -> Refusal | None:
    """Return why a key is refused; None if it is not refused."""
    start, end = DEFAULT_VALUE
    if key.startswith(start) and key.endswith(end):
        return DEFAULT_VALUE_REFUSAL
    refusal, feature = REFUSED.get(key), feature_of(key)
    if refusal is None and feature is not None and key not in _HONOURED:
        return Refusal(cure=feature.reason, inert=feature.inert, is_own=True)
    return refusal


def asks_for_nothing(key: str, value: str) -> bool:
    """Whether it is safe to ignore a key with this value, because the value is the default."""
    refusal = refusal_of(key)
    text = value.strip().lower()
    return text in refusal.inert if refusal is not None else text == _DEFAULTS.get(key)


def _is_of(key: str, family: Family) -> bool:
    return key.startswith(family.prefix) and key.endswith(family.suffix)


_FIELDS: Final = tuple(field for group in GROUPS.values() for field in option_fields(group))
_FAMILIES: Final = tuple(
    field.option for field in _FIELDS if isinstance(field.option, Family) and field.option.honoured
)
_HONOURED: Final = HONOURED | {
    name
    for field in _FIELDS
    if isinstance(field.option, Key) and field.option.honoured
    for name in (field.option.name, *field.option.fallbacks)
}
_DEFAULTS: Final = {known.name: known.default for known in DOCUMENTED if known.default} | {
    name: field.option.kind.encode(field.default).lower()
    for field in _FIELDS
    if isinstance(field.option, Key) and field.default not in (None, ())
    for name in (field.option.name, *field.option.fallbacks)
}


def is_known(key: str) -> bool:
    """Whether Penstock or another engine knows the key or the family that it belongs to."""
    is_of_field = key.startswith("fields.") and key.endswith(FIELD_SUFFIXES)
    return key in KNOWN_KEYS or key.startswith(PREFIXES) or is_of_field


def is_known_key(key: str) -> bool:
    """Whether the key itself is known, and not only a family such as ``s3.*``."""
    return key in KNOWN_KEYS


def nearest_key(key: str, *, cutoff: float = 0.6) -> str | None:
    """Return the known key that is most similar to this one, or None.

    Args:
        cutoff: least share of equal letters.
    """
    folded = {known.lower(): known for known in sorted(KNOWN_KEYS - OTHERS)}
    found = difflib.get_close_matches(key.lower().replace("_", "-"), folded, n=1, cutoff=cutoff)
    return folded[found[0]] if found else None


def _known_keys() -> frozenset[str]:
    keys = set(OTHERS) | {known.name for known in DOCUMENTED}
    for options in GROUPS.values():
        for field in option_fields(options):
            if isinstance(field.option, Key):
                keys |= {field.option.name, *field.option.fallbacks}
    return frozenset(keys)


KNOWN_KEYS: Final = _known_keys()
"""Every key without a free part, including older names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionRow:
    """One row of the table of options.

    Attributes:
        key: the key, or the pattern of a family of keys, with ``*`` for the free part.
        default: default as text that the key accepts; empty if unset differs from every value.
        honoured: whether Penstock acts on it today.
        status: whether the key is honoured, ignored or refused.
    """

    key: str
    type: str
    default: str
    group: str
    meaning: str
    honoured: bool
    status: Status


def describe_options() -> tuple[OptionRow, ...]:
    """List every documented option once, by group; a key of two groups is listed in the first one."""
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
                honoured=status_of(known.name) is Status.HONOURED,
                status=status_of(known.name) or Status.IGNORED,
            ),
        )
    return tuple(rows.values())


def _row(group: str, field: OptionField) -> OptionRow:
    unset = field.default in (None, ())
    return OptionRow(
        key=field.option.name,
        type=field.option.kind.name,
        default="" if unset else field.option.kind.encode(field.default),
        group=group,
        meaning=field.option.meaning,
        honoured=field.option.honoured,
        status=Status.HONOURED if field.option.honoured else status_of(field.option.name) or Status.IGNORED,
    )
