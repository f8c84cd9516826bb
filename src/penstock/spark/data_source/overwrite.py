"""Scope of ``mode("overwrite")`` and ``INSERT OVERWRITE`` through ``format("penstock")``.

Source:
    Spark ``spark.sql.sources.partitionOverwriteMode``; Delta Lake's write option ``replaceWhere``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from pyspark import TaskContext

from penstock.errors import InvalidOptionError
from penstock.table.partition_scope import OverwriteScope, WholeTable, WrittenPartitions, scope_of_filter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.table.ref import TableRef

# PySpark passes option names in lower case.
_MODE: Final = "partitionoverwritemode"
_REPLACE_WHERE: Final = "replacewhere"
_NAMES: Final = {_REPLACE_WHERE: "replaceWhere", _MODE: "partitionOverwriteMode"}
OVERWRITE_OPTIONS: Final = frozenset(_NAMES)
"""Options of a write that are not options of the table."""

_SESSION_MODE: Final = "spark.sql.sources.partitionOverwriteMode"
_MODES: Final = ("static", "dynamic")


def session_mode() -> str | None:
    """Return the session's overwrite mode as a task sees it; None if the session does not set it.

    The process that plans the write cannot read the session's settings; its tasks can, as local properties.
    """
    context = TaskContext.get()
    return None if context is None else context.getLocalProperty(_SESSION_MODE)


@dataclass(frozen=True, slots=True, kw_only=True)
class OverwriteRule:
    """The rule that decides which rows a write replaces.

    Attributes:
        scope: scope that the write's options set; None if they leave it to the session.
    """

    ref: TableRef
    scope: OverwriteScope | None = None

    @classmethod
    def of(cls, ref: TableRef, options: Mapping[str, str], *, overwrite: bool) -> Self:
        """Read the options of a write.

        Args:
            options: with keys in lower case.
            overwrite: whether the write is an overwrite, not an append.
        """
        mode, condition = options.get(_MODE), options.get(_REPLACE_WHERE)
        if mode is not None and mode.lower() not in _MODES:
            raise InvalidOptionError(
                f"table {ref.name}: option 'partitionOverwriteMode' = '{mode}': expected static or dynamic"
            )
        if condition is None:
            return cls(ref=ref, scope=None if mode is None else _scope_of_mode(ref, mode))
        if not overwrite:
            raise InvalidOptionError(
                f"table {ref.name}: option 'replaceWhere' = '{condition}' goes with mode('overwrite') only: an append "
                "replaces nothing"
            )
        if mode is not None and mode.lower() == "dynamic":
            raise InvalidOptionError(
                f"table {ref.name}: options 'replaceWhere' and 'partitionOverwriteMode' = '{mode}' contradict each "
                "other: leave one out"
            )
        return cls(ref=ref, scope=scope_of_filter(ref, condition, "replaceWhere"))

    def scope_in(self, session: str | None) -> OverwriteScope:
        """Return the scope that the write replaces.

        Args:
            session: the session's mode, as ``session_mode`` returned it to a task.
        """
        return self.scope or _scope_of_mode(self.ref, session or "static")


def check_no_overwrite(ref: TableRef, options: Mapping[str, str], what: str) -> None:
    """Refuse options of an overwrite on an operation that is not one.

    Args:
        options: with keys in lower case.
        what: the operation, such as ``a stream``.
    """
    ignored_keys = [key for key in _NAMES if key in options and options[key].lower() != "static"]
    if ignored_keys:
        raise InvalidOptionError(
            f"table {ref.name}: option '{_NAMES[ignored_keys[0]]}' = '{options[ignored_keys[0]]}' has no meaning for "
            f"{what}: give it to df.write.mode('overwrite')"
        )


def _scope_of_mode(ref: TableRef, mode: str) -> OverwriteScope:
    return WrittenPartitions() if mode.lower() == "dynamic" and ref.schema.partition_keys else WholeTable()
