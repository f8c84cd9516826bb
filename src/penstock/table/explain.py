"""The pruning funnel of a plan as text: what a read opens, and why not more.

Nothing is read for it but metadata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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

if TYPE_CHECKING:
    from penstock.table.scan import FunnelStage, ScanPlan

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")
_TITLES: Final = {
    "live": "in the manifests read",
    "partition": "after partitions",
    "bucket": "after buckets",
    "statistics": "after statistics",
    "difference": "not in the start",
}


def explain_plan(plan: ScanPlan) -> str:
    """Return a few lines about a plan: the snapshot, the filter, and what each step of pruning left."""
    if plan.snapshot is None:
        return "nothing was committed yet: no files to read"
    funnel = plan.funnel
    lines = [
        f"{_span(plan)}snapshot {plan.snapshot.id} ({plan.snapshot.commit_kind}), schema {plan.snapshot.schema_id}",
        f"filter: {format_predicate(plan.predicate.root)}",
        f"manifests: {funnel.manifests_read} of {funnel.manifests_total} read",
        f"{_files(plan)}: {funnel.files_total}, rows: {'unknown' if funnel.rows_total is None else funnel.rows_total}",
        *(_stage_line(stage) for stage in funnel.stages),
    ]
    left = sorted({partition.rest.columns for partition in plan.partitions if not partition.rest.is_always_true})
    columns = sorted({name for names in left for name in names})
    lines.append(f"filtered by row: {', '.join(columns)}" if columns else "filtered by row: nothing")
    return "\n".join(lines)


def format_bytes(size: int) -> str:
    """Return a size as people read it, ``1.5 MiB``."""
    amount = float(size)
    for unit in _UNITS[:-1]:
        if amount < 1024:
            return f"{amount:.1f} {unit}" if unit != "B" else f"{size} B"
        amount /= 1024
    return f"{amount:.1f} {_UNITS[-1]}"


def format_predicate(node: Predicate) -> str:
    """Return a filter as WHERE text; literals as Python prints their internal values."""
    match node:
        case Constant(value=value):
            return {True: "TRUE", False: "FALSE", None: "NULL"}[value]
        case And(operands=operands):
            return " AND ".join(_nested(operand) for operand in operands) or "TRUE"
        case Or(operands=operands):
            return " OR ".join(_nested(operand) for operand in operands) or "FALSE"
        case Not(operand=operand):
            return f"NOT {_nested(operand)}"
        case Compare() | In() | IsNull() | StartsWith():
            return _format_leaf(node)


def _span(plan: ScanPlan) -> str:
    return "" if plan.after_snapshot_id is None else f"changes after snapshot {plan.after_snapshot_id} up to "


def _files(plan: ScanPlan) -> str:
    is_state = plan.after_snapshot_id is None or any(stage.name == "difference" for stage in plan.funnel.stages)
    return "live files" if is_state else "appended files"


def _format_leaf(node: Compare | In | IsNull | StartsWith) -> str:
    name = f"`{node.column}`"
    match node:
        case Compare(operator=operator, value=value):
            return f"{name} {operator} {value!r}"
        case In(values=values, negated=negated):
            return f"{name} {'NOT ' if negated else ''}IN ({', '.join(map(repr, values))})"
        case IsNull(negated=negated):
            return f"{name} IS {'NOT ' if negated else ''}NULL"
        case StartsWith(prefix=prefix, negated=negated):
            return f"{name} {'NOT ' if negated else ''}LIKE {f'{prefix}%'!r}"


def _nested(node: Predicate) -> str:
    text = format_predicate(node)
    return f"({text})" if isinstance(node, And | Or) else text


def _stage_line(stage: FunnelStage) -> str:
    return (
        f"{_TITLES[stage.name]}: {stage.partitions} partitions, {stage.buckets} buckets, {stage.files} files, "
        f"{format_bytes(stage.bytes)}, {stage.rows} rows"
    )
