"""Changes of a schema, one rule a test; the golden tables show that the reference does the same."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.catalog.changes import (
    FIRST,
    LAST,
    AddColumn,
    DropColumn,
    MoveColumn,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetOption,
    UpdateColumnComment,
    UpdateColumnDefault,
    UpdateColumnNullability,
    UpdateColumnType,
    UpdateComment,
    after,
    before,
)
from penstock.errors import (
    AlreadyExistsError,
    InvalidOptionError,
    InvalidSchemaError,
    NotFoundError,
    OptionWarning,
    UnsupportedFeatureError,
)
from penstock.format.schema import TableSchema, decode_schema
from penstock.format.types.text import format_sql_type

GOLDEN = Path(__file__).parents[2] / "golden/data/warehouse"
Build = Callable[..., TableSchema]


def _types(schema: TableSchema) -> dict[str, str]:
    return {field.name: format_sql_type(field.type) for field in schema.fields}


# What the reference did to these tables, schema by schema.
GOLDEN_CHANGES: list[tuple[str, list[list[SchemaChange]]]] = [
    (
        "java142.db/evolve",
        [
            [AddColumn(column="d", type="DOUBLE")],
            [RenameColumn(column="a", new_name="aa")],
            [DropColumn(column="b")],
            [UpdateColumnType(column="aa", type="BIGINT")],
            [UpdateColumnType(column="c", type="DECIMAL(20, 2)"), UpdateColumnType(column="f", type="DOUBLE")],
            [AddColumn(column="b", type="STRING", position=after("id"))],
            [AddColumn(column="first", type="INT", position=FIRST)],
            [AddColumn(column=("r", "z"), type="BIGINT")],
            [
                RenameColumn(column="aa", new_name="a"),
                UpdateColumnComment(column="a", comment="renamed back"),
                SetOption(key="k1", value="v1"),
            ],
        ],
    ),
    (
        "java142.db/evolve_types",
        [
            [UpdateColumnType(column=column, type=data_type, allow_explicit=True)]
            for column, data_type in (
                ("i8", "SMALLINT"),
                ("i16", "INT"),
                ("i32", "BIGINT"),
                ("i32s", "STRING"),
                ("i32d", "DECIMAL(12, 2)"),
                ("i32f", "DOUBLE"),
                ("f32", "DOUBLE"),
                ("dec", "DECIMAL(12, 4)"),
                ("decd", "DOUBLE"),
                ("vc", "STRING"),
                ("ch", "STRING"),
                ("bn", "BYTES"),
                ("ts", "TIMESTAMP(6)"),
                ("dts", "TIMESTAMP(3)"),
                ("bl", "STRING"),
            )
        ],
    ),
]


@pytest.mark.parametrize(("table", "steps"), GOLDEN_CHANGES, ids=lambda value: value if isinstance(value, str) else "")
@pytest.mark.filterwarnings("ignore:.*'k1'")
def test_the_same_changes_give_the_schemas_that_the_reference_wrote(
    table: str, steps: list[list[SchemaChange]], evolve: Build
) -> None:
    directory = GOLDEN / table / "schema"
    schema = decode_schema((directory / "schema-0").read_bytes(), "schema-0")
    for number, changes in enumerate(steps, start=1):
        schema = evolve(schema, *changes)
        expected = decode_schema((directory / f"schema-{number}").read_bytes(), f"schema-{number}")
        assert replace(schema, time_millis=expected.time_millis) == expected
    assert not (directory / f"schema-{len(steps) + 1}").exists()


def test_a_change_makes_the_next_schema_with_its_time(new_schema: Build, evolve: Build) -> None:
    schema = new_schema("a INT")
    evolved = evolve(schema, AddColumn(column="b", type="INT", description="new"))
    assert (evolved.id, evolved.time_millis, evolved.version) == (1, 2_000, 3)
    assert evolved.fields[1].description == "new"
    assert schema.field_names == ("a",)


def test_changes_that_change_nothing_return_the_same_schema(new_schema: Build, evolve: Build) -> None:
    schema = new_schema("a INT COMMENT 'x', b INT", options={"bucket": "2", "bucket-key": "a", "write-only": "true"})
    assert (
        evolve(
            schema,
            SetOption(key="bucket", value="2"),
            SetOption(key="bucket-key", value="a"),
            RemoveOption(key="snapshot.time-retained"),
            UpdateColumnComment(column="a", comment="x"),
            UpdateColumnType(column="a", type="INT"),
            UpdateComment(comment=None),
        )
        is schema
    )


def test_ids_of_dropped_columns_are_not_used_again(new_schema: Build, evolve: Build) -> None:
    schema = new_schema("a INT, b ROW<x INT, y INT>")
    assert schema.highest_field_id == 3
    schema = evolve(evolve(schema, DropColumn(column="b")), AddColumn(column="b", type="ROW<p INT, q ROW<r INT>>"))
    assert schema.fields[1].id == 4
    assert schema.highest_field_id == 7


def test_columns_go_to_the_requested_position(new_schema: Build, evolve: Build) -> None:
    schema = new_schema("a INT, b INT, c INT, d INT")
    for position, order in (
        (FIRST, ("c", "a", "b", "d")),
        (LAST, ("a", "b", "d", "c")),
        (before("b"), ("a", "c", "b", "d")),
        (after("a"), ("a", "c", "b", "d")),
        (after("d"), ("a", "b", "d", "c")),
    ):
        assert evolve(schema, MoveColumn(column="c", position=position)).field_names == order
    assert evolve(schema, AddColumn(column="e", type="INT", position=before("a"))).field_names[0] == "e"
    with pytest.raises(InvalidSchemaError, match="next to itself"):
        evolve(schema, MoveColumn(column="c", position=after("c")))
    with pytest.raises(NotFoundError, match=r"no column 'z'; there are: a, b, d"):
        evolve(schema, MoveColumn(column="c", position=after("z")))


def test_new_columns_go_before_the_partition_columns_where_the_table_says_so(new_schema: Build, evolve: Build) -> None:
    schema = new_schema("a INT, dt STRING", partition_by=["dt"], options={"add-column-before-partition": "true"})
    assert evolve(schema, AddColumn(column="b", type="INT")).field_names == ("a", "b", "dt")


def test_fields_deep_inside_are_reached_by_their_path(new_schema: Build, evolve: Build) -> None:
    schema = new_schema("r ROW<list ARRAY<ROW<x INT, y INT>>, pairs MAP<STRING, ROW<v INT>>>, n ARRAY<INT>")
    evolved = evolve(
        schema,
        RenameColumn(column=("r", "list", "element", "x"), new_name="z"),
        AddColumn(column=("r", "pairs", "value", "w"), type="STRING", position=FIRST),
        DropColumn(column=("r", "list", "element", "y")),
        UpdateColumnType(column=("n", "element"), type="BIGINT"),
        UpdateColumnComment(column=("r", "pairs", "value", "v"), comment="deep"),
    )
    assert _types(evolved) == {
        "r": "ROW<list ARRAY<ROW<z INT>>, pairs MAP<STRING, ROW<w STRING, v INT COMMENT 'deep'>>>",
        "n": "ARRAY<BIGINT>",
    }


@pytest.mark.parametrize(
    "column", [("r", "nope"), ("r", "x", "y"), ("list", "x"), ("list", "value", "x"), ("nope", "x"), "r.x"]
)
def test_a_path_that_leads_nowhere_is_not_found(
    column: str | tuple[str, ...], new_schema: Build, evolve: Build
) -> None:
    schema = new_schema("r ROW<x INT, y INT>, list ARRAY<ROW<x INT, y INT>>")
    with pytest.raises((NotFoundError, InvalidSchemaError), match=r"shop\.orders"):
        evolve(schema, DropColumn(column=column))


def test_an_added_column_must_allow_null_and_have_a_free_name(new_schema: Build, evolve: Build) -> None:
    schema = new_schema("a INT, r ROW<x INT>")
    with pytest.raises(InvalidSchemaError, match="NOT NULL"):
        evolve(schema, AddColumn(column="b", type="INT NOT NULL"))
    with pytest.raises(AlreadyExistsError, match="'a' already"):
        evolve(schema, AddColumn(column="a", type="INT"))
    with pytest.raises(AlreadyExistsError, match=r"'r\.x' already"):
        evolve(schema, AddColumn(column=("r", "x"), type="INT"))
    with pytest.raises(InvalidSchemaError, match="not empty"):
        evolve(schema, AddColumn(column=" ", type="INT"))
    with pytest.raises(InvalidSchemaError, match="reserved"):
        evolve(schema, AddColumn(column="_LEVEL", type="INT"))
    with pytest.raises(InvalidSchemaError, match="not a ROW"):
        evolve(schema, AddColumn(column=("a", "b"), type="INT"))


def test_names_that_differ_by_case_are_different_columns(new_schema: Build, evolve: Build) -> None:
    assert evolve(new_schema("a INT"), AddColumn(column="A", type="INT")).field_names == ("a", "A")


def test_partition_columns_stay_as_they_are(new_schema: Build, evolve: Build) -> None:
    schema = new_schema("a INT, dt STRING", partition_by=["dt"])
    for change in (
        DropColumn(column="dt"),
        RenameColumn(column="dt", new_name="day"),
        UpdateColumnType(column="dt", type="INT", allow_explicit=True),
    ):
        with pytest.raises(InvalidSchemaError, match="partition key 'dt'"):
            evolve(schema, change)
    assert evolve(schema, MoveColumn(column="dt", position=FIRST)).field_names == ("dt", "a")


def test_a_bucket_key_can_be_renamed_but_not_dropped_or_retyped(new_schema: Build, evolve: Build) -> None:
    schema = new_schema("a INT, b INT, c INT", options={"bucket": "4", "bucket-key": "a,b"})
    renamed = evolve(schema, RenameColumn(column="a", new_name="key"))
    assert renamed.option_map["bucket-key"] == "key,b"
    for change in (DropColumn(column="b"), UpdateColumnType(column="b", type="BIGINT")):
        with pytest.raises(InvalidSchemaError, match="'bucket-key'"):
            evolve(schema, change)
    text = new_schema("a VARCHAR(5)", options={"bucket": "4", "bucket-key": "a"})
    assert evolve(text, UpdateColumnType(column="a", type="STRING")).id == 1


@pytest.mark.filterwarnings("ignore::penstock.OptionWarning")  # options of other engines are among them
def test_options_that_name_a_column_follow_its_rename(new_schema: Build, evolve: Build) -> None:
    schema = new_schema(
        "a INT, b INT, m MAP<STRING, INT>",
        options={
            "fields.a.stats-mode": "full",
            "clustering.columns": "b,a",
            "file-index.bloom-filter.columns": "a,m[k]",
            "file-index.bloom-filter.a.fpp": "0.1",
            "file-index.bloom-filter.m[k].fpp": "0.2",
            "write-only": "true",
        },
    )
    evolved = evolve(
        schema, RenameColumn(column="a", new_name="x"), RenameColumn(column="m", new_name="n"), has_snapshots=True
    )
    assert evolved.option_map == {
        "fields.x.stats-mode": "full",
        "clustering.columns": "b,x",
        "file-index.bloom-filter.columns": "x,n[k]",
        "file-index.bloom-filter.x.fpp": "0.1",
        "file-index.bloom-filter.n[k].fpp": "0.2",
        "write-only": "true",
    }


def test_two_columns_can_swap_their_names(new_schema: Build, evolve: Build) -> None:
    schema = new_schema("a INT, b STRING", options={"bucket": "2", "bucket-key": "a"})
    swapped = evolve(
        schema,
        RenameColumn(column="a", new_name="t"),
        RenameColumn(column="b", new_name="a"),
        RenameColumn(column="t", new_name="b"),
    )
    assert _types(swapped) == {"b": "INT", "a": "STRING"}
    assert swapped.option_map["bucket-key"] == "b"
    assert [field.id for field in swapped.fields] == [0, 1]


def test_renaming_a_nested_field_leaves_the_options_of_its_namesake_alone(new_schema: Build, evolve: Build) -> None:
    schema = new_schema("a INT, r ROW<a INT>", options={"bucket": "2", "bucket-key": "a"})
    evolved = evolve(schema, RenameColumn(column=("r", "a"), new_name="z"))
    assert evolved.option_map["bucket-key"] == "a"


def test_a_column_with_options_of_its_own_is_dropped_together_with_them(new_schema: Build, evolve: Build) -> None:
    schema = new_schema("a INT, b INT", options={"fields.b.stats-mode": "none"})
    with pytest.raises(InvalidOptionError, match=r"'fields\.b\.stats-mode' names column 'b'"):
        evolve(schema, DropColumn(column="b"))
    evolved = evolve(schema, DropColumn(column="b"), RemoveOption(key="fields.b.stats-mode"))
    assert (evolved.field_names, evolved.options) == (("a",), ())


def test_the_last_column_cannot_be_dropped(new_schema: Build, evolve: Build) -> None:
    with pytest.raises(InvalidSchemaError, match="only one"):
        evolve(new_schema("a INT"), DropColumn(column="a"))
    with pytest.raises(InvalidSchemaError, match="only one"):
        evolve(new_schema("a INT, r ROW<x INT>"), DropColumn(column=("r", "x")))


WIDENING = [
    ("TINYINT", "BIGINT"),
    ("INT", "DOUBLE"),
    ("SMALLINT", "FLOAT"),
    ("INT", "DECIMAL(12, 2)"),
    ("FLOAT", "DOUBLE"),
    ("DECIMAL(10, 2)", "DECIMAL(12, 4)"),
    ("VARCHAR(5)", "VARCHAR(6)"),
    ("CHAR(3)", "STRING"),
    ("BINARY(3)", "BYTES"),
    ("TIMESTAMP(3)", "TIMESTAMP(6)"),
    ("TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(9)"),
]
LOSING = [
    ("BIGINT", "INT"),
    ("BIGINT", "DOUBLE"),
    ("INT", "FLOAT"),
    ("INT", "DECIMAL(11, 2)"),
    ("DECIMAL(10, 2)", "DECIMAL(10, 4)"),
    ("DECIMAL(10, 2)", "DOUBLE"),
    ("STRING", "VARCHAR(5)"),
    ("STRING", "INT"),
    ("INT", "STRING"),
    ("TIMESTAMP(6)", "TIMESTAMP(3)"),
    ("TIMESTAMP(3)", "DATE"),
    ("TIMESTAMP(3)", "TIMESTAMP_LTZ(3)"),
    ("DATE", "TIMESTAMP(3)"),
    ("BOOLEAN", "INT"),
]


@pytest.mark.parametrize(("source", "target"), WIDENING)
def test_widening_a_type_needs_no_asking(source: str, target: str, new_schema: Build, evolve: Build) -> None:
    evolved = evolve(new_schema(f"a {source}"), UpdateColumnType(column="a", type=target))
    assert _types(evolved)["a"] == format_sql_type(evolved.fields[0].type)
    assert evolved.id == 1
    with pytest.raises(InvalidSchemaError, match="implicitly"):
        evolve(new_schema(f"a {target}"), UpdateColumnType(column="a", type=source))


@pytest.mark.parametrize(("source", "target"), LOSING)
def test_a_cast_that_may_change_values_must_be_asked_for(
    source: str, target: str, new_schema: Build, evolve: Build
) -> None:
    schema = new_schema(f"a {source}")
    with pytest.raises(InvalidSchemaError, match="allow_explicit"):
        evolve(schema, UpdateColumnType(column="a", type=target))
    assert evolve(schema, UpdateColumnType(column="a", type=target, allow_explicit=True)).id == 1


@pytest.mark.parametrize(
    ("source", "target"), [("DATE", "INT"), ("INT", "DATE"), ("BOOLEAN", "DATE"), ("BYTES", "INT")]
)
def test_an_impossible_cast_is_refused(source: str, target: str, new_schema: Build, evolve: Build) -> None:
    with pytest.raises(InvalidSchemaError, match="no such cast; add a column"):
        evolve(new_schema(f"a {source}"), UpdateColumnType(column="a", type=target, allow_explicit=True))


def test_the_table_decides_about_explicit_casts_where_it_says_so(new_schema: Build, evolve: Build) -> None:
    key = "disable-explicit-type-casting"
    forbidding = new_schema("a INT", options={key: "true"})
    with pytest.raises(InvalidSchemaError, match=key):
        evolve(forbidding, UpdateColumnType(column="a", type="STRING", allow_explicit=True))
    assert evolve(forbidding, UpdateColumnType(column="a", type="BIGINT")).id == 1
    permitting = new_schema("a INT", options={key: "false"})
    assert evolve(permitting, UpdateColumnType(column="a", type="STRING")).id == 1


def test_a_whole_row_is_not_retyped_at_once(new_schema: Build, evolve: Build) -> None:
    with pytest.raises(InvalidSchemaError, match="one by one"):
        evolve(new_schema("r ROW<x INT>"), UpdateColumnType(column="r", type="ROW<x BIGINT>", allow_explicit=True))


def test_retyping_keeps_nullability_unless_requested_otherwise(new_schema: Build, evolve: Build) -> None:
    schema = new_schema("a INT NOT NULL")
    assert _types(evolve(schema, UpdateColumnType(column="a", type="BIGINT"))) == {"a": "BIGINT NOT NULL"}
    loosened = evolve(schema, UpdateColumnType(column="a", type="BIGINT", keep_nullability=False))
    assert _types(loosened) == {"a": "BIGINT"}


def test_null_is_forbidden_later_only_where_the_table_allows_it(new_schema: Build, evolve: Build) -> None:
    key = "alter-column-null-to-not-null.disabled"
    change = UpdateColumnNullability(column="a", nullable=False)
    with pytest.raises(InvalidSchemaError, match=key):
        evolve(new_schema("a INT"), change)
    allowing = new_schema("a INT", options={key: "false"})
    assert _types(evolve(allowing, change)) == {"a": "INT NOT NULL"}
    loosened = evolve(new_schema("a INT NOT NULL"), UpdateColumnNullability(column="a", nullable=True))
    assert _types(loosened) == {"a": "INT"}


@pytest.mark.parametrize(
    ("options", "change"),
    [
        ({"bucket": "4", "bucket-key": "a"}, SetOption(key="bucket-key", value="b")),
        ({"bucket": "4", "bucket-key": "a"}, SetOption(key="bucket-function.type", value="mod")),
        ({"bucket": "4", "bucket-key": "a"}, SetOption(key="bucket", value="-1")),
        ({"bucket": "4", "bucket-key": "a"}, RemoveOption(key="bucket")),
        ({}, SetOption(key="bucket", value="4")),
        ({}, SetOption(key="data-file.path-directory", value="data")),
        ({"data-file.path-directory": "data"}, RemoveOption(key="data-file.path-directory")),
        ({}, SetOption(key="partition.legacy-name", value="false")),
        ({"partition.legacy-name": "false"}, RemoveOption(key="partition.legacy-name")),
        ({}, SetOption(key="partition.default-name", value="NONE")),
        ({}, SetOption(key="partition", value="dt")),
        ({}, SetOption(key="index-file-in-data-file-dir", value="true")),
        ({}, SetOption(key="row-tracking.enabled", value="true")),
        ({}, SetOption(key="deletion-vectors.enabled", value="true")),
        ({"ignore-delete": "true"}, SetOption(key="ignore-delete", value="false")),
    ],
)
@pytest.mark.filterwarnings("ignore::penstock.OptionWarning")  # options of other engines are among them
def test_what_decides_the_layout_cannot_change_once_there_are_snapshots(
    options: dict[str, str], change: SchemaChange, new_schema: Build, evolve: Build
) -> None:
    with pytest.raises(InvalidOptionError, match=r"shop\.orders.*snapshots"):
        evolve(new_schema("a INT, b INT, dt STRING", options=options), change)


def test_before_the_first_snapshot_the_layout_may_still_change(new_schema: Build, evolve: Build) -> None:
    evolved = evolve(
        new_schema("a INT, dt STRING"),
        SetOption(key="bucket", value="4"),
        SetOption(key="bucket-key", value="a"),
        SetOption(key="partition", value="dt"),
        has_snapshots=False,
    )
    assert evolved.partition_keys == ("dt",)
    assert evolved.option_map == {"bucket": "4", "bucket-key": "a"}


def test_the_number_of_buckets_may_grow_and_shrink(new_schema: Build, evolve: Build) -> None:
    schema = new_schema("a INT", options={"bucket": "4", "bucket-key": "a"})
    assert evolve(schema, SetOption(key="bucket", value="8")).option_map["bucket"] == "8"
    assert evolve(schema, SetOption(key="bucket", value="1")).option_map["bucket"] == "1"


def test_saying_what_is_so_already_is_no_change(new_schema: Build, evolve: Build) -> None:
    schema = new_schema("a INT, dt STRING", partition_by=["dt"])
    assert evolve(schema, SetOption(key="partition", value="dt")) is schema


@pytest.mark.parametrize("key", ["type", "path", "branch"])
def test_what_a_table_is_never_changes(key: str, new_schema: Build, evolve: Build) -> None:
    with pytest.raises(InvalidOptionError, match=f"'{key}' cannot change"):
        evolve(new_schema("a INT"), SetOption(key=key, value="x"), has_snapshots=False)


def test_turning_on_what_is_not_supported_is_refused(new_schema: Build, evolve: Build) -> None:
    with pytest.raises(UnsupportedFeatureError, match="chain-table"):
        evolve(new_schema("a INT"), SetOption(key="chain-table.enabled", value="true"), has_snapshots=False)
    with pytest.raises(UnsupportedFeatureError, match="primary-key"):
        evolve(new_schema("a INT"), SetOption(key="primary-key", value="a"), has_snapshots=False)


def test_a_table_that_is_only_readable_here_can_still_be_altered(new_schema: Build, evolve: Build) -> None:
    schema = replace(new_schema("a INT"), options=(("metadata.iceberg.storage", "table-location"),))
    assert evolve(schema, AddColumn(column="b", type="INT")).field_names == ("a", "b")


def test_a_changed_option_is_checked_like_a_new_one(new_schema: Build, evolve: Build) -> None:
    schema = new_schema("a INT")
    with pytest.raises(InvalidOptionError, match=r"'target-file-size' = 'big'.*'128 mb'"):
        evolve(schema, SetOption(key="target-file-size", value="big"))
    with pytest.warns(OptionWarning, match="did you mean 'target-file-size'"):
        evolve(schema, SetOption(key="target-file-sise", value="1 mb"))


def test_values_that_others_stored_do_not_hinder_other_changes(new_schema: Build, evolve: Build) -> None:
    schema = replace(new_schema("a INT"), options=(("target-file-size", "of 2031"),))
    assert evolve(schema, UpdateComment(comment="x")).comment == "x"


def test_a_default_value_is_checked_when_it_or_the_type_changes(new_schema: Build, evolve: Build) -> None:
    schema = evolve(new_schema("a INT, b STRING"), UpdateColumnDefault(column="b", default="x"))
    assert schema.fields[1].default_value == "x"
    with pytest.raises(InvalidSchemaError, match=r"'x'.*column 'a'"):
        evolve(schema, UpdateColumnDefault(column="a", default="x"))
    with pytest.raises(InvalidSchemaError, match=r"'x'.*column 'b'"):
        evolve(schema, UpdateColumnType(column="b", type="INT", allow_explicit=True))
    cleared = [
        UpdateColumnDefault(column="b", default=None),
        UpdateColumnType(column="b", type="INT", allow_explicit=True),
    ]
    assert evolve(schema, *cleared).fields[1].default_value is None


def test_a_queue_of_the_first_releases_stays_one(new_schema: Build, evolve: Build) -> None:
    old = replace(new_schema("a INT, b INT"), version=1, options=(("bucket", "1"), ("file.format", "orc")))
    evolved = evolve(old, AddColumn(column="c", type="INT"))
    assert (evolved.version, evolved.option_map) == (1, {"bucket": "1", "file.format": "orc"})
    keyed = evolve(old, SetOption(key="bucket-key", value="b"), SetOption(key="bucket", value="4"))
    assert (keyed.version, keyed.option_map["bucket-key"]) == (3, "b")
    with pytest.raises(InvalidOptionError, match="needs 'bucket-key'"):
        evolve(old, SetOption(key="bucket", value="4"))
