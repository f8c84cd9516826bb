"""``CALL sys.…``: names and arguments."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from penstock import InvalidOptionError, InvalidSqlError
from penstock.dialect.run.procedures.registry import PROCEDURES

if TYPE_CHECKING:
    from tests.unit.dialect.conftest import Sql

PAGE: Final = Path(__file__).parents[5] / "docs" / "sql.md"


def test_arguments_may_be_casts_as_in_the_texts_of_paimon(shop: Sql) -> None:
    shop("CALL sys.create_tag('orders', 'one', CAST(1 AS BIGINT), cast(NULL as STRING))")
    assert shop.rows("SELECT tag_name, snapshot_id FROM orders$tags") == [{"tag_name": "one", "snapshot_id": 1}]
    with pytest.raises(InvalidSqlError, match="expected AS"):
        shop("CALL sys.create_tag('orders', 'two', CAST(1))")
    with pytest.raises(InvalidSqlError, match="found '\\+': expected AS"):
        shop("CALL sys.create_tag('orders', 'two', CAST(1 + 1 AS BIGINT))")


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        ("sys.compat('orders')", InvalidSqlError, "did you mean sys.compact?"),
        ("sys.remove_unexisting_file('orders')", InvalidSqlError, "did you mean sys.remove_unexisting_files?"),
        ("sys.query_service('orders', 2)", InvalidSqlError, "no procedure sys.query_service; there are compact,"),
        ("sys.compact()", InvalidOptionError, "needs the argument table"),
        ("sys.compact(tabel => 'orders')", InvalidOptionError, "did you mean table?"),
        ("sys.compact('orders', `table` => 'orders')", InvalidOptionError, "'table' twice"),
        ("sys.expire_tags('orders', '', 1)", InvalidOptionError, "at most 2 arguments: table, older_than"),
        ("sys.compact('orders', 'dt')", InvalidOptionError, "expects key=value for partitions, found 'dt'"),
        ("sys.create_tag('orders', 'x', 'first')", InvalidOptionError, "a whole number for snapshot_id"),
        ("sys.remove_orphan_files('orders', 'yesterday')", InvalidOptionError, "a time such as"),
        ("sys.remove_orphan_files('orders', '', 'perhaps')", InvalidOptionError, "TRUE or FALSE for dry_run"),
        ("sys.compact_database(mode => 'parallel')", InvalidOptionError, "'divided' or 'combined'"),
    ],
)
def test_wrong_calls_say_what_is_right(shop: Sql, call: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says.replace("?", r"\?")):
        shop(f"CALL {call}")


def test_every_procedure_begins_with_what_it_works_on() -> None:
    assert {each.parameters[0] for each in PROCEDURES.values()} == {"table", "including_databases", "connector"}


def test_the_page_lists_every_procedure_with_its_arguments() -> None:
    section = PAGE.read_text("utf-8").partition("## Procedures")[2].partition("\n## ")[0]
    listed: dict[str, tuple[str, ...]] = {}
    for line in section.splitlines():
        if line.startswith("| `"):
            names, arguments, *_ = line.strip("| ").split(" | ")
            named = [text for text in re.findall("`([^`]+)`", arguments) if "*" not in text]
            listed |= dict.fromkeys(re.findall(r"`(\w+)`", names), tuple(", ".join(named).split(", ")))
    assert listed == {name: procedure.parameters for name, procedure in PROCEDURES.items()}
