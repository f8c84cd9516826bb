"""What each command counts while it runs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.cli.conftest import Command

from penstock.cli.output import progress
from penstock.cli.output.progress import Unit, progress_bar
from penstock.cli.session import Session

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self


class Drawn:
    """Stands for rich's bar: keeps the title, the total, and the last text and position of each."""

    bars: list[dict[str, Any]]

    def __init__(self, *_columns: object, **_settings: object) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def add_task(self, title: str, *, total: int | None, text: str) -> int:
        self.bars.append({"title": title, "total": total, "text": text, "completed": 0})
        return len(self.bars) - 1

    def update(self, task: int, *, completed: int | None, text: str) -> None:
        assert completed is None or completed >= (self.bars[task]["completed"] or 0)
        self.bars[task] |= {"completed": completed, "text": text}


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    monkeypatch.setattr(Drawn, "bars", found, raising=False)
    monkeypatch.setattr(progress, "rich_progress", Drawn)
    monkeypatch.setattr(progress, "_is_shown", lambda session: not session.quiet)
    return found


@pytest.fixture
def days(tmp_path: Path) -> Command:
    """Ten snapshots of 1,000 rows each in ten files, in a directory."""
    command = Command(warehouse=str(tmp_path / "warehouse"))
    command.catalog.create_database("shop")
    options = {"write-only": "true", "snapshot.num-retained.min": "1"}
    table = command.catalog.create_table("shop.days", "id BIGINT, dt STRING", partition_by=["dt"], options=options)
    for _ in range(10):
        table.append(pa.table({"id": range(1_000), "dt": ["2026-01-01"] * 1_000}))
    directory = tmp_path / "old" / "dt=2026-01-02"
    directory.mkdir(parents=True)
    pq.write_table(pa.table({"id": range(2_000)}), directory / "part-0.parquet")
    (tmp_path / "rows.csv").write_text("id,dt\n" + "1,2026-01-03\n" * 3_000)
    return command


@pytest.mark.parametrize(
    ("arguments", "title", "text"),
    [
        ("append shop.days {tmp}/rows.csv", "writing shop.days", "3,000 rows"),
        ("overwrite shop.days {tmp}/rows.csv", "writing shop.days", "3,000 rows"),
        ("overwrite shop.days {tmp}/rows.csv --dry-run", "reading", "3,000 rows"),
        ("import shop.days {tmp}/old", "writing shop.days", "2,000 rows"),
        ("convert {tmp}/old shop.other", "converting {tmp}/old", "2,000 rows"),
        ("migrate shop.other {tmp}/old", "adopting shop.other", "2,000 rows"),
        ("compact shop.days", "compacting shop.days", "10,000 rows"),
    ],
)
def test_rows_are_counted_beside_the_bytes_of_a_known_total(
    days: Command, bars: list[dict[str, Any]], tmp_path: Path, arguments: str, title: str, text: str
) -> None:
    days(*arguments.format(tmp=tmp_path).split())
    (bar,) = bars
    assert (bar["title"], bar["text"]) == (title.format(tmp=tmp_path), text)
    assert 0 < bar["completed"] <= bar["total"]


def test_an_export_counts_rows_of_those_of_the_snapshot(
    days: Command, bars: list[dict[str, Any]], tmp_path: Path
) -> None:
    days("export", "shop.days", str(tmp_path / "all"))
    days("export", "shop.days", str(tmp_path / "some"), "--where", "id < 10")
    assert [(bar["total"], bar["text"]) for bar in bars] == [(10_000, "10,000 of 10,000 rows"), (None, "100 rows")]


def test_a_check_counts_files_and_their_bytes(days: Command, bars: list[dict[str, Any]]) -> None:
    days("fsck", "shop.days")
    assert bars[0]["text"].startswith("10 files, ")
    assert bars[0]["text"].endswith(" KiB")


def test_an_expiration_counts_files_of_those_that_it_has_asked_about(days: Command, bars: list[dict[str, Any]]) -> None:
    arguments = ("expire", "shop.days", "--retain-max", "1")
    (planned,) = days.json(*arguments, "--dry-run")
    count = planned["data_files"] + planned["metadata_files"] + len(planned["snapshots"])
    assert count > 18
    bars.clear()
    days(*arguments, input="y\n")
    assert [(bar["total"], bar["text"]) for bar in bars] == [(count, f"{count} of {count} files")]


def test_an_orphan_search_counts_the_files_that_it_lists_reads_and_deletes(
    days: Command, bars: list[dict[str, Any]], tmp_path: Path
) -> None:
    orphan = tmp_path / "warehouse" / "shop.db" / "days" / "manifest" / "manifest-lost-0"
    orphan.write_bytes(b"???")
    os.utime(orphan, (0, 86_400))
    days("remove-orphan-files", "shop.days", "--yes")
    search, removal = bars
    searched = int(search["text"].removesuffix(" files"))
    assert searched > 10 + 30
    assert (search["total"], removal["total"]) == (None, searched + 1)
    assert removal["text"] == f"{searched + 1} of {searched + 1} files"


def test_standard_input_has_no_total(days: Command, bars: list[dict[str, Any]]) -> None:
    days("append", "shop.days", "-", "--input-format", "json", input='{"id": 1, "dt": "a"}\n')
    assert (bars[0]["total"], bars[0]["text"].split(",")[0]) == (None, "1 rows")


def test_quiet_shows_nothing(bars: list[dict[str, Any]]) -> None:
    with progress_bar(Session(quiet=True), "title", Unit.FILES) as report:
        report(1, None)
    assert bars == []
