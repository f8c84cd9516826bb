"""Write docs/benchmarks.md and its charts from the stored results: ``python -m bench.page``."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from bench.bars import to_svg
from bench.result import (
    BY_CONNECT,
    BY_THRIFT,
    DELTA,
    ICEBERG,
    IN_DRIVER,
    OURS,
    PAIMON,
    PARQUET,
    faster_than,
    find_series,
    from_json,
    time_next_to,
    to_markdown,
    to_table,
)
from bench.settings import RESULTS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bench.measure import Series
    from bench.result import Section

ROOT: Final = RESULTS.parents[1]
PAGE: Final = ROOT / "docs" / "benchmarks.md"
_IMAGES: Final = "img/bench"
# Of each benchmark, only comparisons of contenders are drawn, and not every percentile.
_MOST_WORKS: Final = 4
# Benchmark, work and contender of the first table, and what its row says.
_HEADLINES: Final = (
    ("append", "append orders (7 columns)", "Penstock bucket=-1", "append to a scalable table"),
    ("append", "append orders (7 columns)", "Penstock bucket=8", "append to a queue of 8 buckets"),
    ("append-partitioned", "append to 30 partitions", "Penstock catalog", "append to 30 partitions"),
    ("scan", "sum of 2 of 7 columns", "Penstock bucket=-1", "scan two columns"),
    ("select", "one partition of 100", "Penstock catalog", "select one partition of 100"),
    ("select", "one key of a sorted table", "Penstock catalog", "select one key of a sorted table"),
    ("first-row", "first row of many files", "Penstock catalog", "first row of many files"),
    ("stream-read", "stream read of 7 columns", "Penstock bucket=-1", "stream from a scalable table"),
    ("stream-read", "stream read of 7 columns", "Penstock bucket=8", "stream from a queue, in order"),
    ("stream-windows", "1-minute windows by category", "Penstock bucket=-1 with a watermark", "windows over a stream"),
    ("stream-write", "micro-batches of 1,000 rows, all of them", "Penstock bucket=-1", "micro-batches of 1,000 rows"),
    ("dml", "DELETE 1 % of one partition of 100", "Penstock catalog", "DELETE in one partition"),
    ("dml", "UPDATE 1 % of one partition of 100", "Penstock catalog", "UPDATE in one partition"),
    ("dml", "MERGE 1 % by key", "Penstock catalog", "MERGE by key in Spark SQL"),
    ("dml", "MERGE 1 % by key", "Penstock Table", "MERGE by key with `Table.merge`"),
    ("compact", "small files to one", "Penstock bucket=-1", "compact small files"),
)
# Figures of the site's first page: a pattern of where the number stands, and the row and column of the first table.
_FRONT: Final = (
    (r"[\d.]+(?= x\*\* Delta Lake's speed in micro-batches)", "micro-batches of 1,000 rows", DELTA),
    (r"[\d.]+(?= x that of Spark's own Parquet sink)", "micro-batches of 1,000 rows", PARQUET),
    (r"[\d.]+(?= x\*\* the speed of plain Parquet files)", "select one partition of 100", PARQUET),
    (r"[\d.]+(?= x that of a full scan)", "scan two columns", PARQUET),
)
# In the order of the page: what a benchmark is called there, and what it measures.
_SECTIONS: Final = {
    "append": (
        "Append from Spark",
        "A table of seven columns and TPC-H's `lineitem`, from Parquet files.",
    ),
    "append-partitioned": ("Append to 30 partitions", "The table of seven columns through an attached catalog."),
    "scan": ("Scan from Spark", "The sum of two of seven columns, planning included."),
    "changed": (
        "Scan of changed tables",
        "1 % of the rows deleted by vectors, and files of five schemas, next to tables of the same rows without.",
    ),
    "versions": (
        "Versions of Spark",
        "Two million rows appended and two of their columns summed, by each version of Spark next to its own Parquet.",
    ),
    "select": (
        "Selective scans from Spark",
        "Few rows of tables that are laid out for it: a partition, a key, a bucket, a range of time, a join.",
    ),
    "servers": (
        "Queries through servers",
        "A key and a sum in a driver and through its servers. What these add to tables of Parquet is Spark's own part.",
    ),
    "first-row": ("First row of many files", "`LIMIT 1` of a table of 10,000 files."),
    "sort": ("Sorted tables", "Sorting three million rows by two columns, then scans that skip files."),
    "compact": ("Compaction", "A thousand files of a thousand rows each become one."),
    "dml": (
        "DELETE, UPDATE and MERGE",
        "Changes of 1 % of the rows: of one partition of 100, and by a key in every file.",
    ),
    "stream-write": ("Micro-batches of a streaming write", "Micro-batches of 1,000 and of 100,000 rows from files."),
    "stream-read": ("Streaming read", "A table as a stream from its first row to its last, with and without order."),
    "stream-windows": (
        "Windows over a stream",
        (
            "Counts and sums by minute and category, with a watermark. The files of plain Parquet follow the time, so "
            "its tasks shuffle 136,000 partial sums in all. Rows that are distributed by a key have most groups in "
            "each task: two tasks shuffle 268,000 for 8 buckets, four 388,000 for Parquet in 8 directories."
        ),
    ),
    "stream-compact": (
        "Compaction beside a stream",
        "How much longer micro-batches take while their table is compacted, with and without a free core.",
    ),
    "stream-watermark": (
        "Watermarks in snapshots",
        "What a micro-batch costs that tracks the watermark of each bucket.",
    ),
    "stream-durable": ("Durable commits", "Micro-batches whose files are flushed to the disk, and not."),
    "slope": ("A thousand micro-batches", "Whether the last hundred take longer than the second hundred."),
    "history-flat": (
        "Ten thousand micro-batches",
        "Whether time, live files and metadata stay constant with compaction between them, in memory, without Spark.",
    ),
    "history-beside": (
        "Two thousand micro-batches, compacted by a thread",
        "The same, with a thread that compacts meanwhile.",
    ),
    "latest-offset": (
        "What a query asks before each micro-batch",
        "The latest offset of a table with 10, 1,000 and 100,000 files: metadata only, without a JVM.",
    ),
    "commit": ("Commit after a long history", "The metadata of an append after 10, 1,000 and 10,000 snapshots."),
    "plan": ("Planning", "From a location to the list of files, in a fresh process, with 10,000 and 100,000 files."),
    "scale": (
        "A million files",
        "Plans and commits of tables with 100,000 and 1,000,000 live files, each in a fresh process.",
    ),
    "requests": ("Requests to an object store", "How many wait for another, and the time with a delay for each."),
    "python": ("Without Spark", "Two million rows from Arrow and into Arrow."),
    "import": ("Start-up", "`import penstock` and `penstock --help`."),
}
_PEERS: Final = (PARQUET, DELTA, ICEBERG, PAIMON)
_HEAD: Final = """# Benchmarks

How fast Penstock is next to plain Parquet files, Delta Lake, Iceberg and Paimon's Java connector, each on the same
machine in the same minutes. A number says how many times as fast: 2.0 is twice as fast, 0.9 is slower, and **higher
is better**. An empty cell was not measured.

"""
_METHOD: Final = """
## How to read this page

`make bench` measures, keeps the raw times in `bench/results/`, and writes this page from them; `python -m bench.page`
writes it from the results that are there. Nothing on it is typed by hand. `make bench ARGS="--only append"` measures
one benchmark.

Blue is Penstock, orange what it is compared with. A bar is the median of the rounds, the line across its end goes
from the least to the greatest time, and each group of bars has its own scale. In a round every contender runs once,
in the same process (the session in brackets), because JARs of two peers do not mix. So compare bars of one session.
[bench/README.md](../bench/README.md) describes what exactly is timed, and how it is made fair. The newest kept
result of each benchmark and session is shown, with its machine, date, versions and load. A load above the number of
cores means that the times are less certain.

Paimon takes part in two ways. pypaimon reads and writes without Spark. Paimon's connector for Spark, 0.9.0, has no
build for Spark 4.2: in the session `paimon` it runs on Spark 3.5, in a process of its own that takes its turn in every
round. So these bars compare two versions of Spark as well: "Parquet on Spark 3.5", next to "Spark Parquet", shows how
much of the difference that is. The connector takes part in appends to scalable tables, scans, and one partition of 100;
a result without a session `paimon` was measured before the connector was added.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A benchmark from a stored result.

    Attributes:
        run: machine, versions and settings, from the file.
    """

    section: Section
    file: Path
    run: dict[str, Any]

    @property
    def sessions(self) -> set[str]:
        """The sessions in the result."""
        return {each.session for each in self.section.series}


def newest(results: Path) -> list[Kept]:
    """Return the newest result of each benchmark, in the order of the page.

    If the newest has only some of the sessions, as after a run with ``--peer``, an older one with others is kept.
    """
    found: dict[str, list[Kept]] = {}
    for file in sorted(results.glob("*.json"), key=lambda path: path.stem):
        run = json.loads(file.read_text("utf-8"))
        for section in map(from_json, run.get("sections", ())):
            new = Kept(section=section, file=file, run=run)
            older = found.get(section.name, [])
            found[section.name] = [*(old for old in older if not old.sessions <= new.sessions), new]
    return [kept for name in _SECTIONS for kept in found.get(name, ())]


def render(kept: Sequence[Kept]) -> dict[str, str]:
    """Return the page and its charts, by their paths below ``docs``."""
    files: dict[str, str] = {}
    parts = [_HEAD + "\n".join(_summary(kept)) + "\n\n" + _revisions(kept) + _METHOD]
    titled: set[str] = set()
    for each in kept:
        works = _compared(each.section)
        is_first = each.section.name not in titled
        titled.add(each.section.name)
        title, about = _SECTIONS[each.section.name]
        chart = ""
        if works:
            name = "-".join([_IMAGES, each.section.name, *([] if is_first else sorted(each.sessions))]) + ".svg"
            files[name] = to_svg(works, OURS)
            chart = f"![{title}: {'; '.join(work for work, _ in works)}]({name})\n"
        head = f"## {title}\n\n{about}\n" if is_first else f"### {_with_peers(each)}\n"
        table = _RATIOS[each.section.name](each.section) if each.section.name in _RATIOS else ""
        parts.append("\n".join(filter(None, (head, _provenance(each), table, chart, _details(each)))))
    files["benchmarks.md"] = "\n".join(parts)
    return files


def write(results: Path, docs: Path = PAGE.parent) -> int:
    """Write them and the figures of ``index.md``, delete charts of no benchmark, and return the number of charts."""
    kept = newest(results)
    files = render(kept)
    (docs / "img").mkdir(exist_ok=True)
    for old in (docs / "img").glob("bench-*.svg"):
        old.unlink()
    for name, text in files.items():
        (docs / name).write_text(text, "utf-8")
    front = docs / "index.md"
    if front.exists():
        found, text = _headlines(kept), front.read_text("utf-8")
        for pattern, row, peer in _FRONT:
            text = re.sub(pattern, found[row][peer], text)
        front.write_text(text, "utf-8")
    return len(files) - 1


def _summary(kept: Sequence[Kept]) -> list[str]:
    """Return the first table: a row for each headline, with the newest ratio to each peer."""
    rows = [(text, *(ratios.get(peer, "") for peer in _PEERS)) for text, ratios in _headlines(kept).items()]
    return to_table(("times as fast as", *_PEERS), rows)


def _headlines(kept: Sequence[Kept]) -> dict[str, dict[str, str]]:
    found = {}
    for benchmark, work, ours, text in _HEADLINES:
        ratios: dict[str, str] = {}
        # The newest result is last.
        for section in (each.section for each in kept if each.section.name == benchmark):
            for mine in (each for each in section.series if (each.work, each.contender) == (work, ours)):
                for peer in _PEERS:
                    theirs = find_series(section.series, work, peer, mine.session)
                    if theirs is not None:
                        ratios[peer] = f"{faster_than(mine, theirs).value:.1f}"
        found[text] = ratios
    return found


def _ratios_of_versions(section: Section) -> str:
    """Return a table: a column for each version, in it how many times as fast as its own Parquet each work is."""
    sessions = tuple(dict.fromkeys(each.session for each in section.series))
    ratios: dict[str, dict[str, str]] = {}
    for mine in section.series:
        theirs = find_series(section.series, mine.work, PARQUET, mine.session)
        if theirs is not None and mine.contender != PARQUET:
            row = ratios.setdefault(f"{mine.work}: {mine.contender}", {})
            row[mine.session] = f"{faster_than(mine, theirs).value:.2f}"
    rows = [(work, *(found.get(session, "") for session in sessions)) for work, found in ratios.items()]
    return "\n".join(to_table(("times as fast as Parquet", *sessions), rows)) + "\n"


def _times_through_servers(section: Section) -> str:
    """Return a table: a row for each query and server, in it how much longer than in the driver it takes."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for series in section.series:
        for software, way in ((software, way) for software in (OURS, PARQUET) for way in (BY_CONNECT, BY_THRIFT)):
            driver = find_series(section.series, series.work, f"{software} {IN_DRIVER}", series.session)
            if series.contender == f"{software} {way}" and driver is not None:
                more = median(mine - its for mine, its in zip(series.seconds, driver.seconds, strict=True))
                ratio = f"{time_next_to(series, driver).value:.2f} ({1000 * more:+.0f} ms)"
                found.setdefault((series.work, way), {})[software] = ratio
    if not found:
        return ""
    rows = [
        (f"{work}, {way}", *(each.get(name, "") for name in (OURS, PARQUET))) for (work, way), each in found.items()
    ]
    return "\n".join(to_table(("time next to the driver's", OURS, PARQUET), rows)) + "\n"


_RATIOS: Final = {"versions": _ratios_of_versions, "servers": _times_through_servers}


def _compared(section: Section) -> list[tuple[str, list[Series]]]:
    works: dict[str, list[Series]] = {}
    for each in section.series:
        works.setdefault(each.work, []).append(each)
    return [(work, series) for work, series in works.items() if len(series) > 1][:_MOST_WORKS]


def _revisions(kept: Sequence[Kept]) -> str:
    """Return a sentence on which revisions the results are of."""
    revisions, dates = {each.run["code"] for each in kept}, sorted({each.run["date"] for each in kept})
    days = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    if len(revisions) == 1:
        return f"All results are of {days} and of one revision of the code, {revisions.pop()}.\n"
    return f"The results are of {days} and of {len(revisions)} revisions of the code; each section names its own.\n"


def _with_peers(kept: Kept) -> str:
    """Return the heading of a later result of a benchmark, which has other peers."""
    contenders = {each.contender for each in kept.section.series}
    named = [peer for peer in (DELTA, ICEBERG, PAIMON) if peer in contenders]
    return f"{_SECTIONS[kept.section.name][0]}, next to {' and '.join(named)}"


def _provenance(kept: Kept) -> str:
    run = kept.run
    machine, versions = run["machine"], run["versions"]
    spark = f", PySpark {versions['pyspark']}" if "pyspark" in versions else ""
    if any(each.contender == PAIMON for each in kept.section.series):
        spark += f", {versions['paimon']} on PySpark {versions['pyspark of paimon']}"
    settings = run.get("settings", {})
    sizes = ", {rounds} rounds".format_map(settings) if settings.get("rounds") else ""
    stem = kept.file.stem
    raw = f"[{stem}.json](../bench/results/{stem}.json), all figures: [{stem}.md](../bench/results/{stem}.md)"
    return (
        f"{run['date']}, code {run['code']}, {machine['processor']} with {machine['cores']} cores and "
        f"{machine['memory']}, load {run['load_average']}{spark}{sizes}; raw data: {raw}.\n"
    )


def _details(kept: Kept) -> str:
    """Return the figures of what is drawn, or, if nothing is compared, those with a target."""
    drawn = {work for work, _ in _compared(kept.section)}
    shown = replace(
        kept.section,
        series=tuple(each for each in kept.section.series if each.work in drawn),
        checks=() if drawn else tuple(each for each in kept.section.checks if each.target),
        notes=(),
    )
    body = to_markdown(shown).split("\n", maxsplit=1)[1].strip()
    return f'<details markdown="1"><summary>Figures</summary>\n\n{body}\n\n</details>\n'


if __name__ == "__main__":
    print(f"{PAGE.relative_to(ROOT)}: {write(RESULTS)} charts")
