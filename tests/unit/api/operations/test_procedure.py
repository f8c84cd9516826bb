"""A procedure is declared in one place."""

import re
from dataclasses import KW_ONLY, dataclass
from typing import Annotated

import pytest
from tests.unit.dialect.conftest import Sql

from penstock import InvalidOptionError
from penstock.api.handle import TableHandle
from penstock.api.operations.declaration import Named, Operation
from penstock.api.operations.procedure import Extra, Procedure
from penstock.api.procedures import PROCEDURES


@dataclass(frozen=True, slots=True)
class CountTags(Operation[TableHandle, int]):
    """Count the tags of a table.

    Args:
        prefix: with which their names begin.
    """

    prefix: Annotated[str, Named("starts_with", aliases=("startsWith",))] = ""
    _: KW_ONLY
    dry_run: bool = False

    def run(self, table: TableHandle, /) -> int:
        return -1 if self.dry_run else sum(name.startswith(self.prefix) for name in table.store.list_tags())


@pytest.fixture
def tagged(shop: Sql, monkeypatch: pytest.MonkeyPatch) -> Sql:
    """A table with the tag ``one``, and a procedure that is declared here."""
    mode = Extra("mode", only=("fast", "slow"), refusal="expects 'fast' or 'slow' for mode", aliases=("pace",))
    declared = Procedure(
        "count_tags",
        CountTags,
        "table, starts_with, mode, dry_run",
        "tags BIGINT",
        lambda table, operation: [(operation.run(table),)],
        extras=(mode,),
        takes_database=True,
    )
    monkeypatch.setitem(PROCEDURES, "count_tags", declared)  # type: ignore[arg-type]
    shop("CALL sys.create_tag('orders', 'one')")
    return shop


def test_a_declaration_is_all_that_a_procedure_needs(tagged: Sql) -> None:
    assert tagged.rows("CALL sys.count_tags('orders', 'o')") == [{"tags": 1}]
    assert tagged.rows("CALL sys.count_tags(table => 'orders', startsWith => 'x', pace => 'SLOW')") == [{"tags": 0}]
    assert tagged.rows("CALL sys.count_tags('shop.*')") == [{"tags": 1}]
    assert tagged.rows("SHOW PROCEDURES LIKE 'count%'") == [
        {"procedure name": "sys.count_tags", "arguments": "table, starts_with, mode, dry_run"}
    ]


def test_a_procedure_changes_something_unless_a_dry_run_is_asked_for(tagged: Sql) -> None:
    assert tagged.rows("CALL sys.count_tags('orders', dry_run => TRUE)") == [{"tags": -1}]
    assert tagged.rows("CALL sys.count_tags('orders', dry_run => FALSE)") == [{"tags": 1}]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("'orders', 'o', 'idle'", "sys.count_tags expects 'fast' or 'slow' for mode"),
        ("'orders', pace => 'fast', mode => 'fast'", "was given 'mode' twice"),
        ("'orders', dry_run => 'no'", "expects TRUE or FALSE for dry_run, found 'no'"),
        ("starts_with => 'o'", "needs the argument table"),
        ("'orders', begins => 'o'", "has no argument 'begins'; there are table, starts_with, mode, dry_run"),
    ],
)
def test_arguments_that_do_not_fit_the_declaration_are_refused(tagged: Sql, arguments: str, says: str) -> None:
    with pytest.raises(InvalidOptionError, match=re.escape(says)):
        tagged(f"CALL sys.count_tags({arguments})")
