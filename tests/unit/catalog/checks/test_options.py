"""One bucket without a bucket key: stored with a key that nobody asked for, until there are more buckets."""

import uuid
from collections.abc import Callable
from dataclasses import replace

import pytest

from penstock import AddColumn, Catalog, InvalidOptionError, UnsupportedFeatureError
from penstock.catalog.changes import DropColumn, RemoveOption, RenameColumn, SetOption, UpdateColumnType
from penstock.catalog.checks.options import CHOSEN
from penstock.format.schema import TableSchema, encode_schema

Build = Callable[..., TableSchema]


def test_one_bucket_without_a_key_gets_the_first_column_that_could_be_one(new_schema: Build) -> None:
    schema = new_schema("dt STRING, l ARRAY<INT>, a INT, b INT", partition_by=["dt"], options={"bucket": "1"})
    assert schema.option_map == {"bucket": "1", "bucket-key": "a", CHOSEN: "true"}


def test_a_key_of_the_user_is_not_touched(new_schema: Build) -> None:
    options = {"bucket": "1", "bucket-key": "b"}
    assert new_schema("a INT, b INT", options=options).option_map == options


def test_without_any_possible_key_one_bucket_is_refused(new_schema: Build) -> None:
    with pytest.raises(InvalidOptionError, match=r"needs a column of a plain type.*'bucket' = '-1'"):
        new_schema("dt STRING, l ARRAY<INT>", partition_by=["dt"], options={"bucket": "1"})


def test_more_buckets_ask_for_a_real_key(new_schema: Build, evolve: Build) -> None:
    schema = new_schema("a INT, b INT", options={"bucket": "1"})
    with pytest.raises(InvalidOptionError, match="set 'bucket-key' together with 'bucket'"):
        evolve(schema, SetOption(key="bucket", value="4"))
    for key in ("a", "b"):
        evolved = evolve(schema, SetOption(key="bucket", value="4"), SetOption(key="bucket-key", value=key))
        assert evolved.option_map == {"bucket": "4", "bucket-key": key}


def test_a_placeholder_key_may_be_replaced_even_with_snapshots_but_a_real_one_may_not(
    new_schema: Build, evolve: Build
) -> None:
    schema = new_schema("a INT, b INT", options={"bucket": "1"})
    keyed = evolve(schema, SetOption(key="bucket-key", value="b"))
    assert keyed.option_map == {"bucket": "1", "bucket-key": "b"}
    with pytest.raises(InvalidOptionError, match="'bucket-key' cannot change"):
        evolve(keyed, SetOption(key="bucket-key", value="a"))


def test_setting_the_placeholder_key_makes_it_real(new_schema: Build, evolve: Build) -> None:
    schema = evolve(new_schema("a INT", options={"bucket": "1"}), SetOption(key="bucket-key", value="a"))
    assert evolve(schema, SetOption(key="bucket", value="2")).option_map == {"bucket": "2", "bucket-key": "a"}


def test_the_placeholder_column_may_be_renamed_retyped_and_dropped(new_schema: Build, evolve: Build) -> None:
    schema = new_schema("a INT, b INT", options={"bucket": "1"})
    renamed = evolve(schema, RenameColumn(column="a", new_name="x"))
    assert (renamed.option_map["bucket-key"], CHOSEN in renamed.option_map) == ("x", True)
    assert evolve(schema, UpdateColumnType(column="a", type="BIGINT")).id == 1
    dropped = evolve(schema, DropColumn(column="a"))
    assert dropped.option_map == {"bucket": "1", "bucket-key": "b", CHOSEN: "true"}


def test_removing_the_placeholder_key_chooses_again(new_schema: Build, evolve: Build) -> None:
    schema = new_schema("a INT, b INT", options={"bucket": "1"})
    assert evolve(schema, RemoveOption(key="bucket-key")) is schema


def test_before_the_first_snapshot_one_bucket_can_become_none_and_back(new_schema: Build, evolve: Build) -> None:
    schema = new_schema("a INT", options={"bucket": "1"})
    unaware = evolve(schema, SetOption(key="bucket", value="-1"), has_snapshots=False)
    assert unaware.option_map == {"bucket": "-1"}
    again = evolve(unaware, SetOption(key="bucket", value="1"), has_snapshots=False)
    assert again.option_map == {"bucket": "1", "bucket-key": "a", CHOSEN: "true"}


@pytest.mark.parametrize("options", [{"bucket": "3"}, {"bucket": "1"}, {"bucket": "2", "bucket-function.type": "mod"}])
def test_a_table_with_buckets_but_no_key_is_read_only(options: dict[str, str]) -> None:
    catalog = Catalog(f"memory://{uuid.uuid4()}/warehouse")
    catalog.create_database("d")
    table = catalog.create_table("d.t", "id INT, v STRING", options={**options, "bucket-key": "id"})
    table.append([{"id": number, "v": str(number)} for number in range(20)])
    ref = table._ref
    stored = replace(ref.schema, options=tuple(options.items()))
    ref.file_io.write(ref.layout.schema_path(0), encode_schema(stored))

    table = catalog.load_table("d.t")
    assert table.to_arrow().num_rows == 20
    assert table.to_arrow(filter="id = 7 AND v = '7'").to_pylist() == [{"id": 7, "v": "7"}]
    for write in (
        lambda: table.append([{"id": 1, "v": "1"}]),
        lambda: table.delete("id = 1"),
        table.compact,
        table.maintenance.rescale,
    ):
        with pytest.raises(UnsupportedFeatureError, match=r"without 'bucket-key' is read only here.*insert the rows"):
            write()
    if options["bucket"] == "1":  # it gets a key, as each table of one bucket
        catalog.alter_table("d.t", AddColumn(column=("w",), type="INT"))
        catalog.load_table("d.t").append([{"id": 1, "v": "1", "w": 1}])
        return
    with pytest.raises(InvalidOptionError, match="needs 'bucket-key'"):
        catalog.alter_table("d.t", AddColumn(column=("w",), type="INT"))
