"""Check table options: those that exclude or require each other, that may not change, and that name columns.

With a single bucket all rows are in bucket 0, whatever the key is, but Java Paimon opens such a table only if it has a
key. So Penstock chooses one, and marks it with an option of its own: for more buckets the user must choose a key.

Source:
    Paimon ``core:schema/SchemaValidation.java`` (also ``validateFallbackBranch``), ``core:schema/SchemaManager.java``
    (``checkAlterTableOption``, ``applyRenameColumnsToOptions``), ``api:schema/Schema.java``
    (``normalizePartitionKeys``, ``normalizePrimaryKeys``), ``api:CoreOptions.java`` (immutable options);
    docs/spec/commit.md section 1, docs/spec/streaming.md section 1.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.errors import InvalidOptionError, UnsupportedFeatureError
from penstock.format.types.data_types import AtomicType, DataField, DataType, TypeRoot
from penstock.options import BucketOptions
from penstock.options.check import DEFAULTS, FIXED, FIXED_WITH_DATA, check_keys, check_values
from penstock.options.object_store import credentials_among
from penstock.table.read.branch import check_branch_name, has_branch
from penstock.table.read.query import KEY, fallback_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from penstock.io.file_io import FileIO

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
    check_values(given, table)
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


def check_option_changes(
    old: Mapping[str, str],
    new: Mapping[str, str],
    *,
    has_snapshots: bool,
    key_is_free: bool,
    explicit: frozenset[str],
    table: str,
) -> None:
    """Check the changes between two sets of options.

    Args:
        old: the old options, with the column renames of the same change applied.
        has_snapshots: whether the table has snapshots.
        key_is_free: the table had one bucket and no bucket key of the user, so its rows are in the right bucket for any
            key.
        explicit: the keys that the change itself sets.

    Raises:
        InvalidOptionError: an option may not change; the message names the option and what to do instead.
    """
    for key in (*old, *(key for key in new if key not in old)):
        default = DEFAULTS.get(key)
        before, after = old.get(key, default), new.get(key, default)
        if before == after:
            continue
        if key in FIXED:
            raise InvalidOptionError(f"table {table}: option '{key}' cannot change; create another table")
        if has_snapshots and not (key == BUCKET_KEY and key_is_free):
            _check_change(key, (before, after), old, table)
    if has_snapshots:
        _check_bucket_count(old, new, table)
    if is_chosen(old) and bucket_count(new, table) > 1 and BUCKET_KEY not in explicit:
        raise InvalidOptionError(
            f"table {table}: 'bucket-key' = '{old[BUCKET_KEY]}' was only chosen because there was one bucket;"
            " set 'bucket-key' together with 'bucket'"
        )


def _check_change(key: str, change: tuple[str | None, str | None], old: Mapping[str, str], table: str) -> None:
    if key in FIXED_WITH_DATA:
        before, after = (f"'{value}'" if value is not None else "unset" for value in change)
        raise InvalidOptionError(
            f"table {table}: option '{key}' cannot change from {before} to {after} once there are snapshots;"
            " create another table and copy the rows"
        )
    if key == "deletion-vectors.enabled" and not is_true(old, "deletion-vectors.modifiable"):
        raise InvalidOptionError(
            f"table {table}: 'deletion-vectors.enabled' cannot change once there are snapshots unless"
            " 'deletion-vectors.modifiable' = 'true' was set before"
        )
    if key == "ignore-delete" and change[0] == "true":
        raise InvalidOptionError(f"table {table}: 'ignore-delete' cannot go back to false once there are snapshots")


def _check_bucket_count(old: Mapping[str, str], new: Mapping[str, str], table: str) -> None:
    before, after = bucket_count(old, table), bucket_count(new, table)
    if before != after and UNAWARE_BUCKET in (before, after):
        raise InvalidOptionError(
            f"table {table}: 'bucket' cannot change from {before} to {after} once there are snapshots: a table with"
            " buckets and one without are laid out differently; create another table and copy the rows"
        )


def normalised_keys(
    options: Mapping[str, str], partition_keys: tuple[str, ...], table: str
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Remove both options, and return the other options with the partition keys.

    Raises:
        InvalidOptionError: the option names other partition keys than the declaration.
        UnsupportedFeatureError: the options name a primary key.
    """
    rest = {key: value for key, value in options.items() if key not in ("partition", "primary-key")}
    if split_names(options.get("primary-key")):
        raise UnsupportedFeatureError(
            f"table {table}: 'primary-key' = '{options['primary-key']}': Penstock keeps append tables only; leave it"
            " out, or use Flink or Spark with Paimon"
        )
    named = split_names(options.get("partition"))
    if named and partition_keys and named != partition_keys:
        raise InvalidOptionError(
            f"table {table}: 'partition' = '{options['partition']}', but the table is partitioned by"
            f" {', '.join(partition_keys)}; give it in one place only"
        )
    return rest, partition_keys or named


BUCKET: Final = "bucket"
BUCKET_KEY: Final = "bucket-key"
CHOSEN: Final = "penstock.bucket-key.chosen"


def is_chosen(options: Mapping[str, str]) -> bool:
    """Whether Penstock, not the user, chose the bucket key."""
    return CHOSEN in options


def with_bucket_key(
    options: Mapping[str, str], fields: Sequence[DataField], partition_keys: Sequence[str], table: str
) -> dict[str, str]:
    """Return the options with a normalized bucket key; choose a key if ``bucket = 1`` has none.

    Raises:
        InvalidOptionError: ``bucket = 1`` has no key, and no column can be the key.
    """
    result = dict(options)
    names = split_names(options.get(BUCKET_KEY))
    if names:
        # Java splits at the comma and treats blanks as part of the name.
        result[BUCKET_KEY] = ",".join(names)
    elif options.get(BUCKET, "").strip() == "1":
        result[BUCKET_KEY] = _first_possible_key(fields, partition_keys, table)
        result[CHOSEN] = "true"
    return result


def without_choice(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options without a bucket key that Penstock chose; a key that the user chose is kept."""
    if not is_chosen(options):
        return dict(options)
    return {key: value for key, value in options.items() if key not in (BUCKET_KEY, CHOSEN)}


def _first_possible_key(fields: Sequence[DataField], partition_keys: Sequence[str], table: str) -> str:
    for field in fields:
        if field.name not in partition_keys and is_key_type(field.type):
            return field.name
    raise InvalidOptionError(
        f"table {table}: 'bucket' = '1' needs a column of a plain type that is not a partition key, and there is none;"
        " use 'bucket' = '-1'"
    )


def check_no_fallback_branch(options: Mapping[str, str], table: str) -> None:
    """Refuse the option for a new table, which has no branches. Raises ``InvalidOptionError``."""
    name = fallback_of(options)
    if name is not None:
        raise _no_branch(name, table)


def check_fallback_branch(options: Mapping[str, str], *, file_io: FileIO, location: str, table: str) -> None:
    """Check that the branch in the option exists.

    Raises:
        InvalidOptionError: there is no such branch.
    """
    name = fallback_of(options)
    if name is None:
        return
    check_branch_name(table, name)
    if not has_branch(file_io, location, name):
        raise _no_branch(name, table)


def _no_branch(name: str, table: str) -> InvalidOptionError:
    return InvalidOptionError(
        f"table {table}: cannot set '{KEY}' = '{name}', because there is no branch '{name}': create the branch first, "
        "then set the option with ALTER TABLE"
    )


UNAWARE_BUCKET: Final = -1


_NOT_A_KEY: Final = frozenset({TypeRoot.VARIANT, TypeRoot.BLOB, TypeRoot.GEOMETRY, TypeRoot.GEOGRAPHY})


def is_key_type(data_type: DataType) -> bool:
    """Whether a column of this type may be a partition key or a bucket key."""
    return isinstance(data_type, AtomicType) and data_type.root not in _NOT_A_KEY


def bucket_count(options: Mapping[str, str], table: str) -> int:
    """Return option ``bucket``; -1 if it is not set. Raises ``InvalidOptionError``."""
    return BucketOptions.parse(options, table=table).bucket


FIELDS_PREFIX: Final = "fields."


FILE_INDEX_PREFIX: Final = "file-index."


# This key applies to every column; ``default-aggregate-function`` in it is not a column name.
DEFAULT_AGGREGATE_KEY: Final = "fields.default-aggregate-function"


_COLUMN_LISTS: Final = frozenset(
    {
        "bucket-key",
        "clustering.columns",
        "sequence.field",
        "rowkind.field",
        "record-level.time-field",
        "orc.bloom.filter.columns",
        "sink.clustering.by-columns",
        "vector-field",
        "blob-field",
        "blob-descriptor-field",
        "blob-view-field",
    }
)


# Only these options hold column names in their values; ``stats-mode`` = 'full' does not mean a column ``full``.
_COLUMN_LIST_SUFFIXES: Final = (".sequence-group", ".nested-key")


_FILE_INDEX_COLUMNS: Final = ".columns"


def split_names(text: str | None) -> tuple[str, ...]:
    """Split a comma-separated list of columns; blanks around names are removed."""
    return tuple(name for name in (part.strip() for part in (text or "").split(",")) if name)


def rename_in_options(options: Mapping[str, str], old: str, new: str) -> dict[str, str]:
    """Return the options with a top-level column renamed in keys and values, in the same order."""
    return {_renamed_key(key, old, new): _renamed_value(key, value, old, new) for key, value in options.items()}


def key_columns(key: str) -> tuple[str, ...]:
    """Return the columns named in the key: ``fields.a,b.sequence-group`` names a and b."""
    if not key.startswith(FIELDS_PREFIX) or key == DEFAULT_AGGREGATE_KEY:
        return ()
    return tuple(key[len(FIELDS_PREFIX) :].partition(".")[0].split(","))


def value_columns(key: str, value: str) -> tuple[str, ...]:
    """Return the columns named in the value; a file index over a map names it as ``column[key]``."""
    if _holds_columns(key):
        return tuple(name.partition("[")[0] for name in split_names(value))
    return ()


def _holds_columns(key: str) -> bool:
    if key in _COLUMN_LISTS:
        return True
    if key.startswith(FIELDS_PREFIX):
        return key.endswith(_COLUMN_LIST_SUFFIXES)
    return key.startswith(FILE_INDEX_PREFIX) and key.endswith(_FILE_INDEX_COLUMNS)


def _renamed_key(key: str, old: str, new: str) -> str:
    names = key_columns(key)
    if old in names:
        rest = key[len(FIELDS_PREFIX) + len(",".join(names)) :]
        return FIELDS_PREFIX + ",".join(new if name == old else name for name in names) + rest
    return _renamed_file_index_key(key, old, new)


def _renamed_file_index_key(key: str, old: str, new: str) -> str:
    # file-index.<type>.<column>.<setting>; a map column may have a key: <column>[<key>]
    parts = key.split(".", 3)
    if key.startswith(FILE_INDEX_PREFIX) and len(parts) == 4:
        name, bracket, rest = parts[2].partition("[")
        if name == old:
            parts[2] = new + bracket + rest
    return ".".join(parts)


def _renamed_value(key: str, value: str, old: str, new: str) -> str:
    if old not in value_columns(key, value):
        return value
    return ",".join(_renamed_entry(entry, old, new) for entry in split_names(value))


def _renamed_entry(entry: str, old: str, new: str) -> str:
    name, bracket, rest = entry.partition("[")
    return new + bracket + rest if name == old else entry


def unknown_columns(options: Mapping[str, str], columns: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield (key, column) for every option that names a column which the table does not have."""
    for key, value in options.items():
        for name in (*key_columns(key), *value_columns(key, value)):
            if name not in columns:
                yield key, name
