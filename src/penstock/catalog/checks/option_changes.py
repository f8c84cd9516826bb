"""Check which table options may change, before and after the first snapshot.

Source:
    Paimon ``core:schema/SchemaManager.java`` (``checkAlterTableOption``), ``api:CoreOptions.java`` (immutable options).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.catalog.checks.bucket_key import BUCKET_KEY, is_chosen
from penstock.catalog.checks.options import is_true
from penstock.catalog.checks.schema import UNAWARE_BUCKET, bucket_count
from penstock.errors import InvalidOptionError
from penstock.options.fixed import DEFAULTS, FIXED, FIXED_WITH_DATA

if TYPE_CHECKING:
    from collections.abc import Mapping


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
