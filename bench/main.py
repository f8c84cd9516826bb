"""The command line of the benchmarks."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from bench import (
    commit,
    history_flat,
    imports,
    latest_offset,
    page,
    paimon_spark,
    plan,
    python_io,
    requests,
    scale,
    spark_sections,
    stream_sections,
    versions,
)
from bench.environment import describe_code, describe_machine, describe_versions, load_average
from bench.jars import peer_version
from bench.result import to_json, to_markdown
from bench.settings import DATA, QUICK, RESULTS, Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bench.result import Section

BENCHMARKS: Final[dict[str, Callable[[Settings], Section]]] = {
    "append": spark_sections.measure_append,
    "scan": spark_sections.measure_scan,
    "changed": spark_sections.measure_changed,
    "select": spark_sections.measure_select,
    "servers": spark_sections.measure_servers,
    "append-partitioned": spark_sections.measure_append_partitioned,
    "dml": spark_sections.measure_dml,
    "first-row": spark_sections.measure_first_row,
    "compact": spark_sections.measure_compact,
    "sort": spark_sections.measure_sort,
    "plan": plan.measure,
    "scale": scale.measure,
    "commit": commit.measure,
    "python": python_io.measure,
    "import": imports.measure,
    "requests": requests.measure,
    "stream-read": stream_sections.measure_read,
    "stream-write": stream_sections.measure_write,
    "stream-windows": stream_sections.measure_windows,
    "stream-watermark": stream_sections.measure_watermark,
    "stream-durable": stream_sections.measure_durable,
    "stream-compact": stream_sections.measure_beside,
    "latest-offset": latest_offset.measure,
    "slope": stream_sections.measure_slope,
    history_flat.IN_TURN: history_flat.measure,
    history_flat.BESIDE: history_flat.measure_beside,
    "versions": versions.measure,
}
BUSY: Final = 1.5


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and store the raw figures."""
    given = _parser().parse_args(arguments)
    settings = _settings(given)
    # Installed packages have cached bytecode; so must the processes that we start, whatever the shell's settings.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ.setdefault("PYTHONPYCACHEPREFIX", str(DATA / "pycache"))
    if load_average() > BUSY:
        _say(f"This machine is busy (load {load_average():.1f}): the times will be noise.")
    # Before the first result is kept, which may replace a file under version control.
    code = describe_code()
    for name in given.only or BENCHMARKS:
        started, loads = time.monotonic(), [load_average()]
        _say(f"{name} ...")
        section = BENCHMARKS[name](settings)
        loads.append(load_average())
        wall_seconds = round(time.monotonic() - started)
        _say(f"{name} took {wall_seconds} s")
        print(to_markdown(section), flush=True)
        if not given.no_save:
            # Now, because hours later another benchmark may fail.
            load = f"{min(loads):.1f} - {max(loads):.1f}"
            measured = {"code": code, "load_average": load, "wall_seconds": wall_seconds}
            _save(section, settings, measured, f"{given.name}-{name}" if given.name else name)
    if not given.no_save:
        page.write(RESULTS)
    return 0


def _names(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        message = f"no benchmark is named {', '.join(map(repr, unknown))}"
        raise argparse.ArgumentTypeError(message)
    return names


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--only", action="extend", type=_names, metavar="NAME,...", help=f"measure these of {', '.join(BENCHMARKS)}"
    )
    parser.add_argument("--rounds", type=int, help="timed rounds (5)")
    parser.add_argument("--rows", type=int, help="rows of the seven-column table on Spark (8,000,000)")
    parser.add_argument("--scale", type=float, help="scale of TPC-H (1)")
    parser.add_argument("--files", type=int, help="of the only table of scale (100,000 and 1,000,000)")
    parser.add_argument("--peer", action="append", choices=Settings().peers, help="on Spark, only beside this one")
    parser.add_argument("--quick", action="store_true", help="toy sizes: shows that it runs, nothing more")
    parser.add_argument("--name", help="first part of the name of each result's files")
    parser.add_argument("--no-save", action="store_true", help="print only")
    return parser


def _settings(given: argparse.Namespace) -> Settings:
    settings = QUICK if given.quick else Settings()
    if given.rounds:
        settings = replace(settings, rounds=given.rounds)
    if given.rows:
        settings = replace(settings, rows=given.rows, python_rows=min(given.rows, settings.python_rows))
    if given.files:
        settings = replace(settings, scale_files=(given.files,))
    if given.scale:
        settings = replace(settings, scale=given.scale)
    return replace(settings, peers=tuple(given.peer)) if given.peer else settings


def _save(section: Section, settings: Settings, measured: Mapping[str, Any], name: str) -> None:
    versions = describe_versions() | {peer: peer_version(peer) for peer in settings.peers}
    if "paimon" in settings.peers:
        versions["pyspark of paimon"] = paimon_spark.spark_version()
    now = datetime.now(UTC)
    context = {
        "date": f"{now:%Y-%m-%d}",
        **measured,
        "machine": describe_machine(),
        "versions": versions,
        "settings": asdict(settings),
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    stem = RESULTS / f"{now:%Y-%m-%d}-{name}"
    raw = {**context, "sections": [to_json(section)]}
    stem.with_suffix(".json").write_text(json.dumps(raw, indent=1) + "\n")
    facts = {**context["machine"], "load average": context["load_average"], **versions}
    head = [f"# Benchmarks of {context['date']}, revision {context['code']}", ""]
    head += [*(f"* {key}: {value}" for key, value in facts.items()), ""]
    head.append(f"Rounds: {settings.rounds}. How to read and repeat this: [README](../README.md).\n")
    stem.with_suffix(".md").write_text("\n".join([*head, to_markdown(section)]))
    _say(f"Kept in bench/results/{stem.name}.json and .md")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
