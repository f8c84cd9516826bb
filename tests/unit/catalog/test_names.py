import pytest

from penstock.catalog.names import (
    TableName,
    check_database_name,
    in_stored_case,
    is_location,
    is_path_part,
    join_name,
    parse_data_table_name,
    parse_table_name,
    split_name,
)
from penstock.errors import InvalidSchemaError


def test_a_name_has_a_database_and_a_table() -> None:
    assert parse_table_name("shop.orders") == TableName(database="shop", table="orders")
    assert str(parse_table_name("shop.orders")) == "shop.orders"


def test_back_quotes_keep_dots_and_slashes_inside_a_name() -> None:
    assert parse_table_name("`my.shop`.`or``ders`") == TableName(database="my.shop", table="or`ders")
    assert not is_location("shop.`a/b`")
    assert is_location("/data/orders")
    assert is_location("file:///data/orders")


def test_joined_parts_are_split_again_and_are_no_location() -> None:
    for parts in (("shop", "orders"), ("my.shop", "or`ders"), ("/data", "orders"), ("shop", "")):
        assert split_name(join_name(parts)) == parts
        assert not is_location(join_name(parts))


def test_what_follows_the_dollar_is_a_system_table() -> None:
    name = parse_table_name("shop.orders$snapshots")
    assert (name.table, name.system_table, str(name)) == ("orders", "snapshots", "shop.orders$snapshots")


def test_a_system_table_is_not_a_table_that_holds_rows() -> None:
    with pytest.raises(InvalidSchemaError, match=r"system tables.*'shop\.orders'"):
        parse_data_table_name("shop.orders$snapshots")


def test_a_name_without_a_database_is_one_of_the_default_database() -> None:
    assert parse_table_name("orders") == parse_table_name("default.orders")
    assert parse_table_name("orders$snapshots").system_table == "snapshots"
    assert str(parse_table_name("`my.orders`")) == "default.`my.orders`"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("a.b.c", "found 3 parts"),
        ("", "is empty"),
        (".orders", "is empty"),
        ("shop.", "is empty"),
        ("shop. ", "is empty"),
        ("shop...", "parts"),
        ("shop.$snapshots", "is empty"),
        ("shop.orders$", "must follow"),
        ("`shop.orders", "backquote"),
        ("`shop`x.orders", "backquote"),
        ("sys.orders", "reserved"),
        ("sh$op.orders", "kept for system tables"),
        ("shop.`..`", "another directory"),
        ("`.`.orders", "another directory"),
        ("shop.`a/b`", "cannot be in a name"),
        ("shop.a\\b", "cannot be in a name"),
        ("shop.a\nb", "cannot be in a name"),
    ],
)
def test_a_text_that_is_no_name_says_why(text: str, cause: str) -> None:
    with pytest.raises(InvalidSchemaError, match=cause):
        parse_data_table_name(text)


def test_the_system_database_is_reserved() -> None:
    with pytest.raises(InvalidSchemaError, match="reserved"):
        check_database_name("sys")


@pytest.mark.parametrize(
    ("name", "stored", "found"),
    [
        ("emp", ["EMP", "emp"], "emp"),
        ("Emp", ["EMP", "x"], "EMP"),
        ("emp", ["x"], None),
        ("emp", ["EMP", "EMP"], "EMP"),
    ],
)
def test_the_equal_name_comes_before_one_in_another_case(name: str, stored: list[str], found: str | None) -> None:
    assert in_stored_case(name, stored, "table") == found


def test_several_names_in_another_case_are_ambiguous() -> None:
    with pytest.raises(InvalidSchemaError, match="table 'Emp': EMP and emp differ from it only in case"):
        in_stored_case("Emp", ["emp", "EMP"], "table")


def test_paths_are_no_part_of_a_name() -> None:
    assert [is_path_part(name) for name in ("t", "t$branch_b", "a/b", "", "..", "a\nb")] == [True, True, *[False] * 4]
