"""Declarations of operations, and the methods that derive from them."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import pytest

from penstock import Catalog, InvalidOptionError, Table, TableMaintenance, TableVersions
from penstock.api.handle import TableHandle
from penstock.api.operations.compaction import Compact
from penstock.api.operations.consumers import ResetConsumer
from penstock.api.operations.declaration import (
    Operation,
    description_of,
    documentation_of,
    method,
    method_name,
    parameters_of,
    section_of,
)
from penstock.api.operations.snapshots import ExpireSnapshots, RemoveMissingFiles
from penstock.api.procedures import PROCEDURES

OPERATIONS = {procedure.operation for procedure in PROCEDURES.values()}


def methods() -> dict[str, Any]:
    return {
        name: each
        for owner in (Table, Catalog, TableMaintenance, TableVersions)
        for name, each in vars(owner).items()
        if inspect.isfunction(each) and each.__module__ == method.__module__
    }


def test_every_operation_of_a_procedure_is_the_method_of_its_name() -> None:
    found = methods()
    for operation in OPERATIONS:
        derived = found[method_name(operation)]
        assert derived.__doc__ == documentation_of(operation)
        names = list(inspect.signature(derived).parameters)
        assert names == ["self", *parameters_of(operation)]


@pytest.mark.parametrize("operation", sorted(OPERATIONS, key=lambda each: each.__name__))
def test_the_docstring_describes_the_arguments(operation: type) -> None:
    described = section_of(operation, "Args")
    assert set(described) <= set(parameters_of(operation))
    undescribed = set(parameters_of(operation)) - set(described) - {"name"}
    # Those of a database are those of each table.
    assert not undescribed or "as ``Table.compact`` does" in description_of(operation)


def test_a_docstring_has_its_parts() -> None:
    assert description_of(RemoveMissingFiles).startswith("Find data files of the latest snapshot that are missing")
    assert section_of(RemoveMissingFiles, "Args") == {"dry_run": "only return them."}
    assert section_of(RemoveMissingFiles, "Returns") == {}
    text = documentation_of(ExpireSnapshots)
    assert text.index("Times are in ms") < text.index("Args:") < text.index("Returns:")
    assert "Times are in ms" not in documentation_of(Compact)


def test_an_annotation_that_is_no_argument_is_an_error_of_the_declaration() -> None:
    @dataclass(frozen=True)
    class Odd(Operation[TableHandle, None]):
        value: complex = 0

    Odd.__dataclass_fields__["value"].type = complex
    with pytest.raises(TypeError, match="not the annotation of an argument"):
        parameters_of(Odd)


def test_a_method_checks_its_arguments_first() -> None:
    catalog = Catalog("memory://declaration")
    catalog.create_database("d")
    table = catalog.create_table("d.t", "id INT")
    with pytest.raises(
        InvalidOptionError, match=r"table d\.t: reset_consumer: argument next_snapshot = 'x': expected a"
    ):
        table.maintenance.reset_consumer("me", "x")  # type: ignore[arg-type]
    with pytest.raises(InvalidOptionError, match=r"Catalog\.migrate: argument copy = 'no': expected True or False"):
        catalog.migrate("x", "d.t", copy="no")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unexpected keyword argument 'until'"):
        table.expire_snapshots(until=5)  # type: ignore[call-arg]
    assert ResetConsumer("me", 1) == ResetConsumer("me", 1)
