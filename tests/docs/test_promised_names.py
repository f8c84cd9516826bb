"""What the package promises."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING

import griffe
from scripts.api_page import load_package

import penstock
from penstock import errors

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
# Fields of results that are values of the format: a user reads their attributes, if at all.
NOT_EXPORTED = {
    "penstock.format.manifest.entry.ManifestEntry",
    "penstock.format.types.data_types.DataType",
    "penstock.table.compact.task.CompactTask",
    "penstock.table.message.CommitMessage",
    "penstock.table.stream.offset.StreamOffset",
    # What `col`, `before`, `after` and `sql` make, which nobody names.
    "penstock.catalog.changes.Place",
    "penstock.dialect.outcome.Value",
    "penstock.predicate.tree.Column",
    # Aliases of what Python and Arrow have.
    "penstock.api.arguments.SchemaLike",
    "penstock.catalog.changes.ColumnPath",
    "penstock.api.arguments.Filter",
    "penstock.api.arguments.Names",
    "penstock.api.arguments.Options",
    "penstock.api.arguments.Progress",
    "penstock.api.rows.Rows",
    "penstock.api.row_changes.Clauses",
    "penstock.table.dml.merge.MatchedClause",
}


def test_every_error_and_warning_is_in_the_package() -> None:
    kinds = [name for name, kind in vars(errors).items() if inspect.isclass(kind) and issubclass(kind, Exception)]
    assert [name for name in kinds if not name.startswith("_") and not hasattr(penstock, name)] == []
    assert set(kinds) <= set(penstock.__all__)


def test_every_name_of_the_package_can_be_imported() -> None:
    assert sorted(penstock.__all__) == penstock.__all__
    assert [name for name in penstock.__all__ if getattr(penstock, name, None) is None] == []


def test_whatever_a_public_method_takes_or_returns_is_in_the_package() -> None:
    package = load_package()
    exported = {_target(package[name]).path: _target(package[name]) for name in penstock.__all__}
    used = {
        path
        for target in exported.values()
        if isinstance(target, griffe.Class | griffe.Function)
        for path in _names_used(target)
    }
    assert used - set(exported) == NOT_EXPORTED


def test_pages_import_public_names_alone() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        assert re.findall(r"^(?:from|import) penstock\.\S+", page.read_text("utf-8"), re.MULTILINE) == [], page


def _names_used(target: griffe.Class | griffe.Function) -> Iterator[str]:
    functions = [target] if isinstance(target, griffe.Function) else []
    annotations: list[object] = []
    if isinstance(target, griffe.Class):
        for name, member in {**target.inherited_members, **target.members}.items():
            found = _target(member)
            if isinstance(found, griffe.Function) and not name.startswith("_"):
                functions.append(found)
            elif isinstance(found, griffe.Attribute) and not name.startswith("_"):
                annotations.append(found.annotation)
    for function in functions:
        annotations += [function.returns, *(each.annotation for each in function.parameters)]
    for annotation in annotations:
        if isinstance(annotation, griffe.Expr):
            for part in annotation.iterate(flat=True):
                if isinstance(part, griffe.ExprName) and part.canonical_path.startswith("penstock."):
                    yield part.canonical_path


def _target(found: griffe.Object | griffe.Alias) -> griffe.Object:
    return found.final_target if isinstance(found, griffe.Alias) else found
