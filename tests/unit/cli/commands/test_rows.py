"""append, overwrite, read, delete, truncate, drop-partition."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Command


CSV = 'order_id,product,price,dt\n1,tea,1.50,2026-01-01\n2,"a ""b""\nc",,2026-01-02\n3,"",2.25,2026-01-02\n'


def test_options_of_one_use_go_to_the_writer_and_misspelt_ones_warn(orders: Command) -> None:
    arguments = ("append", "shop.orders", "-", "--input-format", "csv")
    assert orders(*arguments, "-o", "file.format=orc", input=CSV).stderr == ""
    assert {row["file_format"] for row in orders.json("files", "shop.orders")} == {"orc"}
    assert "did you mean 'file.format'" in orders(*arguments, "-o", "file.formt=orc", input=CSV).stderr
    orders(*arguments, "-o", "file.format=csv", input=CSV, code=2)


def test_overwrite_replaces_named_partitions_those_of_the_rows_or_all(orders: Command) -> None:
    def overwrite(text: str, *args: str, code: int = 0) -> str:
        return orders("overwrite", "shop.orders", "-", "--input-format", "csv", *args, input=text, code=code).stderr

    def ids() -> list[int]:
        return sorted(row["order_id"] for row in orders.rows("shop.orders"))

    orders("append", "shop.orders", "-", "--input-format", "csv", input=CSV)
    overwrite("order_id,product,price,dt\n10,x,1,2026-01-02\n")
    assert ids() == [1, 10]
    overwrite("order_id,product,price,dt\n11,x,1,2026-01-01\n", "--partition", "dt=2026-01-01")
    assert ids() == [10, 11]
    assert "outside" in overwrite("order_id,product,price,dt\n12,x,1,other\n", "--partition", "dt=2026-01-01", code=2)
    overwrite("order_id,product,price,dt\n13,x,1,other\n", "--whole-table")
    assert ids() == [13]
    overwrite(CSV, "--whole-table", "--partition", "dt=a", code=2)


def test_overwrite_dry_run_reads_the_rows_and_changes_nothing(orders: Command) -> None:
    orders("append", "shop.orders", "-", "--input-format", "csv", input=CSV)
    arguments = ("overwrite", "shop.orders", "-", "--input-format", "csv", "--dry-run", "--format", "json")
    new = "order_id,product,price,dt\n10,x,1,2026-01-02\n"

    touched = json.loads(orders(*arguments, input=new).stdout)[0]
    everything = json.loads(orders(*arguments, "--whole-table", input=new).stdout)[0]

    assert (touched["removed_partitions"], touched["removed_rows"], touched["new_rows"]) == (1, 2, 1)
    assert (everything["removed_partitions"], everything["removed_rows"]) == (2, 3)
    orders(*arguments, input="order_id,product,price,dt\nx,x,1,p\n", code=9)
    assert orders.catalog.load_table("shop.orders").latest_snapshot().id == 1


def test_read_projects_filters_limits_and_travels(orders: Command) -> None:
    orders("append", "shop.orders", "-", "--input-format", "csv", input=CSV)
    first = orders.json("snapshots", "shop.orders")[0]
    orders("tag", "create", "shop.orders", "one")
    orders("append", "shop.orders", "-", "--input-format", "csv", input="order_id,product,price,dt\n9,,,p\n")

    assert orders.rows("shop.orders", "--columns", "dt, order_id", "--where", "price > 2") == [
        {"dt": "2026-01-02", "order_id": 3}
    ]
    assert len(orders.rows("shop.orders", "--limit", "2")) == 2
    assert orders.rows("shop.orders", "--limit", "0") == []
    for travel in (["--snapshot-id", "1"], ["--tag", "one"], ["--timestamp", first["commit_time"]]):
        assert len(orders.rows("shop.orders", *travel)) == 3
    assert "no column" in orders("read", "shop.orders", "--columns", "nope", code=3).stderr
    orders("read", "shop.orders", "--where", "price >", code=2)
    orders("read", "shop.orders", "--snapshot-id", "7", code=3)
    orders("read", "shop.orders", "--timestamp", "yesterday", code=2)


def test_people_see_the_first_hundred_rows_and_programs_all(orders: Command) -> None:
    text = "order_id,product,price,dt\n" + "".join(f"{n},,,p\n" for n in range(150))
    orders("append", "shop.orders", "-", "--input-format", "csv", input=text)

    people = orders("read", "shop.orders")

    assert len(people.stdout.splitlines()) == 102
    assert "--limit" in people.stderr
    assert orders("read", "shop.orders", "--quiet").stderr == ""
    assert len(orders("read", "shop.orders", "--all").stdout.splitlines()) == 152
    assert len(orders("read", "shop.orders", "--format", "csv").stdout.splitlines()) == 151


def test_delete_removes_the_rows_of_a_condition(orders: Command) -> None:
    orders("append", "shop.orders", "-", "--input-format", "csv", input=CSV)
    assert orders.json("delete", "shop.orders", "--where", "dt = '2026-01-02'", "--dry-run")[0]["rows"] == 2
    orders("delete", "shop.orders", "--where", "dt = '2026-01-02'", input="no\n", code=1)
    orders("delete", "shop.orders", "--where", "dt = '2026-01-02'", "--yes")
    assert len(orders.json("read", "shop.orders")) == 1


def test_truncate_removes_all_rows_by_a_snapshot(orders: Command) -> None:
    orders("append", "shop.orders", "-", "--input-format", "csv", input=CSV)
    assert orders.json("truncate", "shop.orders", "--dry-run")[0]["removed_rows"] == 3
    orders("truncate", "shop.orders", input="no\n", code=1)
    assert len(orders.rows("shop.orders")) == 3
    orders("truncate", "shop.orders", "--yes")
    assert orders.rows("shop.orders") == []
    assert len(orders.rows("shop.orders", "--snapshot-id", "1")) == 3


def test_drop_partition_removes_just_these(orders: Command) -> None:
    orders("append", "shop.orders", "-", "--input-format", "csv", input=CSV)
    assert orders.json("drop-partition", "shop.orders", "dt=2026-01-02", "--dry-run")[0]["removed_rows"] == 2
    asked = orders("drop-partition", "shop.orders", "dt=2026-01-02", input="y\n").stderr
    assert "remove 2 rows in 1 partitions" in asked
    assert [row["order_id"] for row in orders.rows("shop.orders")] == [1]
    assert (
        "has no partition with dt = 2026-01-02"
        in orders("drop-partition", "shop.orders", "dt=2026-01-02", "--yes", code=3).stderr
    )
    orders("drop-partition", "shop.orders", "product=tea", "--yes", code=2)
    orders("drop-partition", "shop.orders", "dt", "--yes", code=2)
