"""Arguments of wrong types: each is refused with an error of the project that says what was expected."""

from __future__ import annotations

import datetime as dt
import inspect
import re
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import penstock
from penstock import InvalidFilterError, InvalidOptionError, InvalidSchemaError, SchemaMismatchError
from penstock.catalog.changes import SetOption

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from penstock import Catalog, Table

NAMESPACES = ("inspect", "maintenance", "versions", "preview")
FUNCTIONS = (
    "attach",
    "convert",
    "export_metrics",
    "export_parquet",
    "register",
    "ship",
    "sql",
    "last_progress",
    "last_write",
)
# What the other arguments of a call are, where they are needed.
VALID: dict[str, Any] = {
    "name": "d.t",
    "schema": "id INT",
    "rows": [{"k": 1, "dt": "a"}],
    "source": [{"k": 1}],
    "on": "k",
    "set": {"k": 1},
    "where": "k = 1",
    "text": "SHOW DATABASES",
    "query": "SELECT 1",
    "snapshot_id": 1,
    "watermark": 5,
    "buckets": 2,
    "timeout": 0,
    "once": True,
}


class Odd:
    """An object that no argument may be."""


ODD: tuple[Any, ...] = (Odd(), 5, 1.5, True, b"x", [1], {1: 2}, ("x", 2), "x")


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = penstock.Catalog(tmp_path / "warehouse")
    catalog.create_database("d")
    return catalog


@pytest.fixture
def table(catalog: Catalog) -> Table:
    table = catalog.create_table("d.t", "k INT, dt STRING", partition_by=["dt"])
    table.append([{"k": 1, "dt": "a"}])
    return table


def _public(owner: object) -> Iterator[Callable[..., object]]:
    for name, _ in inspect.getmembers(type(owner), inspect.isfunction):
        if not name.startswith("_"):
            yield getattr(owner, name)


def _calls(
    call: Callable[..., object], more: dict[str, Any], odd_values: tuple[Any, ...] = ODD
) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield calls with one odd argument each, and their text."""
    parameters = inspect.signature(call).parameters.values()
    by_name = [each for each in parameters if each.kind is not inspect.Parameter.VAR_KEYWORD]
    for changed in by_name:
        for odd in odd_values:
            given = {each.name: _other(each, more) for each in by_name if _is_needed(each)} | {changed.name: odd}
            several = [given.pop(each.name) for each in by_name if each.kind is inspect.Parameter.VAR_POSITIONAL]
            placed = [given.pop(each.name) for each in by_name if several and _is_placed(each) and each.name in given]
            yield f"{call.__name__}({changed.name}={odd!r})", partial(call, *placed, *several, **given)


def _is_needed(parameter: inspect.Parameter) -> bool:
    is_several = parameter.kind is inspect.Parameter.VAR_POSITIONAL
    return is_several or parameter.default is parameter.empty or parameter.name in {"timeout", "once"}


def _is_placed(parameter: inspect.Parameter) -> bool:
    return parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD


def _other(parameter: inspect.Parameter, more: dict[str, Any]) -> object:
    return more.get(parameter.name, VALID.get(parameter.name, "x" if parameter.annotation in {"str", str} else None))


def test_no_argument_raises_an_error_of_python(
    catalog: Catalog, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each parameter of each method gets each odd value; a call may succeed, where the value is allowed."""
    monkeypatch.chdir(tmp_path)
    more = {"catalog": catalog, "warehouse": catalog, "table": table, "directory": tmp_path / "none"}
    functions = [getattr(penstock, name) for name in FUNCTIONS]
    owners = [catalog, table, *(getattr(table, name) for name in NAMESPACES)]
    raw = []
    count = 0
    for call in (*functions, *(each for owner in owners for each in _public(owner))):
        for text, run in _calls(call, more):
            count += 1
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    result = run()
                    if inspect.isgenerator(result):
                        list(result)
            except penstock.TableStoreError:
                pass
            except Exception as error:  # noqa: BLE001 - what is counted
                raw.append(f"{text}: {type(error).__name__}: {error}")
    assert raw == []
    assert count > 1_500


# Arguments that a method checks itself, with an example of what it takes, or Spark.
CHECKED_BY_METHODS = {
    "options", "filter", "where", "spark", "sdf", "trigger", "rows", "schema", "changes", "connection", "matched",
    "not_matched", "not_matched_by_source",
}  # fmt: skip


def test_every_argument_is_checked_before_anything_else(catalog: Catalog, table: Table) -> None:
    more = {
        "catalog": catalog,
        "warehouse": catalog,
        "table": table,
        "tables": table,
        "source": "x",
        "directory": "x",
        "next_snapshot": 1,
        "partitions": "dt=a",
    }
    functions = [penstock.attach, penstock.convert, penstock.export_metrics, penstock.export_parquet]
    owners = [catalog, table, *(getattr(table, name) for name in NAMESPACES)]
    for call in (*functions, *(each for owner in owners for each in _public(owner))):
        for text, run in _calls(call, more, odd_values=(Odd(),)):
            name = text.partition("(")[2].partition("=")[0]
            if name not in CHECKED_BY_METHODS | ({"source"} if call.__name__ == "merge" else set()):
                with pytest.raises(InvalidOptionError, match=f"argument {name} = "):
                    run()


WHOLE = "expected a whole number"


@pytest.mark.parametrize(
    ("owner", "method", "args", "more", "error", "says"),
    [
        ("table", "append", [5], {}, SchemaMismatchError, "cannot take rows from a int: give a Spark, pandas"),
        ("table", "to_arrow", [], {"filter": 7}, InvalidFilterError, "expected text such as .* not a builtins.int"),
        ("table", "to_arrow", [3], {}, InvalidOptionError, "expected a name or a list of names or None, not a int"),
        ("table", "to_arrow", [[1]], {}, InvalidOptionError, r"columns = \[1\]: expected a name or a list of names"),
        (
            "table",
            "to_arrow",
            [],
            {"limit": "x"},
            InvalidOptionError,
            f"table d.t: to_arrow: argument limit = 'x': {WHOLE}",
        ),
        ("table", "to_arrow", [], {"snapshot_id": "x"}, InvalidOptionError, "'scan.snapshot-id' = 'x'"),
        (
            "table",
            "with_options",
            [{1: 2}],
            {},
            InvalidOptionError,
            "option 1: expected text such as 'target-file-size'",
        ),
        ("table", "with_options", [5], {}, InvalidOptionError, "options: expected a mapping .* not a int"),
        ("table", "create_tag", [5], {}, InvalidOptionError, "table d.t: create_tag: argument name = 5: expected text"),
        ("versions", "delete_branch", [None], {}, InvalidOptionError, "name = None: expected text, not a NoneType"),
        ("table", "drop_partitions", [5], {}, InvalidOptionError, "expected a mapping by names or text, not a int"),
        (
            "table",
            "overwrite",
            [[]],
            {"partition": {1: 2}},
            InvalidOptionError,
            "expected a mapping by names or text or None",
        ),
        ("table", "compact", [], {"dry_run": "yes"}, InvalidOptionError, "dry_run = 'yes': expected True or False"),
        ("table", "expire_snapshots", [], {"retain_max": 1.5}, InvalidOptionError, f"retain_max = 1.5: {WHOLE}"),
        ("table", "expire_snapshots", [], {"retain_max": True}, InvalidOptionError, f"{WHOLE} or None, not a bool"),
        ("table", "rollback_to", [], {"timestamp": "x"}, InvalidOptionError, "a datetime or a whole number or None"),
        ("maintenance", "reset_consumer", ["c", "x"], {}, InvalidOptionError, f"{WHOLE} or 'earliest' or 'latest'"),
        (
            "table",
            "write_stream",
            [5],
            {"checkpoint": "c"},
            InvalidOptionError,
            "a streaming DataFrame of Spark",
        ),
        ("table", "at", [5], {}, InvalidOptionError, "argument location = 5: expected text or a path"),
        ("catalog", "create_table", ["d.u", 3], {}, InvalidSchemaError, "cannot derive columns from a int"),
        ("catalog", "create_table", ["d.u", {"id": int}], {}, InvalidSchemaError, "column 'id': int is no type"),
        (
            "catalog",
            "create_table",
            [5, "a INT"],
            {},
            InvalidOptionError,
            "Catalog.create_table: argument name = 5: expec",
        ),
        (
            "catalog",
            "load_table",
            [b"d.t"],
            {},
            InvalidOptionError,
            r"argument name = b'd\.t': expected text, not a bytes",
        ),
        ("catalog", "alter_table", ["d.t", 5], {}, InvalidSchemaError, "cannot apply a int"),
        (
            "catalog",
            "drop_table",
            ["d.t"],
            {"if_exists": 1},
            InvalidOptionError,
            "if_exists = 1: expected True or False",
        ),
        ("penstock", "Catalog", [5], {}, InvalidOptionError, "warehouse = 5: expected text or a path, not a int"),
        ("penstock", "register", [5], {}, InvalidOptionError, "expected a SparkSession, not a int"),
    ],
)
def test_the_error_says_what_was_expected(  # noqa: PLR0913, PLR0917 - the columns of the table
    catalog: Catalog,
    table: Table,
    owner: str,
    method: str,
    args: list[object],
    more: dict[str, object],
    error: type[Exception],
    says: str,
) -> None:
    owners = {"catalog": catalog, "table": table, "penstock": penstock} | {
        each: getattr(table, each) for each in NAMESPACES
    }
    with pytest.raises(error, match=says):
        getattr(owners[owner], method)(*args, **more)
    assert table.to_arrow()["k"].to_pylist() == [1]


def test_values_of_similar_types_are_accepted(catalog: Catalog, table: Table) -> None:
    assert table.to_arrow(columns=("k",), limit=np.int64(1)).num_rows == 1
    assert table.to_arrow(columns={"k"}, snapshot_id=np.int32(1)).num_rows == 1
    assert table.expire_snapshots(older_than=dt.datetime.now(dt.UTC), dry_run=np.True_).snapshot_ids == ()
    altered = catalog.alter_table("d.t", SetOption(key="compaction.min.file-num", value="7"))
    assert altered.options["compaction.min.file-num"] == "7"


def test_wrong_names_of_arguments_are_errors_of_python(table: Table) -> None:
    with pytest.raises(TypeError, match=re.escape("to_arrow() got an unexpected keyword argument 'snapshot'")):
        table.to_arrow(snapshot="x")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'rows'"):
        table.append()  # type: ignore[call-arg]
    for wrong, message in (
        (
            lambda: table.create_tag(nme="x"),
            "Table.create_tag() got an unexpected keyword argument 'nme'; did you mean name?",
        ),
        (
            lambda: table.rollback_to(snapshot=1),
            "Table.rollback_to() got an unexpected keyword argument 'snapshot'; did you",
        ),
        (lambda: table.delete(condition="k = 1"), "Table.delete() got an unexpected keyword argument 'condition'"),
        (table.versions.create_branch, "TableVersions.create_branch() missing a required argument: 'name'"),
    ):
        with pytest.raises(TypeError, match=re.escape(message)):
            wrong()  # type: ignore[no-untyped-call]


def test_methods_keep_their_names_and_signatures(table: Table) -> None:
    assert table.create_tag.__name__ == "create_tag"
    assert list(inspect.signature(table.drop_partitions).parameters) == ["partitions"]
