"""``scan.partitions``: the partitions of a batch read, given by their values or as the greatest ones.

Source:
    Paimon ``flink:FlinkConnectorOptions.java``, ``flink:lookup/PartitionLoader.java``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.errors import InvalidOptionError
from penstock.format.row.row import row_decoder
from penstock.format.text.partitions import parse_partition, partition_text
from penstock.table.partition_scope import filter_of_specs
from penstock.table.read.live import load_live_entries

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.format.snapshot import Snapshot
    from penstock.predicate.tree import Predicate
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore

KEY: Final = "scan.partitions"
_GREATEST: Final = {"max_pt()": 1, "max_two_pt()": 2}


def filter_of_partitions(store: MetadataStore, ref: TableRef, snapshot: Snapshot | None, text: str) -> Predicate | None:
    """Return a filter that selects the partitions named by the option.

    Args:
        snapshot: the snapshot whose greatest partitions are selected.
        text: ``dt=2026-01-01,hr=5;dt=2026-01-02,hr=0``, ``max_pt()`` or ``max_two_pt()``.

    Returns:
        None if the greatest partitions are requested and the table has no partitions yet.

    Raises:
        InvalidOptionError: the text names no partitions of the table.
    """
    keys = ref.schema.partition_keys
    if not keys:
        raise InvalidOptionError(f"table {ref.name}: option '{KEY}' = '{text}': it has no partitions; leave it out")
    count = _GREATEST.get(text.strip().lower())
    if count is not None:
        specs = _greatest(store, ref, snapshot, count)
        return filter_of_specs(ref, specs) if specs else None
    named = [parse_partition(part.strip()) for part in text.split(";") if part.strip()]
    for spec in named:
        # The reference uses NULL for columns that are left out, which is hardly ever intended.
        if set(spec) != set(keys):
            raise InvalidOptionError(
                f"table {ref.name}: option '{KEY}' = '{text}': expected partitions such as "
                f"'{','.join(f'{key}=...' for key in keys)}', with semicolons between them, or max_pt(), max_two_pt()"
            )
    if not named:
        raise InvalidOptionError(f"table {ref.name}: option '{KEY}' = '{text}' names no partition; leave it out")
    return filter_of_specs(ref, named)


def _greatest(
    store: MetadataStore, ref: TableRef, snapshot: Snapshot | None, count: int
) -> list[Mapping[str, str | None]]:
    if snapshot is None:
        return []
    fields = ref.schema.partition_fields
    live = {entry.partition for entry in load_live_entries(store, snapshot, lambda _: True).values()}
    decode = row_decoder(tuple(field.type for field in fields))
    # NULL is the smallest value.
    rows = sorted((decode(data) for data in live), key=lambda row: [(value is not None, value) for value in row])
    return [
        {
            field.name: None if value is None else partition_text(field, value, legacy_name=False)
            for field, value in zip(fields, row, strict=True)
        }
        for row in rows[-count:]
    ]
