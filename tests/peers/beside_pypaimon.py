"""A plugin of pytest for pypaimon's own tests: before a test deletes its warehouse, Penstock reads each table too.

It runs in pypaimon's environment. ``PENSTOCK_READER`` is the command of the reader, a JSON list, and ``PEERS_RESULT``
the file for the findings.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from canonical import rows_of, sort_rows
from pypaimon import CatalogFactory

_rmtree = shutil.rmtree
_MOST_ROWS = 300_000


class Comparison:
    """Compares each table once, and counts."""

    def __init__(self) -> None:
        """Start the reader."""
        command = json.loads(os.environ["PENSTOCK_READER"])
        self.reader = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
        self.test = ""
        self.counts: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.unread: Counter[str] = Counter()
        self.different: list[dict[str, str]] = []
        self.is_busy = False

    def rmtree(self, path: Any, *arguments: Any, **named: Any) -> None:
        """Compare the tables below a directory, then delete it."""
        if not self.is_busy:
            self.is_busy = True  # pypaimon may delete directories of its own
            try:
                for location in tables_below(Path(os.fsdecode(path))):
                    self.compare(location)
            finally:
                self.is_busy = False
        _rmtree(path, *arguments, **named)

    def compare(self, location: Path) -> None:
        """Read a table with both."""
        self.counts["tables"] += 1
        assert self.reader.stdin
        assert self.reader.stdout
        self.reader.stdin.write(f"{location}\n")
        self.reader.stdin.flush()
        ours = json.loads(self.reader.stdout.readline())
        if ours.get("error") == "UnsupportedFeatureError":
            self.counts["refused"] += 1
            self.refused[reason_of(ours["message"])] += 1
            return
        try:
            theirs = read(location)
        except Exception as error:  # noqa: BLE001 - what pypaimon does not read cannot be compared
            self.counts["unread by pypaimon" if "error" not in ours else "unread by both"] += 1
            self.unread[f"{type(error).__name__}: {error}"[:150]] += 1
            return
        if ours.get("rows") == theirs:
            self.counts["equal"] += 1
            return
        self.counts["different"] += 1
        self.different.append(
            {
                "test": self.test,
                "penstock": ours.get("error", "rows") + ": " + (ours.get("message") or json.dumps(ours["rows"]))[:600],
                "pypaimon": json.dumps(theirs, ensure_ascii=False)[:600],
            }
        )


def tables_below(root: Path) -> list[Path]:
    """Return the tables of warehouses at or below a directory that have a snapshot."""
    if root.is_symlink() or not root.is_dir():
        return []
    found = sorted(
        path.parent.parent for path in root.rglob("schema/schema-0") if path.parent.parent.parent.suffix == ".db"
    )
    return [path for path in found if any((path / "snapshot").glob("snapshot-*"))]


def read(location: Path) -> list[dict[str, Any]]:
    """Return the rows of the latest snapshot as pypaimon reads them."""
    catalog = CatalogFactory.create({"warehouse": str(location.parent.parent)})
    table = catalog.get_table(f"{location.parent.stem}.{location.name}")
    builder = table.new_read_builder()
    rows = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    if rows is not None and rows.num_rows > _MOST_ROWS:
        message = f"{rows.num_rows} rows are too many to compare"
        raise ValueError(message)
    return [] if rows is None else sort_rows(rows_of(rows))


def reason_of(message: str) -> str:
    """Return the text of a refusal without names and numbers."""
    text = re.sub(r"^table \S+?(, snapshot \d+)?: ", "", message)
    return re.sub(r"\S*/\S+|\b[\w-]*\d[\w-]*\b|\(\w+(, \w+)*\)", "_", text)[:110]


_comparison = Comparison()
shutil.rmtree = _comparison.rmtree


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note which test runs."""
    _comparison.test = item.nodeid


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count the tests."""
    if report.when == "call" or report.outcome != "passed":
        _comparison.counts[f"tests {report.outcome}"] += 1


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Write the findings."""
    shutil.rmtree = _rmtree
    assert _comparison.reader.stdin
    _comparison.reader.stdin.close()
    _comparison.reader.wait(timeout=20)
    result = {
        "counts": _comparison.counts,
        "refused": _comparison.refused,
        "unread": _comparison.unread,
        "different": _comparison.different,
    }
    Path(os.environ["PEERS_RESULT"]).write_text(json.dumps(result), encoding="utf-8")
    sys.stdout.flush()
