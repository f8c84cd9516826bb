"""All known keys, and the search for the key that a misspelt one means."""

from __future__ import annotations

import difflib
from typing import Final

from penstock.options.compact import CompactOptions, SortOptions
from penstock.options.done import MarkDoneOptions
from penstock.options.external import ExternalPathOptions, ViewOptions
from penstock.options.group import Key, OptionGroup, option_fields
from penstock.options.layout import BucketOptions, FormatOptions, LayoutOptions, StatsOptions
from penstock.options.metadata import MetadataOptions
from penstock.options.object_store import ObjectStoreOptions
from penstock.options.retain import PartitionExpireOptions, RetentionOptions, TagOptions
from penstock.options.scan import ReadOptions
from penstock.options.status.foreign import DOCUMENTED, FIELD_SUFFIXES, OTHERS, PREFIXES
from penstock.options.stream import ConsumerOptions, StreamOptions, WatermarkOptions
from penstock.options.write import CommitOptions, ManifestOptions, WriteOptions

GROUPS: Final[dict[str, type[OptionGroup]]] = {
    "layout": LayoutOptions,
    "external paths": ExternalPathOptions,
    "views (as an option of a catalog)": ViewOptions,
    "object stores (as options of a catalog; those of a table do nothing)": ObjectStoreOptions,
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
"""All groups, in the order of the documentation."""


def is_known(key: str) -> bool:
    """Whether Penstock or another engine knows the key or the family that it belongs to."""
    is_of_field = key.startswith("fields.") and key.endswith(FIELD_SUFFIXES)
    return key in KNOWN_KEYS or key.startswith(PREFIXES) or is_of_field


def nearest_key(key: str) -> str | None:
    """Return the known key that is most similar to this one, or None."""
    folded = {known.lower(): known for known in sorted(KNOWN_KEYS - OTHERS)}
    found = difflib.get_close_matches(key.lower().replace("_", "-"), folded, n=1)
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
