"""Java Paimon and pypaimon read a table that was replaced in its place, and its history."""

from pathlib import Path

import pytest
from tests.interop import ours
from tests.interop.canonical import sort_rows, table_of
from tests.interop.engines import Engine, JavaPaimon, Row
from tests.interop.values import FORMATS

from penstock.catalog.new_schema import TableDefinition
from penstock.catalog.staged_tables import NewState, commit_staged, stage_replacement
from penstock.catalog.warehouse import open_warehouse
from penstock.datafile.types import to_arrow_schema
from penstock.format.types.ddl import parse_columns
from penstock.table.write.writer import write_arrow

OLD: list[Row] = [{"id": 1, "name": "a", "k": 5, "dt": "x"}, {"id": 2, "name": None, "k": 6, "dt": "y"}]
NEW: list[Row] = [{"price": 1.5, "id": 3, "k": "seven", "dt": "x"}, {"price": None, "id": 4, "k": None, "dt": "z"}]


def replace(location: Path, columns: str, rows: list[Row], options: dict[str, str]) -> None:
    definition = TableDefinition(columns=parse_columns(columns), partition_by=("dt",), options=tuple(options.items()))
    staged = stage_replacement(open_warehouse(str(location.parent.parent)), ours.name_of(location), definition)
    assert isinstance(staged, NewState)
    messages = write_arrow(staged.ref, table_of(rows, to_arrow_schema(staged.ref.schema.fields)))
    commit_staged(staged, staged.ref, messages)


@pytest.mark.parametrize("buckets", [("-1", "-1"), ("2", "3")], ids="to".join)
@pytest.mark.parametrize("formats", [(old, new) for old in FORMATS for new in FORMATS], ids="to".join)
def test_engines_read_what_replaced_a_table_and_what_was_there_before(
    engine: Engine, location: Path, formats: tuple[str, str], buckets: tuple[str, str]
) -> None:
    old, new = (
        {"file.format": name, "bucket": count, **({} if count == "-1" else {"bucket-key": "id"})}
        for name, count in zip(formats, buckets, strict=True)
    )
    ours.create(location, "id INT, name STRING, k INT, dt STRING", partition_by=["dt"], options=old)
    ours.append(location, OLD)
    replace(location, "price DOUBLE, id INT, k STRING, dt STRING", NEW, new)
    assert engine.read(location) == ours.read(location) == sort_rows(NEW)
    assert engine.read(location, filter=[["id", "=", 3]]) == NEW[:1]
    assert engine.read(location, snapshot=1) == ours.read(location, snapshot_id=1) == sort_rows(OLD)
    added: list[Row] = [{"price": 9.0, "id": 5, "k": "e", "dt": "x"}]
    engine.append(location, added)
    assert engine.read(location) == ours.read(location) == sort_rows([*NEW, *added])


@pytest.mark.jvm
def test_java_expires_what_was_replaced(java: JavaPaimon, location: Path) -> None:
    ours.create(location, "id INT, name STRING, k INT, dt STRING", partition_by=["dt"])
    ours.append(location, OLD)
    before = set(location.rglob("data-*"))
    replace(location, "price DOUBLE, id INT, k STRING, dt STRING", NEW, {})
    java.append(location, NEW)
    java.ask("expire", location, retain=1)
    assert not before & set(location.rglob("data-*"))
    assert ours.read(location) == java.read(location) == sort_rows(NEW * 2)
    assert ours.load(location).inspect.fsck().findings == ()
