"""Check table options that exclude or require each other.

Source:
    Paimon ``core:schema/SchemaValidation.java``; docs/spec/commit.md section 1, docs/spec/streaming.md section 1.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.errors import InvalidOptionError, UnsupportedFeatureError
from penstock.options.check import check_keys
from penstock.options.object_store import credentials_among
from penstock.options.status.known import GROUPS

if TYPE_CHECKING:
    from collections.abc import Mapping

_TIMES: Final = ("scan.timestamp-millis", "scan.timestamp")
_SNAPSHOT: Final = "scan.snapshot-id"
_TAG: Final = "scan.tag-name"
_WATERMARK: Final = "scan.watermark"
_FILE_TIME: Final = "scan.file-creation-time-millis"
_CREATION_TIME: Final = "scan.creation-time-millis"
_INCREMENTAL: Final = ("incremental-between", "incremental-between-timestamp", "incremental-to-auto-tag")

_BUCKET_FUNCTION: Final = "bucket-function.type"
_BUCKET_FUNCTIONS: Final = ("default", "mod", "hive")

# mode: (exactly one of these options is required, none of these options is allowed)
_MODE_RULES: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "from-timestamp": (_TIMES, (_SNAPSHOT, _FILE_TIME, _TAG, *_INCREMENTAL)),
    "from-snapshot": ((_SNAPSHOT, _TAG, _WATERMARK), (*_TIMES, _FILE_TIME, *_INCREMENTAL)),
    "from-snapshot-full": ((_SNAPSHOT,), (*_TIMES, _FILE_TIME, _TAG, *_INCREMENTAL)),
    "from-file-creation-time": ((_FILE_TIME,), (_SNAPSHOT, "scan.timestamp-millis", _TAG, *_INCREMENTAL)),
    "incremental": (_INCREMENTAL, (_SNAPSHOT, *_TIMES, _FILE_TIME, _TAG)),
    "latest-delta": (
        (),
        (
            *_TIMES,
            _FILE_TIME,
            _CREATION_TIME,
            _SNAPSHOT,
            _TAG,
            _WATERMARK,
            "scan.version",
            *_INCREMENTAL,
            "incremental-between-scan-mode",
            "incremental-between-tag-to-snapshot",
        ),
    ),
}
_OTHER_MODES: Final = ((), (*_TIMES, _FILE_TIME, _SNAPSHOT, _TAG, *_INCREMENTAL))

# The first entry with an option that is set determines the meaning of scan.mode = default.
_IMPLIED_MODES: Final = (
    (_TIMES, "from-timestamp"),
    ((_SNAPSHOT, _TAG, _WATERMARK, "scan.version"), "from-snapshot"),
    ((_FILE_TIME,), "from-file-creation-time"),
    ((_CREATION_TIME,), "from-creation-timestamp"),
    (("incremental-between", "incremental-between-timestamp"), "incremental"),
)


def check_options(options: Mapping[str, str], table: str) -> None:
    """Check all rules between options that do not depend on columns.

    Raises:
        InvalidOptionError: two options conflict; the message names both and what to do.
        UnsupportedFeatureError: an option needs a primary key.
    """
    check_scan_options(options, table)
    _check_keyed_features(options, table)
    _check_retention(options, table)
    _check_row_tracking(options, table)
    _check_clustering(options, table)


def check_given_options(given: Mapping[str, str], table: str) -> None:
    """Check the values of options that a user has just given, and warn about unknown keys.

    Stored options are not checked: another engine may accept values that Penstock does not know.

    Raises:
        InvalidOptionError: a value is not valid for its key, or an option is a credential of an object store.
    """
    for key in credentials_among(given):
        raise InvalidOptionError(
            f"table {table}: option '{key}' is a credential, and options of a table are stored in its schema, where "
            "all its readers see them: give it to the catalog, penstock.Catalog(warehouse, options={...}), or to the "
            "environment"
        )
    check_keys(given, table)
    for group in GROUPS.values():
        group.parse(given, table=table)
    function = given.get(_BUCKET_FUNCTION, "default").lower()
    if function not in _BUCKET_FUNCTIONS:
        raise InvalidOptionError(
            f"table {table}: option '{_BUCKET_FUNCTION}' = '{function}': expected one of {', '.join(_BUCKET_FUNCTIONS)}"
        )


def resolved_scan_mode(options: Mapping[str, str]) -> str:
    """Return the scan mode in lower case; ``default`` or an unset mode is derived from the position options."""
    mode = options.get("scan.mode", "default").lower()
    if mode == "default":
        return next((implied for keys, implied in _IMPLIED_MODES if any(key in options for key in keys)), "latest-full")
    return "latest-full" if mode == "full" else mode


def check_scan_options(options: Mapping[str, str], table: str) -> None:
    """Check that the options for a read's start position match ``scan.mode``. Raises ``InvalidOptionError``."""
    mode = resolved_scan_mode(options)
    required, forbidden = _MODE_RULES.get(mode, _OTHER_MODES)
    present = [key for key in required if key in options]
    # ``scan.version`` is converted to one of the other options when the snapshot is resolved.
    if required and len(present) != 1 and not (mode == "from-snapshot" and not present and "scan.version" in options):
        wanted = " or ".join(f"'{key}'" for key in required)
        raise InvalidOptionError(
            f"table {table}: 'scan.mode' = '{mode}' needs exactly one of {wanted}, found {len(present)}"
        )
    for key in forbidden:
        if key in options:
            raise InvalidOptionError(
                f"table {table}: '{key}' does not go with 'scan.mode' = '{mode}'; remove it, or remove 'scan.mode'"
                " to start where it says"
            )


def is_true(options: Mapping[str, str], key: str) -> bool:
    """Whether a boolean option is true; False if it is not set."""
    return options.get(key, "false").strip().lower() == "true"


def _check_keyed_features(options: Mapping[str, str], table: str) -> None:
    producer = options.get("changelog-producer", "none").lower()
    if producer != "none":
        raise UnsupportedFeatureError(
            f"table {table}: 'changelog-producer' = '{producer}' needs a primary key, which append tables don't have;"
            " leave it out"
        )
    if is_true(options, "streaming-read-overwrite"):
        raise InvalidOptionError(
            f"table {table}: 'streaming-read-overwrite' needs a primary key; for an append table set"
            " 'streaming-read-append-overwrite' = 'true'"
        )


def _check_retention(options: Mapping[str, str], table: str) -> None:
    least, most = 10, 2**31 - 1
    for kind in ("snapshot", "changelog"):  # unset changelog options default to those of snapshots
        least = _integer(options, f"{kind}.num-retained.min", least, table)
        most = _integer(options, f"{kind}.num-retained.max", most, table)
        if least < 1:
            raise InvalidOptionError(f"table {table}: '{kind}.num-retained.min' = '{least}': expected 1 or more")
        if least > most:
            raise InvalidOptionError(
                f"table {table}: '{kind}.num-retained.min' ({least}) is larger than '{kind}.num-retained.max' ({most});"
                " set both"
            )
    if _integer(options, "target-file-row-num", 1, table) < 1:
        raise InvalidOptionError(f"table {table}: 'target-file-row-num': expected 1 or more")


def _check_row_tracking(options: Mapping[str, str], table: str) -> None:
    tracking = is_true(options, "row-tracking.enabled")
    if tracking and _integer(options, "bucket", -1, table) != -1:
        raise InvalidOptionError(f"table {table}: 'row-tracking.enabled' goes with 'bucket' = '-1' only")
    if is_true(options, "data-evolution.enabled") and not tracking:
        raise InvalidOptionError(f"table {table}: 'data-evolution.enabled' needs 'row-tracking.enabled' = 'true'")


def _check_clustering(options: Mapping[str, str], table: str) -> None:
    if not is_true(options, "clustering.incremental") or _integer(options, "bucket", -1, table) == -1:
        return
    if options.get("bucket-append-ordered", "true").lower() == "true":
        raise InvalidOptionError(
            f"table {table}: 'clustering.incremental' reorders rows, so with buckets it needs"
            " 'bucket-append-ordered' = 'false'"
        )
    if is_true(options, "deletion-vectors.enabled"):
        raise InvalidOptionError(
            f"table {table}: 'clustering.incremental' with buckets excludes 'deletion-vectors.enabled'; keep one"
        )


def _integer(options: Mapping[str, str], key: str, default: int, table: str) -> int:
    text = options.get(key)
    if text is None:
        return default
    try:
        return int(text)
    except ValueError as error:
        raise InvalidOptionError(f"table {table}: option '{key}' = '{text}': expected a whole number") from error
