"""Choose a bucket key for one-bucket tables that were declared without one.

With a single bucket all rows are in bucket 0, whatever the key is, but Java Paimon opens such a table only if it has a
key. So Penstock chooses one, and marks it with a Penstock option: for more buckets the user must choose a key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.catalog.checks.column_options import split_names
from penstock.catalog.checks.schema import is_key_type
from penstock.errors import InvalidOptionError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.format.types.data_types import DataField

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
