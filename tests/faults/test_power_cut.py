"""After a power cut, at whatever moment, the table opens and has every commit that was acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.faults.power_cut import PowerCuts

from penstock import Catalog, Table
from penstock.errors import TableStoreError
from penstock.table.inspect.fsck import check_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_FUTURE = 4_000_000_000_000


class _World:
    """A table, what was acknowledged, and the cuts."""

    def __init__(self, tmp_path: Path, options: dict[str, str]) -> None:
        self.root = tmp_path / "disk"
        self.root.mkdir()
        catalog = Catalog(str(self.root))
        catalog.create_database("d")
        self.table = catalog.create_table("d.t", "id BIGINT", options={"write-only": "true", **options})
        self.rows: set[int] = set()
        self.attempted: set[int] = set()
        self.cuts = PowerCuts(self.root, tmp_path / "cuts", self.check)

    def append(self, *numbers: int) -> None:
        self.attempted.update(numbers)
        self.table.append(pa.table({"id": pa.array(numbers, pa.int64())}))
        self.rows.update(numbers)

    def check(self, left: Path) -> None:
        """The table opens, with what was acknowledged, and is whole."""
        table = Catalog(str(left), {"penstock.durable": "false"}).load_table("d.t")
        found = set(table.to_arrow().column("id").to_pylist())
        assert self.rows <= found <= self.attempted
        findings = check_table(table._ref).findings
        if not self.rows and table.latest_snapshot() is None:
            # The first commit was stopped. Its manifests look like those of lost snapshots, which only the user knows.
            findings = tuple(each for each in findings if "if its first job was stopped" not in each.message)
        assert findings == ()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., _World]]:
    made: list[_World] = []

    def make(**options: str) -> _World:
        made.append(_World(tmp_path, options))
        made[-1].cuts.watch(monkeypatch)
        return made[-1]

    yield make
    for each in made:
        each.cuts.close()


def test_acknowledged_appends_survive_every_cut(world: Callable[..., _World]) -> None:
    it = world()
    it.append(1)
    it.append(2, 3)
    assert it.cuts.cuts > 20


def test_without_durability_a_cut_is_seen_to_lose_commits(world: Callable[..., _World]) -> None:
    """The cuts find what they are meant to find."""
    it = world(**{"penstock.durable": "false"})
    it.append(1)
    with pytest.raises((AssertionError, TableStoreError)):
        it.append(2)


@pytest.mark.slow
@pytest.mark.parametrize("buckets", [{}, {"bucket": "4", "bucket-key": "id"}])
def test_all_verbs_survive_every_cut(world: Callable[..., _World], buckets: dict[str, str]) -> None:
    it = world(**buckets, **{"manifest.merge-min-count": "3", "compaction.min.file-num": "2"})
    for number in range(4):
        it.append(number, number + 100)
    it.table.create_tag("kept", snapshot_id=2)
    it.table.compact()
    it.append(7)
    it.table.expire_snapshots(retain_min=1, older_than=_FUTURE)
    it.append(8)
    it.table.versions.delete_tag("kept")
    it.append(9)
    assert it.cuts.cuts > 100


@pytest.mark.parametrize("call", ["create_table", "create_tag"])
def test_what_is_made_once_survives(tmp_path: Path, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = Catalog(str(tmp_path / "disk"))
    catalog.create_database("d")
    table = catalog.create_table("d.t", "id BIGINT", options={"write-only": "true"})
    table.append(pa.table({"id": [1]}))
    cuts = PowerCuts(tmp_path / "disk", tmp_path / "cuts", _opens)
    cuts.watch(monkeypatch)
    if call == "create_tag":
        table.create_tag("x")
    else:
        catalog.create_table("d.u", "id BIGINT")
    last = Catalog(str(tmp_path / "cuts" / f"cut-{cuts.cuts}"))
    assert last.load_table("d.t").inspect.tags().num_rows == (call == "create_tag")
    assert ("u" in last.list_tables("d")) == (call == "create_table")
    cuts.close()


def _opens(left: Path) -> None:
    table: Table = Catalog(str(left)).load_table("d.t")
    assert table.to_arrow().num_rows == 1
