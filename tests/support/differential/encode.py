"""Encode cases as JSON: a value without a JSON form is an object with one key, which names its kind."""

from __future__ import annotations

import json
from dataclasses import fields
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from tests.support.differential.case import (
    Add,
    Append,
    Case,
    Compact,
    Delete,
    Drop,
    DropPartitions,
    First,
    FuzzColumn,
    FuzzJunction,
    FuzzLeaf,
    Index,
    Insert,
    Read,
    ReadOld,
    Reformat,
    Refuse,
    Remove,
    Rename,
    Step,
    Update,
    Widen,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_STEPS: Final = {
    each.__name__.lower(): each
    for each in (
        Append,
        Refuse,
        Add,
        Drop,
        Rename,
        Widen,
        ReadOld,
        Read,
        First,
        Delete,
        Remove,
        Update,
        DropPartitions,
        Reformat,
        Compact,
        Index,
        Insert,
    )
}
_ENCODERS: Final[dict[type, tuple[str, Callable[[Any], Any]]]] = {
    float: ("float", repr),
    bytes: ("bytes", bytes.hex),
    Decimal: ("decimal", str),
    Fraction: ("fraction", str),
    tuple: ("pair", lambda items: [_encoded(each) for each in items]),
    FuzzColumn: ("column", lambda column: {each.name: getattr(column, each.name) for each in fields(column)}),
    FuzzLeaf: ("leaf", lambda leaf: {each.name: _field(getattr(leaf, each.name)) for each in fields(leaf)}),
    FuzzJunction: ("junction", lambda tree: {"operator": tree.operator, "parts": _field(tree.parts)}),
}
_DECODERS: Final[dict[str, Callable[[Any], Any]]] = {
    "float": float,
    "bytes": bytes.fromhex,
    "decimal": Decimal,
    "fraction": Fraction,
    "pair": lambda items: tuple(map(_decoded, items)),
    "row": lambda row: {name: _decoded(value) for name, value in row.items()},
    "cells": lambda cells: {int(key): _decoded(value) for key, value in cells.items()},
    "column": lambda column: FuzzColumn(**column),
    "junction": lambda tree: FuzzJunction(operator=tree["operator"], parts=_tuples(_decoded(tree["parts"]))),
    "leaf": lambda leaf: FuzzLeaf(**{name: _tuples(_decoded(value)) for name, value in leaf.items()}),
}


def encode_case(case: Case) -> str:
    """Encode a case as text, one line per step."""
    head = {each.name: _field(getattr(case, each.name)) for each in fields(case) if each.name != "steps"}
    steps = [
        {"step": type(step).__name__.lower(), **{each.name: _field(getattr(step, each.name)) for each in fields(step)}}
        for step in case.steps
    ]
    lines = [f" {_text(name)}: {_text(value)}" for name, value in head.items()]
    body = ",\n".join(f"  {_text(step)}" for step in steps)
    return "{\n" + ",\n".join([*lines, f' "steps": [\n{body}\n ]']) + "\n}\n"


def decode_case(text: str) -> Case:
    """Decode a case."""
    json_case = json.loads(text)
    head = {name: _tuples(_decoded(value)) for name, value in json_case.items() if name != "steps"}
    head["options"] = dict(head["options"])
    return Case(**head, steps=tuple(map(_step, json_case["steps"])))


def _step(given: dict[str, Any]) -> Step:
    kind = _STEPS[given["step"]]
    step: Step = kind(**{name: _tuples(_decoded(value)) for name, value in given.items() if name != "step"})
    return step


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _tuples(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _field(value: Any) -> Any:
    return [_encoded(each) for each in value] if isinstance(value, tuple) else _encoded(value)


def _encoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_encoded(each) for each in value]
    if isinstance(value, dict):
        kind = "cells" if any(isinstance(key, int) for key in value) else "row"
        return {kind: {str(key): _encoded(each) for key, each in value.items()}}
    known = _ENCODERS.get(type(value))
    return value if known is None else {known[0]: known[1](value)}


def _decoded(value: Any) -> Any:
    if isinstance(value, dict):
        ((kind, inner),) = value.items()
        return _DECODERS[kind](inner)
    return [_decoded(each) for each in value] if isinstance(value, list) else value
