"""Settings of a query that writes to a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamWrite:
    """How a query writes to a table.

    Attributes:
        checkpoint: the checkpoint directory of the query, as a path or URI for Spark.
        trigger: one of ``{"processingTime": "10 seconds"}``, ``{"availableNow": True}``, ``{"once": True}``; None to
            start each batch as soon as the previous one is done.
        output_mode: ``append``, or ``complete``: each batch replaces all rows.
        query_name: name that Spark shows.
    """

    checkpoint: str
    trigger: Mapping[str, object] | None = None
    output_mode: str = "append"
    query_name: str | None = None

    @property
    def is_complete(self) -> bool:
        """Whether each batch replaces all rows."""
        return self.output_mode.lower() == "complete"

    @property
    def is_to_finish(self) -> bool:
        """Whether the query ends on its own under this trigger."""
        return self.trigger is not None and "processingTime" not in self.trigger
