"""The page about a table: well-formed, needing nothing, and saying what the table says."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import stat
import subprocess
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.unit.cli.draw.pages import Element, read_page, signs, tables

from penstock.printable import bytes_text

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Command

    from penstock import Table

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.fixture
def queue(penstock: Command) -> Command:
    """A queue with appends, a merge, an overwrite, a consumer and a tag."""
    penstock(
        "create", "shop.q", "n BIGINT, s STRING, dt STRING", "--partition-by", "dt", "--option", "bucket=2",
        "--option", "bucket-key=n",
    )  # fmt: skip
    table = penstock.catalog.load_table("shop.q")
    for first in range(0, 80, 10):
        add(table, range(first, first + 10), "a" if first < 40 else "b")
    table.compact(strategy="full")
    table.overwrite(pa.table({"n": [1], "s": ["one"], "dt": ["a"]}))
    add(table, range(5), "b")
    penstock("consumer", "reset", "shop.q", "nightly", "--to", "3")
    penstock("tag", "create", "shop.q", "before-the-sale", "--snapshot-id", "2")
    return penstock


def add(table: Table, numbers: range, day: str) -> None:
    table.append(pa.table({"n": list(numbers), "s": [f"row {n}" for n in numbers], "dt": [day] * len(numbers)}))


def drawn(penstock: Command, *args: str) -> Element:
    return read_page(penstock("report", *args, "--output", "-").stdout)


def test_the_page_needs_nothing_from_elsewhere(queue: Command) -> None:
    text = queue("report", "shop.q", "-o", "-").stdout
    page = read_page(text)
    rest = text.replace("memory://", "")
    assert not re.findall(r"https?:|//\S|url\(|@import|src=", rest)
    assert not [each for tag in ("link", "img", "iframe", "object", "use", "image") for each in page.all(tag)]
    assert len(page.all("script")) == 1
    ids = [each.attributes["id"] for tag in ("article", "section") for each in page.all(tag) if "id" in each.attributes]
    assert len(ids) == len(set(ids))
    assert page.all("html")[0].attributes == {"lang": "en"}
    assert page.all("title")[0].text == "Penstock report: shop.q"


def test_the_numbers_are_those_of_the_table(queue: Command) -> None:
    table = queue.catalog.load_table("shop.q")
    found = tables(drawn(queue, "shop.q"))
    commits = found["The newest 11 commits"]
    history = table.inspect.history().to_pylist()
    assert [
        (row["snapshot"], row["kind"], row["commit user"], row["rows written"], row["rows removed"],
         row["bytes written"], row["rows then"], row["files then"], row["small files"])
        for row in reversed(commits)
    ] == [
        (str(row["snapshot_id"]), row["commit_kind"], row["commit_user"], str(row["added_rows"]),
         str(row["removed_rows"]), f"{row['added_bytes']:,}", str(row["rows"]), str(row["files"]),
         str(row["small_files"]))
        for row in history
    ]  # fmt: skip
    assert [row["commit time, UTC"] for row in reversed(commits)] == [
        row["commit_time"].strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] for row in history
    ]
    buckets = table.inspect.buckets().to_pylist()
    assert [(row["bucket"], row["rows"], row["files"], row["bytes"]) for row in found["2 buckets"]] == [
        (
            str(bucket),
            str(sum(row["record_count"] for row in buckets if row["bucket"] == bucket)),
            str(sum(row["file_count"] for row in buckets if row["bucket"] == bucket)),
            bytes_text(sum(row["file_size_in_bytes"] for row in buckets if row["bucket"] == bucket)),
        )
        for bucket in (0, 1)
    ]
    partitions = {row["partition"]: row for row in found["2 partitions by size"]}
    assert {name: (row["rows"], row["files"]) for name, row in partitions.items()} == {
        row["partition"]: (str(row["record_count"]), str(row["file_count"])) for row in table.partitions().to_pylist()
    }
    lag = table.inspect.lag().to_pylist()[0]
    assert [
        (row["reader"], row["next snapshot"], row["unread commits"], row["rows"])
        for row in found["Readers of the table"]
    ] == [("nightly", "3", str(lag["snapshots_behind"]), str(lag["rows_behind"]))]
    assert [(row["tag"], row["snapshot"]) for row in found["Named snapshots"]] == [("before-the-sale", "2")]


def test_a_line_of_keys_and_figures_breaks_between_them(queue: Command) -> None:
    heads = re.findall(r'<p class="head">(.*?)</p>', queue("report", "shop.q", "-o", "-").stdout, re.DOTALL)
    assert any('class="key"' in head for head in heads)
    assert not any("</span><span" in head or "</b><span" in head for head in heads)


def test_the_order_of_a_queue_is_shown_file_by_file(queue: Command) -> None:
    page = drawn(queue, "shop.q")
    rows = tables(page)["Files by the sequence numbers of their rows"]
    files = queue.json("files", "shop.q")
    assert sum(int(row["files"]) for row in rows) == len(files)
    for row in rows:
        name, _, bucket = row["bucket"].rpartition(" ")
        mine = [
            each for each in files
            if each["partition"] == name and each["bucket"] == int(bucket)
        ]  # fmt: skip
        assert row["numbers"] == (
            f"{min(each['min_sequence_number'] for each in mine)} to "
            f"{max(each['max_sequence_number'] for each in mine)}"
        )
        assert row["overlaps"] == "none"
    assert signs(page)["order"].startswith("holds: ")


def test_names_are_text_wherever_they_are(penstock: Command) -> None:
    evil = "<script>alert(1)<i onload=x> & \"quoted\" 'co'"
    catalog = penstock.catalog
    table = catalog.create_table(
        f"shop.{evil}",
        "n BIGINT, `<b>` STRING",
        partition_by=["<b>"],
        options={"commit.user-prefix": "<img src=x onerror=alert(1)>", "bucket": "1", "bucket-key": "n"},
    )
    table.append(pa.table({"n": [1, 2], "<b>": ["<u>one", "a&b"]}))
    table.maintenance.reset_consumer("<s>reader", 1)
    table.create_tag("<em>tag\x07")
    result = catalog.create_table("shop.<h1>result", "`<x>` STRING, `<y>` INT")
    result.append(pa.table({"<x>": ["<a href=x>"], "<y>": pa.array([3], pa.int32())}))

    text = penstock("report", f"shop.{evil}", "-o", "-", "--result", "shop.<h1>result=<x>,<y>").stdout
    page = read_page(text)

    for tag in ("img", "i", "b", "u", "s", "em", "a"):
        plain = {"i": "key", "b": "head"}.get(tag)
        assert all(plain and each.attributes.keys() <= {"class"} for each in page.all(tag)), tag
    assert len(page.all("script")) == 1
    assert len(page.all("h1")) == 1
    assert page.all("h1")[0].text == f"shop.{evil}"
    for name in ("<img src=x onerror=alert(1)>", "<b>=<u>one", "<b>=a&b", "<s>reader", r"<em>tag\x07", "<a href=x>"):
        assert name in page.text, name
    assert "\x07" not in text


def test_missing_objects_are_reported(penstock: Command) -> None:
    penstock("create", "shop.empty", "n BIGINT", "--option", "bucket=2", "--option", "bucket-key=n")
    page = drawn(penstock, "shop.empty")
    assert "Nothing was ever committed to this table" in page.text
    assert "queue of 2 buckets, no snapshots" in page.text
    assert signs(page) == {
        "flow": "nothing was ever committed",
        "watermark": "none declared",
        "files": "none",
        "readers": "no consumer, and no query was named",
        "order": "no files",
    }
    assert not page.with_class("timeline")
    penstock.catalog.load_table("shop.empty").append(pa.table({"n": [1]}))
    page = drawn(penstock, "shop.empty")
    assert "no watermark: the table declares none" in page.text
    assert len(page.with_class("timeline")) == 1
    assert "Readers of the table" not in tables(page)


def test_old_snapshots_are_left_out_and_counted(queue: Command) -> None:
    page = drawn(queue, "shop.q", "--limit", "3")
    assert "3 snapshots, 9 to 11, of" in page.text
    assert "8 older ones left out" in page.text
    assert len(tables(page)["The newest 3 commits"]) == 3


def test_several_tables_are_on_one_page(queue: Command) -> None:
    queue("create", "shop.other", "n BIGINT")
    page = drawn(queue, "shop.q", "shop.other")
    assert [each.text for each in page.all("h1")] == ["shop.q", "shop.other"]
    links = [each.attributes["href"] for each in page.all("a")]
    assert links == [f"#{each.attributes['id']}" for each in page.all("article")]
    assert "good" in page.all("nav")[0].with_class("good")[0].attributes["title"]
    result = queue("report", "shop.q", "shop.other", "--checkpoint", "x", "-o", "-", code=2)
    assert "--checkpoint applies to one table" in result.stderr


def test_a_file_is_written_whole_over_the_older_one(queue: Command, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    target.write_text("old")
    found = queue.json("report", "shop.q", "-o", str(target))
    assert found == [{"tables": ["shop.q"], "file": str(target), "bytes": target.stat().st_size}]
    assert read_page(target.read_text("utf-8")).all("h1")
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]
    assert queue("report", "shop.q", "-o", str(target)).stdout == f"drew shop.q: {target}\n"
    refused = queue("report", "shop.q", "-o", str(tmp_path / "missing" / "x.html"), code=7)
    assert f"the report cannot be written to {tmp_path}/missing/x.html: No such file or directory" in refused.stderr
    refused = queue("report", "shop.q", "-o", str(target / "x.html"), code=7)
    assert f"the report cannot be written to {target}/x.html: Not a directory" in refused.stderr


def test_what_is_not_a_file_is_written_to_and_stays(queue: Command, tmp_path: Path) -> None:
    pipe, link, target = tmp_path / "pipe", tmp_path / "link.html", tmp_path / "target.html"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    # As large as the page, so that nothing has to read meanwhile.
    fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 1 << 20)
    queue("report", "shop.q", "-o", str(pipe))
    assert os.read(reader, 100).startswith(b"<!doctype html>")
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    link.symlink_to(target)
    queue("report", "shop.q", "-o", str(link))
    assert link.is_symlink()
    assert read_page(target.read_text("utf-8")).all("h1")


def test_a_page_is_named_after_its_table_unless_a_name_is_given(
    queue: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert queue("report", "shop.q").stdout == "drew shop.q: shop.q.html\n"
    assert read_page((tmp_path / "shop.q.html").read_text("utf-8")).all("h1")
    assert "give --output for a page of several" in queue("report", "shop.q", "shop.q", code=2).stderr


@pytest.fixture
def windows(penstock: Command) -> Command:
    """Windows of ten minutes with counts, for two products."""
    table = penstock.catalog.create_table("shop.windows", "window_start TIMESTAMP(3), product STRING, orders BIGINT")
    starts = [0, 600_000, 1_200_000, None, 600_000]
    table.append(
        pa.table(
            {
                "window_start": pa.array(starts, pa.timestamp("ms")),
                "product": ["pump", "pump", "pump", "pump", "pipe"],
                "orders": [3, 5, 4, 9, 100],
            }
        )
    )
    return penstock


def test_rows_of_a_result_are_a_chart_and_a_table(windows: Command) -> None:
    page = drawn(windows, "shop.windows", "--result", "shop.windows=window_start,orders,product")
    assert "orders by window_start, for each product" in page.text
    assert "1 row with NULL left out" in page.text
    assert [row.values() and tuple(row.values()) for row in tables(page)["The last 4 points"]] == [
        ("1970-01-01 00:00:00", "pump", "3"),
        ("1970-01-01 00:10:00", "pipe", "100"),
        ("1970-01-01 00:10:00", "pump", "5"),
        ("1970-01-01 00:20:00", "pump", "4"),
    ]
    section = page.with_class("result")[0]
    lines = [each.attributes["d"] for each in section.all("path") if each.attributes["class"].startswith("line ")]
    assert len(lines) == 2
    assert lines[1] == "M0 97L500 95L1000 96", "from 0 to 100"
    assert [each.text for each in section.with_class("key")] == ["pipe", "pump"], "the greatest sum first"


def test_text_makes_bars_and_numbers_a_line(windows: Command) -> None:
    page = drawn(windows, "shop.windows", "--result", "shop.windows=product,orders")
    assert [tuple(row.values()) for row in tables(page)["5 rows"]][:2] == [("pipe", "", "100"), ("pump", "", "9")]
    page = drawn(windows, "shop.windows", "--result", "shop.windows=orders,orders")
    assert "M30 97L40 96" in page.with_class("result")[0].with_class("series0")[0].attributes["d"]


def test_a_result_that_cannot_be_drawn_is_refused(windows: Command) -> None:
    def refused(text: str, code: int) -> str:
        return windows("report", "shop.windows", "-o", "-", "--result", text, code=code).stderr

    assert "--result 'shop.windows': expected TABLE=X,Y or TABLE=X,Y,SERIES" in refused("shop.windows", 2)
    assert "expected TABLE=X,Y" in refused("shop.windows=a,b,c,d", 2)
    assert "column 'product' holds no numbers to draw; those that do are orders" in refused(
        "shop.windows=window_start,product", 2
    )
    assert "no column 'nope'" in refused("shop.windows=nope,orders", 3)


@pytest.mark.skipif(BROWSER is None, reason="needs Chromium")
def test_a_browser_shows_it_at_every_width_and_its_script_runs(queue: Command, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    queue("report", "shop.q", "-o", str(page))
    probe = """<script>
      const rect = document.querySelector(".hits rect");
      rect.dispatchEvent(new PointerEvent("pointermove", {bubbles: true, clientX: 0, clientY: 0}));
      document.title = JSON.stringify({
        titles: document.querySelectorAll("svg title").length,
        tip: document.querySelector(".tip").textContent,
        overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
      });
    </script></body>"""
    page.write_text(page.read_text("utf-8").replace("</body>", probe), encoding="utf-8")
    for width in (500, 1200):
        done = subprocess.run(
            [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900",
             f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri()],
            capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
        found = json.loads(read_page(f"<!doctype html>\n{done.stdout.partition('>')[2].lstrip()}").all("title")[0].text)
        assert found["titles"] == 0, "taken over by the script"
        assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC, ", found["tip"])
        assert found["overflow"] == 0, f"wider than {width}"
