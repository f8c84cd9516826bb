"""Find the event time column that a table of a query declares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.format.types.data_types import DataField
from penstock.format.watermark import declared_watermark, watermark_options
from penstock.options import WatermarkOptions

if TYPE_CHECKING:
    from penstock.dialect.parse.tables import TableUse
    from penstock.dialect.state import SqlState
    from penstock.format.watermark import DeclaredWatermark


def event_time_of(state: SqlState, use: TableUse) -> DeclaredWatermark | None:
    """Return the watermark that a table declares; None if there is none or the options disable it."""
    own = state.session_table(use.name)
    if own is None:
        options = {**state.load(use.name).options, **dict(use.options)}
        is_wanted = WatermarkOptions.parse(options, table=".".join(use.name)).read_watermark
        return declared_watermark(options) if is_wanted else None
    clause = own.watermark
    if clause is None:
        return None
    fields = [DataField(id=place, name=each.name, type=each.type) for place, each in enumerate(own.columns)]
    return declared_watermark(dict(watermark_options(fields, clause.column, clause.interval, ".".join(own.name))))
