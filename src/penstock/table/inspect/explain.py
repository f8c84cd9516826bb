"""The pruning of a plan as text: which files a read opens, and how the others were pruned.

Only metadata is read.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from penstock.format.text.partitions import value_text
from penstock.format.types.data_types import AtomicType, TypeRoot
from penstock.predicate.tree import (
    And,
    Compare,
    Constant,
    In,
    IsNull,
    Not,
    Or,
    Predicate,
    StartsWith,
)
from penstock.printable import bytes_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.format.types.data_types import DataField
    from penstock.table.read.scan import FunnelStage, ScanPlan

_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a wall clock
_TITLES: Final = {
    "live": "in the manifests read",
    "partition": "after partitions",
    "bucket": "after buckets",
    "statistics": "after statistics",
    "file index": "after file indexes",
    "difference": "not in the start",
}


def explain_plan(plan: ScanPlan) -> str:
    """Return a few lines about a plan: the snapshot, the filter, and what each step of pruning left."""
    if plan.snapshot is None:
        return "nothing was committed yet: no files to read"
    funnel = plan.funnel
    rows = "unknown" if funnel.rows_total is None else f"{funnel.rows_total:,}"
    lines = [
        f"{_span(plan)}snapshot {plan.snapshot.id} ({plan.snapshot.commit_kind}), schema {plan.snapshot.schema_id}",
        f"filter: {format_predicate(plan.predicate.root, plan.predicate.fields)}",
        f"manifests: {funnel.manifests_read} of {funnel.manifests_total} read",
        f"{_files(plan)}: {funnel.files_total:,}, rows: {rows}",
        *(_stage_line(stage) for stage in funnel.stages),
    ]
    if plan.vectors:
        lines.append(f"files with deleted rows: {_files_with_vectors(plan)}")
    if funnel.index_files:
        lines.append(f"index files read: {funnel.index_files}, {bytes_text(funnel.index_bytes)}")
    left = sorted({partition.rest.columns for partition in plan.partitions if not partition.rest.is_always_true})
    columns = sorted({name for names in left for name in names})
    lines.append(f"filtered by row: {', '.join(columns)}" if columns else "filtered by row: nothing")
    return "\n".join(lines)


def plan_values(plan: ScanPlan) -> dict[str, Any]:
    """Return the content of ``explain_plan`` as values."""
    return {
        "snapshot_id": None if plan.snapshot is None else plan.snapshot.id,
        "after_snapshot_id": plan.after_snapshot_id,
        "filter": format_predicate(plan.predicate.root, plan.predicate.fields),
        **asdict(plan.funnel),
        "files": plan.file_count,
        "rows": plan.row_count,
        "files_with_deleted_rows": _files_with_vectors(plan),
    }


def _files_with_vectors(plan: ScanPlan) -> int:
    found = (entry.key for part in plan.partitions for entry in part.entries) if plan.vectors else ()
    return sum(key in plan.vectors for key in found)


def format_predicate(node: Predicate, fields: Sequence[DataField] = ()) -> str:
    """Return a filter as WHERE text, with literals as SQL writes them.

    Args:
        fields: of a bound filter, whose literals are internal values of these.
    """
    return _format(node, {field.name: field for field in fields})


def _format(node: Predicate, fields: Mapping[str, DataField]) -> str:
    match node:
        case Constant(value=value):
            return {True: "TRUE", False: "FALSE", None: "NULL"}[value]
        case And(operands=operands):
            return " AND ".join(_nested(operand, fields) for operand in operands) or "TRUE"
        case Or(operands=operands):
            return " OR ".join(_nested(operand, fields) for operand in operands) or "FALSE"
        case Not(operand=operand):
            return f"NOT {_nested(operand, fields)}"
        case Compare() | In() | IsNull() | StartsWith():
            return _format_leaf(node, fields.get(node.column))


def _span(plan: ScanPlan) -> str:
    return "" if plan.after_snapshot_id is None else f"changes after snapshot {plan.after_snapshot_id} up to "


def _files(plan: ScanPlan) -> str:
    is_state = plan.after_snapshot_id is None or any(stage.name == "difference" for stage in plan.funnel.stages)
    return "live files" if is_state else "appended files"


def _format_leaf(node: Compare | In | IsNull | StartsWith, field: DataField | None) -> str:
    name = f"`{node.column}`"
    match node:
        case Compare(operator=operator, value=value):
            return f"{name} {operator} {_literal(field, value)}"
        case In(values=values, negated=negated):
            return f"{name} {'NOT ' if negated else ''}IN ({', '.join(_literal(field, value) for value in values)})"
        case IsNull(negated=negated):
            return f"{name} IS {'NOT ' if negated else ''}NULL"
        case StartsWith(prefix=prefix, negated=negated):
            return f"{name} {'NOT ' if negated else ''}LIKE {_quoted(f'{prefix!s}%')}"


def _literal(field: DataField | None, value: object) -> str:
    root = field.type.root if field is not None and isinstance(field.type, AtomicType) else None
    match value:
        case bytes():
            return f"X'{value.hex()}'"
        case str():
            return _quoted(value)
        case int() if root in (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ):
            seconds, nanos = divmod(value, 1_000_000_000)
            digits = f".{nanos:09d}".rstrip("0").rstrip(".")
            return f"TIMESTAMP '{_seconds_text(seconds)}{digits}{'Z' if root is TypeRoot.TIMESTAMP_LTZ else ''}'"
        case _ if field is None:
            return str(value)
        case _ if root in (TypeRoot.DATE, TypeRoot.TIME):
            return f"{root} {_quoted(value_text(field, value))}"
        case _:
            return value_text(field, value)


def _seconds_text(seconds: int) -> str:
    try:
        return (_EPOCH + dt.timedelta(seconds=seconds)).isoformat(sep=" ")
    except OverflowError:
        return f"{seconds} seconds after 1970"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _nested(node: Predicate, fields: Mapping[str, DataField]) -> str:
    text = _format(node, fields)
    return f"({text})" if isinstance(node, And | Or) else text


def _stage_line(stage: FunnelStage) -> str:
    counts = (
        _count(stage.partitions, "partition"),
        _count(stage.buckets, "bucket"),
        _count(stage.files, "file"),
        bytes_text(stage.bytes),
        _count(stage.rows, "row"),
    )
    return f"{_TITLES[stage.name]}: {', '.join(counts)}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
