"""Model of a table as plain Python values: the rows that reads must return, independent of files and manifests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from penstock.format.snapshot import CommitKind

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

ModelRow: TypeAlias = "Mapping[int, object]"
"""Field id to value. A field that did not exist when the row was written is absent, and reads as null."""

Columns: TypeAlias = "Mapping[str, int]"
"""Column name to field id, in column order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSnapshot:
    """One version of the table.

    Attributes:
        schema_id: the latest schema at the time of the commit.
        rows: all rows, in the order they were written.
        watermark: None if never set.
    """

    id: int
    kind: CommitKind
    schema_id: int
    rows: tuple[ModelRow, ...]
    delta_record_count: int
    watermark: int | None = None


@dataclass(slots=True, kw_only=True)
class TableModel:
    """Expected history of a table.

    Attributes:
        schemas: by id; columns keep their field id when they are renamed, and no field id is used twice.
        snapshots: oldest first; ids count from 1 without a gap.
    """

    schemas: list[Columns]
    snapshots: list[ModelSnapshot] = field(default_factory=list)
    tags: dict[str, ModelSnapshot] = field(default_factory=dict)

    @property
    def latest(self) -> ModelSnapshot | None:
        """The latest snapshot; None if nothing was committed."""
        return self.snapshots[-1] if self.snapshots else None

    @property
    def columns(self) -> Columns:
        """Columns of the latest schema."""
        return self.schemas[-1]

    @property
    def rows(self) -> tuple[ModelRow, ...]:
        """Rows of the latest snapshot."""
        return self.snapshots[-1].rows if self.snapshots else ()

    def append(self, rows: Iterable[ModelRow], *, watermark: int | None = None) -> ModelSnapshot | None:
        """Add rows; without rows and without a later watermark, return None and create no snapshot."""
        added = tuple(rows)
        before = self.latest.watermark if self.latest else None
        is_later = watermark is not None and (before is None or before < watermark)
        return self._commit(CommitKind.APPEND, self.rows, added, watermark) if added or is_later else None

    def overwrite(self, rows: Iterable[ModelRow], is_replaced: Callable[[ModelRow], bool]) -> ModelSnapshot:
        """Replace the rows that ``is_replaced`` accepts."""
        kept = tuple(row for row in self.rows if not is_replaced(row))
        return self._commit(CommitKind.OVERWRITE, kept, tuple(rows), None)

    def snapshot(self, snapshot_id: int) -> ModelSnapshot:
        """Return one snapshot. Raises ``KeyError``."""
        for each in self.snapshots:
            if each.id == snapshot_id:
                return each
        raise KeyError(snapshot_id)

    def roll_back(self, target: ModelSnapshot) -> None:
        """Make a snapshot the latest; remove later snapshots and their tags."""
        self.snapshots = [each for each in self.snapshots if each.id <= target.id]
        self.tags = {name: each for name, each in self.tags.items() if each.id <= target.id}

    def evolve(self, columns: Columns) -> int:
        """Add a schema with these columns; return its id."""
        self.schemas.append(columns)
        return len(self.schemas) - 1

    def read(self, snapshot: ModelSnapshot | None, schema_id: int | None = None) -> list[dict[str, object]]:
        """Return the rows of a snapshot by column name, in the order they were written.

        Args:
            schema_id: schema of the reader; None for the schema of the snapshot.
        """
        if snapshot is None:
            return []
        columns = self.schemas[snapshot.schema_id if schema_id is None else schema_id]
        return [{name: row.get(field_id) for name, field_id in columns.items()} for row in snapshot.rows]

    def _commit(
        self, kind: CommitKind, kept: tuple[ModelRow, ...], added: tuple[ModelRow, ...], watermark: int | None
    ) -> ModelSnapshot:
        base = self.latest
        before = base.watermark if base else None
        snapshot = ModelSnapshot(
            id=base.id + 1 if base else 1,
            kind=kind,
            schema_id=len(self.schemas) - 1,
            rows=kept + added,
            delta_record_count=len(kept) + len(added) - len(self.rows),
            watermark=max((mark for mark in (before, watermark) if mark is not None), default=None),
        )
        self.snapshots.append(snapshot)
        return snapshot


def by_group(
    rows: Iterable[Mapping[str, object]], group_of: Callable[[Mapping[str, object]], Hashable]
) -> dict[Hashable, list[Mapping[str, object]]]:
    """Split rows into groups that keep the order; two reads of a queue must agree on each bucket's group."""
    groups: dict[Hashable, list[Mapping[str, object]]] = {}
    for row in rows:
        groups.setdefault(group_of(row), []).append(row)
    return groups
