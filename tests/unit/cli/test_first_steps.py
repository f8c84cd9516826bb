"""What newcomers try works, or says what to write instead."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import penstock as package
from penstock import errors

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Command

ROOT = Path(__file__).parents[3]


@pytest.fixture
def days(penstock: Command) -> Command:
    """The command, with ``shop.days`` made, partitioned by a date, with six rows."""
    penstock("create", "shop.days", "id BIGINT, at TIMESTAMP(3), price DECIMAL(10, 2), dt DATE", "--partition-by", "dt")
    lines = [f"{number},2026-01-07 10:00:0{number},60.00,2026-01-0{1 + number % 2}" for number in range(6)]
    penstock("append", "shop.days", "-", "--input-format", "csv", input="\n".join(["id,at,price,dt", *lines]))
    return penstock


def test_a_handle_of_a_dropped_table_finds_none(days: Command) -> None:
    table = days.catalog.load_table("shop.days")
    days.catalog.drop_table("shop.days")
    with pytest.raises(package.NotFoundError, match="it was dropped or renamed since it was loaded"):
        table.to_arrow()


def test_a_branch_that_is_not_there_is_named_with_those_that_are(days: Command) -> None:
    with pytest.raises(package.NotFoundError, match="no branch 'b1'; there are none but main"):
        days.catalog.load_table("shop.days", {"branch": "b1"})
    with pytest.raises(package.UnsupportedFeatureError, match="with_options"):
        days.catalog.load_table("shop.days").to_arrow(options={"branch": "b1"})


def test_a_table_made_of_a_path_says_how_to_open_one() -> None:
    with pytest.raises(package.InvalidOptionError, match=r"Catalog\.load_table.*Table\.at"):
        package.Table("warehouse/shop.db/days")  # type: ignore[arg-type]


def test_what_is_printed_by_sql_is_plain_text(days: Command) -> None:
    made = days("sql", "-e", "SHOW CREATE TABLE shop.days").stdout
    assert made.startswith("CREATE TABLE `shop`.`days` (\n  `id` BIGINT,\n")
    assert "\\n" not in made
    assert days("sql", "SHOW CREATE TABLE shop.days").stdout == made
    plan = days("sql", "-e", "EXPLAIN SELECT * FROM shop.days").stdout
    assert plan.startswith("== shop.days ==\n")
    assert "\\n" not in plan


def test_partitions_of_dates_are_printed_as_they_are_given(days: Command) -> None:
    shown = [row["partition"] for row in days.json("partitions", "shop.days")]
    assert shown == ["dt=2026-01-01", "dt=2026-01-02"]
    assert [row["partition"] for row in days.json("debt", "shop.days")] == shown
    assert "dt=2026-01-01" in days("compact", "shop.days", "--partition", shown[0], "--dry-run").stdout
    days("drop-partition", "shop.days", shown[0], "--yes")
    assert {row["dt"] for row in days.rows("shop.days")} == {"2026-01-02"}


def test_a_plan_shows_literals_as_they_were_typed(days: Command) -> None:
    condition = "price = 60.00 AND at > TIMESTAMP '2026-01-07 10:00:00' AND dt = DATE '2026-01-01'"
    plan = days("explain", "shop.days", "--where", condition).stdout
    assert "`price` = 60.00 AND `at` > TIMESTAMP '2026-01-07 10:00:00' AND `dt` = DATE '2026-01-01'" in plan
    assert "1 partition," in plan


def test_a_name_without_a_database_is_answered_with_the_databases(days: Command) -> None:
    text = days("sql", "-e", "SELECT * FROM days", code=3).stderr
    assert "there is no table days" in text
    assert "its databases are shop; write database.days, or USE one first" in text


def test_branches_and_procedures_are_there(days: Command) -> None:
    days("sql", "-e", "CALL sys.create_branch('shop.days', 'b1')")
    assert "b1" in days("branch", "list", "shop.days").stdout
    assert "sys.create_branch" in days("sql", "-e", "SHOW PROCEDURES").stdout


def test_a_filter_has_the_name_that_python_gives_it(days: Command) -> None:
    assert days.rows("shop.days", "--filter", "id = 1") == days.rows("shop.days", "--where", "id = 1")


def test_every_error_is_exported() -> None:
    defined = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert {name for name in defined if not name.startswith("_")} <= set(package.__all__)


def test_what_is_printed_of_values_is_one_short_line(days: Command) -> None:
    table = days.catalog.load_table("shop.days")
    for value in (days.catalog, table, table.latest_snapshot(), table.schema):
        assert len(repr(value)) < 300
        assert "\n" not in repr(value)


def test_the_page_of_options_has_each_heading_once() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "docs" / "options.md").read_text("utf-8"), re.MULTILINE)
    assert len(headings) == len(set(headings))


def test_files_that_cannot_be_decoded_or_found_are_named_with_a_cure(days: Command, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_bytes(b"id,at,price,dt\n1,\xff\xfe,1.00,2026-01-01\n")
    text = days("append", "shop.days", str(tmp_path / "bad.csv"), code=9).stderr
    assert "bad.csv, row 2, column 'at'" in text
    assert "it does not exist" in days("append", "shop.days", str(tmp_path / "none.csv"), code=3).stderr


def test_a_directory_is_converted_by_the_command(penstock: Command, tmp_path: Path) -> None:
    (tmp_path / "old" / "dt=2026-01-01").mkdir(parents=True)
    (tmp_path / "old" / "dt=2026-01-01" / "a.csv").write_text("id,name\n1,a\n2,b\n")
    plan = penstock.json("convert", str(tmp_path / "old"), "shop.trips", "--dry-run")[0]
    assert (plan["columns"], plan["partition_by"]) == ("`id` BIGINT, `name` STRING, `dt` STRING", ["dt"])
    done = penstock("convert", str(tmp_path / "old"), "shop.trips", "--type", "dt=DATE")
    assert "converted 2 rows of 1 files" in done.output
    assert penstock.rows("shop.trips", "--columns", "id,dt")[0] == {"id": 1, "dt": "2026-01-01"}
    penstock("export", "shop.trips", str(tmp_path / "new"), "--where", "id = 2")
    assert len(list((tmp_path / "new").rglob("*.parquet"))) == 1
    assert "already exists" in penstock("convert", str(tmp_path / "old"), "shop.trips", code=4).stderr
