"""The record of a soak: one line of JSON a sample, parts after each other."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.soak.processes import Held, below, children, held_by, release_free_memory
from tests.soak.scene import TABLES, Scene

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HELD = ("rss_mb", "own_mb", "handles", "threads", "cpu_s", "processes")
JVM = ("heap_mb", "non_heap_mb", "classes", "jvm_threads", "metaspace_mb", "code_mb", "pooled_threads")
TABLE = ("live_files", "snapshots", "manifests", "metadata_kb", "data_files", "directories", "other_files")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Everything at one moment.

    Attributes:
        part: which process of the driver took it, from 0.
        seconds: since that part began.
        held: per process, in the order of ``HELD``.
        jvm: in the order of ``JVM``.
        tables: per table, in the order of ``TABLE``.
        batches: per query milliseconds of the micro-batches since the sample before.
        notes: what the other processes have counted.
    """

    part: int
    seconds: float
    held: Mapping[str, Sequence[float]]
    jvm: Sequence[float] = ()
    tables: Mapping[str, Sequence[float]] = field(default_factory=dict)
    batches: Mapping[str, Sequence[int]] = field(default_factory=dict)
    notes: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return it as a line."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__}, separators=(",", ":"))


def load_samples(path: Path) -> list[Sample]:
    """Read a record."""
    return [Sample(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def measure_processes(roles: Mapping[str, int], jvm: int) -> dict[str, list[float]]:
    """Return what this process, its JVM, the JVM's Python processes and the given ones hold."""
    tree = children()
    release_free_memory()
    # The processes beside us are waited for at the end only, so no time of theirs is in ours.
    found = {"driver": held_by(os.getpid()), "jvm": held_by(jvm)}
    found["workers"] = sum((held_by(process) for process in below(jvm, tree)), Held())
    for name, process in roles.items():
        found[name] = sum((held_by(each) for each in below(process, tree)), held_by(process))
    return {name: held.to_row() for name, held in found.items()}


def measure_table(scene: Scene, name: str) -> list[float]:
    """Return what a table has: files that are live, and what lies in its directory."""
    table = scene.table(name)
    location = scene.directory(table)
    snapshots = manifests = size = data = directories = other = 0
    for folder, _, files in os.walk(location):
        directories += 1
        kind = Path(folder).relative_to(location).parts[:1]
        for file in files:
            if kind in {("snapshot",), ("manifest",)}:
                try:
                    size += os.stat(f"{folder}/{file}").st_size  # noqa: PTH116 - thousands of them
                except FileNotFoundError:
                    continue  # it expired meanwhile
                snapshots += file.startswith("snapshot-")
                manifests += kind == ("manifest",)
            elif file.startswith("data-"):
                data += 1
            else:
                other += 1
    # A snapshot that expires while it is planned is the next sample's.
    live = table.files().num_rows if snapshots else 0
    return [live, snapshots, manifests, round(size / 1024), data, directories, other]


def measure_tables(scene: Scene) -> dict[str, list[float]]:
    """Return what each table has, and the files beside them."""
    found = {name.rpartition(".")[2]: measure_table(scene, name) for name in TABLES}
    for folder in ("checkpoints", "scratch"):
        found[folder] = [float(sum(len(files) for _, _, files in os.walk(scene.root / folder)))]
    return found


def read_notes(scene: Scene) -> dict[str, float]:
    """Return what the other processes have counted."""
    return {path.stem: float(path.read_text()) for path in sorted(scene.root.glob("*.note"))}
