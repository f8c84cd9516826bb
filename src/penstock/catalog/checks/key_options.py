"""Options ``partition`` and ``primary-key``: the text form of the partition keys and primary keys of a schema.

Source:
    Paimon ``api:schema/Schema.java`` (``normalizePartitionKeys``, ``normalizePrimaryKeys``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.catalog.checks.column_options import split_names
from penstock.errors import InvalidOptionError, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Mapping


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
