"""Check options that a user gives: keys without effect, keys that must not be ignored, and options that are fixed.

Fixed options define where a table's files and rows are stored, and must be the same for all handles of the table. A
writer with another value than the stored one would commit files where no reader looks for them, or write rows to a
bucket where a filter on the key does not find them.

Source:
    Paimon ``core:schema/SchemaManager.java`` (``checkAlterTableOption``), ``api:CoreOptions.java`` (immutable
    options).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from penstock.errors import InvalidOptionError, OptionWarning, UnsupportedFeatureError, warn
from penstock.options.group import Key, option_fields
from penstock.options.layout import BucketOptions, FileIndexOptions, LayoutOptions, StatsOptions
from penstock.options.scan import ReadOptions
from penstock.options.status.keys import (
    GROUPS,
    Status,
    asks_for_nothing,
    is_known_key,
    nearest_key,
    refusal_of,
    status_of,
)
from penstock.options.status.refused import FOREIGN, REFUSED
from penstock.options.stream import ConsumerOptions, StreamOptions
from penstock.options.write import CommitOptions, ManifestOptions, WriteOptions
from penstock.printable import mask_value

if TYPE_CHECKING:
    from collections.abc import Iterable


class Side(StrEnum):
    """A side of a stream, by its name in messages."""

    SOURCE = "source"
    SINK = "sink"


_ALIKE: Final = 0.85
_GROUPS_OF_SIDES: Final = {
    Side.SOURCE: (ReadOptions, StreamOptions, ConsumerOptions),
    Side.SINK: (StatsOptions, FileIndexOptions, WriteOptions, CommitOptions, ManifestOptions),
}
# Keys of groups that both sides use, and keys that belong to the other side than their group.
_KEYS_OF_SIDES: Final = {
    "read.batch-size": Side.SOURCE,
    "write.batch-size": Side.SINK,
    "write.batch-memory": Side.SINK,
    # Commits check for consumers that have expired.
    "consumer.expiration-time": Side.SINK,
    "scan.fallback-branch": Side.SOURCE,
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


def check_keys(options: Iterable[str], table: str, *, of_batch_read: bool = False) -> None:
    """Check the keys that were given, so that none is ignored silently.

    Warns with ``OptionWarning`` about each unknown key, with the most similar known key, and about each key that
    Penstock does not act on, unless its value is the default. These keys are not errors: other engines may use them.

    Args:
        options: keys, or a mapping by key.
        of_batch_read: the options are for a batch read, which supports some keys that are refused elsewhere.
    """
    values = options if isinstance(options, Mapping) else {}
    for key in options:
        value = values.get(key)
        if (value is not None and asks_for_nothing(key, str(value))) or (of_batch_read and _is_for_batch(key)):
            continue
        text = _remark(key, "" if value is None else f" = '{mask_value(key, str(value))}'", table)
        if text is not None:
            warn(text, OptionWarning)


def check_values(given: Mapping[str, str], table: str) -> None:
    """Check that each value is valid for its key. Raises ``InvalidOptionError``."""
    for group in GROUPS.values():
        group.parse(given, table=table)


def check_catalog_keys(keys: Iterable[str]) -> None:
    """Warn with ``OptionWarning`` of each option of a catalog that looks like a misspelled one.

    Other unknown keys may be those of storages of other engines.
    """
    for key in keys:
        plain = key.removeprefix("table-default.")
        near = None if is_known_key(plain) else nearest_key(plain, cutoff=_ALIKE)
        if near is not None:
            before = key.removesuffix(plain)
            warn(f"catalog option '{key}' is not known: did you mean '{before}{near}'?", OptionWarning)


def check_side(options: Iterable[str], table: str, side: Side) -> None:
    """Warn with ``OptionWarning`` of each key that only the other side of a stream acts on.

    Args:
        options: options of the handle, keys or a mapping by key. Stored options of a table apply to both sides.
        side: the side that the options were given to.
    """
    for key in options:
        theirs = _SIDES.get(key)
        if theirs is None or status_of(key) is not Status.HONOURED:
            continue
        if theirs is not side:
            text = f"is one of the {theirs} and has no effect on a {side}: give it to the query that " + (
                "reads the table" if theirs is Side.SOURCE else "writes the table"
            )
        elif key in _BATCH_READS_ONLY:
            text = "is one of batch reads and has no effect on a stream: read each branch as a stream of its own"
        else:
            continue
        warn(f"table {table}: option '{key}' {text}", OptionWarning)


def check_batch(options: Iterable[str], table: str, side: Side) -> None:
    """Warn with ``OptionWarning`` of each key that a batch read or write does not act on.

    Args:
        options: options of the handle, keys or a mapping by key.
        side: ``SOURCE`` for a read, ``SINK`` for a write.
    """
    for key in options:
        theirs = _SIDES.get(key)
        if theirs is None or status_of(key) is not Status.HONOURED:
            continue
        if theirs is not side:
            text = "has no effect on a read: give it to a write" if side is Side.SOURCE else "has no effect on a write"
        elif key in _STREAMS_ONLY:
            text = "is one of streams and has no effect on a batch read: read the table as a stream"
        else:
            continue
        warn(f"table {table}: option '{key}' {text}", OptionWarning)


def check_reads(options: Mapping[str, str], table: str, *, of_batch_read: bool = False) -> None:
    """Check that a read can safely ignore the options that Penstock does not support.

    Args:
        options: all options, including those stored with the table.
        of_batch_read: as for ``check_keys``.
    """
    for key, refusal in REFUSED.items():
        if of_batch_read and refusal.is_for_batch:
            continue
        if refusal.reads and key in options and not asks_for_nothing(key, options[key]):
            raise _unsupported(key, f" = '{options[key]}'", table)


def _is_for_batch(key: str) -> bool:
    refusal = refusal_of(key)
    return refusal is not None and refusal.is_for_batch


def _remark(key: str, value: str, table: str) -> str | None:
    match status_of(key):
        case Status.HONOURED:
            return None
        case Status.IGNORED:
            return f"table {table}: option '{key}'{value} has no effect here: Penstock does not act on it"
        case Status.REFUSED:
            refusal = refusal_of(key)
            if refusal is None or refusal.is_own:
                return None
            raise _unsupported(key, value, table)
        case _:
            pass
    if key.lower() in FOREIGN:
        whose, cure = FOREIGN[key.lower()]
        raise InvalidOptionError(f"table {table}: option '{key}'{value} is one of {whose}: {cure}")
    near = nearest_key(key)
    hint = f"did you mean '{near}'?" if near else "it has no effect here"
    return f"table {table}: option '{key}' is not known: {hint}"


def _unsupported(key: str, value: str, table: str) -> UnsupportedFeatureError:
    refusal = refusal_of(key)
    cure = "leave it out" if refusal is None else refusal.cure
    return UnsupportedFeatureError(f"table {table}: option '{key}'{value} is not supported: {cure}")


def _sides() -> dict[str, Side]:
    sides: dict[str, Side] = {}
    for side, groups in _GROUPS_OF_SIDES.items():
        for group in groups:
            for field in option_fields(group):
                if isinstance(field.option, Key):
                    sides |= dict.fromkeys((field.option.name, *field.option.fallbacks), side)
    return sides | _KEYS_OF_SIDES


_SIDES: Final = _sides()
_BATCH_READS_ONLY: Final = frozenset({"scan.fallback-branch"})
_STREAMS_ONLY: Final = {
    name
    for group in (StreamOptions, ConsumerOptions)
    for field in option_fields(group)
    for name in (field.option.name, *getattr(field.option, "fallbacks", ()))
} | {key for key in _KEYS_OF_SIDES if "watermark" in key}


FIXED: Final = frozenset({"type", "path", "branch"})
"""Options that never change, not even in an empty table: they are determined when the directory is created."""

FIXED_WITH_DATA: Final = frozenset(
    {
        "bucket-key",
        "bucket-function.type",
        "data-file.path-directory",
        # Partition directories are not stored: every reader computes their names from the partition values.
        "partition.default-name",
        "partition.legacy-name",
        "partition",
        "primary-key",
        "primary-key.nullable",
        "row-tracking.enabled",
        "data-evolution.enabled",
        "index-file-in-data-file-dir",
        "blob-field",
        "blob-descriptor-field",
        "blob-view-field",
        "merge-engine",
        "rowkind.field",
        "sequence.snapshot-ordering",
    }
)
"""Options that cannot change once the table has snapshots."""

DEFAULTS: Final[Mapping[str, str]] = {
    "type": "table",
    "branch": "main",
    "bucket": "-1",
    "bucket-function.type": "default",
    "bucket-append-ordered": "true",
    "partition.default-name": "__DEFAULT_PARTITION__",
    "partition.legacy-name": "true",
    "row-tracking.enabled": "false",
    "data-evolution.enabled": "false",
    "index-file-in-data-file-dir": "false",
    "deletion-vectors.enabled": "false",
}
"""Defaults: setting an option to its default is not a change."""

_FEATURES: Final = frozenset({"data-evolution.enabled", "deletion-vectors.enabled"})
_FIXED_FOR_ONE_USE: Final = FIXED_WITH_DATA | _FEATURES | {"type", "path", "bucket", "bucket-append-ordered"}


def check_one_use(given: Mapping[str, str], stored: Mapping[str, str], table: str, location: str) -> None:
    """Check that the options of a handle do not change the stored layout of the table.

    Args:
        given: options of the handle; an option may be repeated with its stored value.
        stored: options of the table.
        location: the table's directory, which is its ``path``.
    """
    for key, value in given.items():
        # A value that enables a feature is refused elsewhere; this check refuses values that disable a table's feature.
        if key not in _FIXED_FOR_ONE_USE or (key in _FEATURES and value.strip().lower() == "true"):
            continue
        before = location if key == "path" else stored.get(key, DEFAULTS.get(key))
        if _meaning(key, value) != _meaning(key, before):
            was = "unset" if before is None else f"'{before}'"
            raise InvalidOptionError(
                f"table {table}: option '{key}' = '{value}' cannot be given for one use: it determines where rows and "
                f"files are, is {was} in the table, and every reader relies on that; leave it out, or create "
                "a table with it"
            )


def _meaning(key: str, text: str | None) -> object:
    if text is None:
        return None
    match key:
        case "bucket-key":
            return BucketOptions.parse({key: text}).bucket_key
        case "partition.legacy-name":
            return LayoutOptions.parse({key: text}).legacy_partition_name
        case "path":
            return text.rstrip("/")
        case "data-file.path-directory" | "partition.default-name" | "partition" | "primary-key":
            return text
        case _:
            return text.strip().lower()
