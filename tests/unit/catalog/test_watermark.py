"""Watermarks and computed columns: in options, as Flink stores them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.catalog.changes import AddColumn, DropColumn, RemoveOption, RenameColumn, SetOption, UpdateColumnType
from penstock.errors import AlreadyExistsError, InvalidSchemaError
from penstock.format.schema import TableSchema, decode_schema
from penstock.format.watermark import (
    EXPRESSION_KEY,
    ROWTIME_KEY,
    TYPE_KEY,
    DeclaredWatermark,
    computed_columns,
    declared_watermark,
)

GOLDEN = Path(__file__).parents[2] / "golden/data/warehouse/flink131s.db"
Build = Callable[..., TableSchema]

COMPUTED = {"schema.1.name": "c", "schema.1.expr": "UPPER(`a`)", "schema.1.data-type": "STRING"}


def _golden(table: str) -> TableSchema:
    path = GOLDEN / table / "schema/schema-0"
    return decode_schema(path.read_bytes(), str(path))


def test_a_watermark_is_stored_as_flink_stores_it(new_schema: Build) -> None:
    schema = new_schema("a INT, order_time TIMESTAMP(3)", watermark=("order_time", "interval '5' seconds"))
    stored = {key: value for key, value in _golden("f_watermark").options if key.startswith("schema.")}
    assert schema.option_map == stored


@pytest.mark.parametrize(
    ("data_type", "text"),
    [
        ("TIMESTAMP(0)", "TIMESTAMP(0)"),
        ("TIMESTAMP(3) NOT NULL", "TIMESTAMP(3) NOT NULL"),
        ("TIMESTAMP_LTZ(3)", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
    ],
)
def test_its_type_is_that_of_the_column(data_type: str, text: str, new_schema: Build) -> None:
    assert new_schema(f"t {data_type}", watermark=("t", None)).option_map == {
        ROWTIME_KEY: "t",
        EXPRESSION_KEY: "`t`",
        TYPE_KEY: text,
    }


@pytest.mark.parametrize(
    ("column", "interval", "words"),
    [
        ("z", "INTERVAL '5' SECOND", "'z' is not one of its columns: a, t, t6"),
        ("a", "INTERVAL '5' SECOND", r"'a' has type INT; an event time"),
        ("t6", "INTERVAL '5' SECOND", r"'t6' has type TIMESTAMP\(6\).*p from 0 to 3"),
        ("t", "5 seconds", "INTERVAL '5' SECOND"),
        ("t", "INTERVAL '5' FORTNIGHT", "INTERVAL '5' SECOND"),
    ],
)
def test_what_cannot_be_a_watermark_is_refused(column: str, interval: str, words: str, new_schema: Build) -> None:
    with pytest.raises(InvalidSchemaError, match=rf"shop\.orders.*{words}"):
        new_schema("a INT, t TIMESTAMP(3), t6 TIMESTAMP(6)", watermark=(column, interval))


@pytest.mark.parametrize(
    ("interval", "millis"),
    [
        (None, 0),
        ("", 0),
        ("INTERVAL '5' SECOND", 5_000),
        ("INTERVAL '0.5' SECOND(1,1)", 500),
        ("INTERVAL '1.25' SECOND", 1_250),
        ("INTERVAL '10' MINUTES", 600_000),
        ("INTERVAL '2' HOUR", 7_200_000),
        ("interval '1' day", 86_400_000),
    ],
)
def test_a_declared_delay_is_read_back_in_milliseconds(interval: str | None, millis: int, new_schema: Build) -> None:
    schema = new_schema("`odd``name` TIMESTAMP(3)", watermark=("odd`name", interval))
    assert declared_watermark(schema.option_map) == DeclaredWatermark(column="odd`name", delay_millis=millis)


def test_an_expression_that_is_more_than_a_delay_is_declared_but_not_evaluable() -> None:
    options = {ROWTIME_KEY: "t", EXPRESSION_KEY: "LEAST(`t`, `u`) - INTERVAL '5' SECOND"}
    assert declared_watermark(options) == DeclaredWatermark(column="t", delay_millis=None)
    assert declared_watermark({}) is None


def test_tables_that_flink_made_are_understood() -> None:
    computed = _golden("f_watermark_expr")
    assert computed_columns(computed.fields, computed.option_map) == {2: "order_time"}
    assert declared_watermark(computed.option_map) == DeclaredWatermark(column="order_time", delay_millis=0)
    plain = _golden("f_watermark")
    assert declared_watermark(plain.option_map) == DeclaredWatermark(column="order_time", delay_millis=5_000)


def test_a_rename_reaches_the_watermark_and_the_expressions(new_schema: Build, evolve: Build) -> None:
    schema = new_schema(
        "a STRING, t TIMESTAMP(3)",
        options={**COMPUTED, "schema.1.expr": "CONCAT(`a`, '`a`', `aa`)"},
        watermark=("t", "INTERVAL '5' SECOND"),
    )
    evolved = evolve(schema, RenameColumn(column="t", new_name="u"), RenameColumn(column="a", new_name="b"))
    options = evolved.option_map
    assert (options[ROWTIME_KEY], options[EXPRESSION_KEY]) == ("u", "`u` - INTERVAL '5' SECOND")
    assert options["schema.1.expr"] == "CONCAT(`b`, '`a`', `aa`)"


def test_a_column_that_the_watermark_or_an_expression_needs_cannot_be_dropped(new_schema: Build, evolve: Build) -> None:
    schema = new_schema("a STRING, t TIMESTAMP(3), x INT", options=COMPUTED, watermark=("t", "INTERVAL '5' SECOND"))
    with pytest.raises(InvalidSchemaError, match=r"'schema\.watermark\.0\.rowtime'.* needs it"):
        evolve(schema, DropColumn(column="t"))
    with pytest.raises(InvalidSchemaError, match=r"'schema\.1\.expr' needs it"):
        evolve(schema, DropColumn(column="a"))
    without = [RemoveOption(key=key) for key in (ROWTIME_KEY, EXPRESSION_KEY, TYPE_KEY)]
    assert "t" not in evolve(schema, *without, DropColumn(column="t")).field_names


def test_the_watermark_column_keeps_a_type_that_flink_takes(new_schema: Build, evolve: Build) -> None:
    schema = new_schema("t TIMESTAMP(3)", watermark=("t", "INTERVAL '5' SECOND"))
    with pytest.raises(InvalidSchemaError, match="p from 0 to 3"):
        evolve(schema, UpdateColumnType(column="t", type="TIMESTAMP(6)"))
    with pytest.raises(InvalidSchemaError, match="'z' is not one of its columns"):
        evolve(schema, SetOption(key=ROWTIME_KEY, value="z"))


def _computed(schema: TableSchema) -> dict[str, str]:
    return {key: value for key, value in schema.options if key.startswith("schema.")}


def test_computed_columns_behind_a_dropped_column_move_forward(new_schema: Build, evolve: Build) -> None:
    # In Flink: a, pt, b, c, mt, d; places 1 and 4 are computed.
    options = {
        "schema.1.name": "pt",
        "schema.1.expr": "PROCTIME()",
        "schema.4.name": "mt",
        "schema.4.metadata": "timestamp",
        "schema.4.virtual": "true",
    }
    schema = new_schema("a INT, b INT, c INT, d INT", options=options)
    assert _computed(evolve(schema, DropColumn(column="d"))) == options
    moved = {key.replace("schema.4.", "schema.3."): value for key, value in options.items()}
    assert _computed(evolve(schema, DropColumn(column="b"))) == moved
    assert _computed(evolve(schema, DropColumn(column="c"))) == moved
    both = {key.replace("schema.1.", "schema.0."): value for key, value in moved.items()}
    assert _computed(evolve(schema, DropColumn(column="a"))) == both


def test_a_physical_column_cannot_take_the_name_of_a_computed_one(new_schema: Build, evolve: Build) -> None:
    schema = new_schema("a STRING, b INT", options=COMPUTED)
    with pytest.raises(AlreadyExistsError, match="computed column"):
        evolve(schema, AddColumn(column="c", type="INT"))
    with pytest.raises(AlreadyExistsError, match="computed column"):
        evolve(schema, RenameColumn(column="b", new_name="c"))
