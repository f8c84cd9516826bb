"""System tables that return the rows of the table itself: ``audit_log`` and ``ro``.

Source:
    Paimon ``core:table/system/AuditLogTable.java``, ``ReadOptimizedTable.java``. An append table has insertions only,
    and its files need no merging, so ``ro`` is the table.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from penstock.table.read.batches import read_arrow
from penstock.table.read.query import plan_query

if TYPE_CHECKING:
    from penstock.format.snapshot import Snapshot
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore

AUDIT_LOG: Final = "audit_log"
ROW_TABLES: Final = (AUDIT_LOG, "ro")
ROW_KIND: Final = "rowkind"
"""Column of ``audit_log`` before those of the table."""
INSERTION: Final = "+I"
"""Its value for a row that was added."""


def load_row_table(name: str, ref: TableRef, store: MetadataStore, snapshot: Snapshot | None = None) -> pa.Table:
    """Read a system table of ``ROW_TABLES`` into memory.

    Args:
        snapshot: to read; None for the one that the options select, by default the latest.

    Raises:
        TableStoreError: as ``plan_query``.
    """
    if snapshot is not None:
        ref = replace(ref, dynamic_options=(*ref.dynamic_options, ("scan.snapshot-id", str(snapshot.id))))
    query = plan_query(ref, store)
    rows = read_arrow(query.ref, store, query.plan)
    return rows if name != AUDIT_LOG else with_row_kind(rows)


def with_row_kind(rows: pa.Table) -> pa.Table:
    """Return rows with the column ``rowkind`` before the others."""
    return rows.add_column(0, ROW_KIND, pa.repeat(pa.scalar(INSERTION), rows.num_rows))
