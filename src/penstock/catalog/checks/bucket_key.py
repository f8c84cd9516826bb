"""The bucket key of one-bucket tables that were declared without one.

With a single bucket every row lands in bucket 0 whatever the key is, but Java Paimon opens such a table only with a
key. So one is chosen, and an option of our own remembers that nobody asked for it: more buckets need a real choice.
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
    """Whether the bucket key was chosen here and not by the user."""
    return CHOSEN in options


def with_bucket_key(
    options: Mapping[str, str], fields: Sequence[DataField], partition_keys: Sequence[str], table: str
) -> dict[str, str]:
    """Return the options with a normalised bucket key, chosen where ``bucket = 1`` has none.

    Raises:
        InvalidOptionError: ``bucket = 1`` without a key on a table without any column that could be one.
    """
    result = dict(options)
    names = split_names(options.get(BUCKET_KEY))
    if names:
        # Java splits at the comma and keeps blanks as part of the name.
        result[BUCKET_KEY] = ",".join(names)
    elif options.get(BUCKET, "").strip() == "1":
        result[BUCKET_KEY] = _first_possible_key(fields, partition_keys, table)
        result[CHOSEN] = "true"
    return result


def without_choice(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options without a bucket key that was chosen here; as they are when the user chose it."""
    if not is_chosen(options):
        return dict(options)
    return {key: value for key, value in options.items() if key not in (BUCKET_KEY, CHOSEN)}


def _first_possible_key(fields: Sequence[DataField], partition_keys: Sequence[str], table: str) -> str:
    for field in fields:
        if field.name not in partition_keys and is_key_type(field.type):
            return field.name
    raise InvalidOptionError(
        f"table {table}: 'bucket' = '1' needs a column of a plain type that is no partition key, and there is none;"
        " use 'bucket' = '-1'"
    )
