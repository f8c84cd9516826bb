"""Incremental clustering next to Java's: which files are picked for which level, and tables that both cluster."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from tests.interop import ours
from tests.interop.engines import Engine

from penstock.clocks import local_wall_millis
from penstock.format.manifest.entry import DataFileMeta
from penstock.format.snapshot import CommitKind
from penstock.table.actions.changes import open_committer
from penstock.table.commit.delta import CommitRequest
from penstock.table.compact.cluster import plan_clustering
from penstock.table.compact.local import request_compaction
from penstock.table.message import CommitMessage
from penstock.table.partition_scope import partition_of_spec
from penstock.table.store import MetadataStore

TABLES: Final = 10
DAY_MS: Final = 86_400_000


def files_of(random: random.Random, name: str) -> Iterator[DataFileMeta]:
    """Make up the files of one partition, which no planner opens."""
    top = random.choice([1, 2, 5, 7])
    scale = random.choice([10, 1_000_000, 10**12])
    for number in range(random.choice([1, 2, 3, 5, 8, 15])):
        rows = random.randint(1, 100)
        first = random.choice([0, random.randint(0, 1_000)])
        level = random.choice([0, 0, random.randint(0, top)])
        # Rows arrived when the files of level 0 were written; Java also looks at those of levels between.
        days = 10 if level else random.choice([0, 10, 10])
        yield DataFileMeta(
            file_name=f"data-{name}-{number}.parquet",
            file_size=random.choice([scale, random.randint(1, scale), 1 + scale // random.randint(1, 50)]),
            row_count=rows,
            min_sequence_number=first,
            max_sequence_number=first + rows - 1,
            schema_id=0,
            level=level,
            creation_millis=local_wall_millis() - days * DAY_MS - random.randint(0, 10_000),
        )


def commit(location: Path, partition: str, files: Sequence[DataFileMeta], gone: Sequence[DataFileMeta] = ()) -> None:
    committer = open_committer(ours.load(location)._ref)
    message = CommitMessage(
        partition=partition_of_spec(committer.ref, {"p": partition}),
        bucket=0,
        total_buckets=-1,
        **({"compact_before": tuple(gone), "compact_after": tuple(files)} if gone else {"new_files": tuple(files)}),
    )
    kind = CommitKind.COMPACT if gone else CommitKind.APPEND
    committer.commit(CommitRequest(commit_user="made up", kind=kind, commit_identifier=1, messages=(message,)))


def options_of(random: random.Random) -> dict[str, str]:
    options = {
        "num-sorted-run.compaction-trigger": str(random.choice([1, 2, 3, 5, 8])),
        "compaction.size-ratio": str(random.choice([0, 1, 30, 200])),
        "compaction.max-size-amplification-percent": str(random.choice([0, 50, 200, 1_000_000])),
    }
    if random.random() < 0.5:
        options["num-levels"] = str(random.randint(2, 8))
    return options


def planned(location: Path, options: dict[str, str], **request: Any) -> dict[str, tuple[int, list[str]]]:
    ref = ours.load(location)._ref.with_options(options)
    job = plan_clustering(ref, MetadataStore(ref), request_compaction(ref, **request))
    return {
        partition.name.removeprefix("p="): (task.level, [file.file_name for file in task.files])
        for partition in job.plan.partitions
        for task in partition.tasks
    }


def planned_by(java: Engine, location: Path, options: dict[str, str], **request: Any) -> dict[str, Any]:
    answer = java.ask("cluster", location, options=options, dry=True, **request)
    return {each["partition"]["p"]: (each["level"], each["files"]) for each in answer}


def test_java_picks_the_same_files_for_the_same_level(java: Engine, location: Path) -> None:
    made = random.Random(1)  # noqa: S311 - not for secrets
    stored = {"clustering.incremental": "true", "clustering.columns": "k"}
    kinds: Counter[str] = Counter()
    for number in range(TABLES):
        where = location.parent / f"t{number}"
        ours.create(where, "k INT, p STRING", partition_by=["p"], options=stored)
        for partition in "abcd":
            files = list(files_of(made, f"{number}-{partition}"))
            if (cut := made.randint(0, len(files))) < len(files):
                commit(where, partition, files[cut:])
            if cut:
                commit(where, partition, files[:cut])
            if len(files) > 2 and made.random() < 0.3:
                commit(
                    where, partition, [replace(files[0], file_name=f"data-{number}-{partition}-new.parquet")], files[:1]
                )
        for _ in range(4):
            options = options_of(made)
            minor = planned(where, options)
            assert minor == planned_by(java, where, options, full=False), (number, options)
            kinds.update(f"level {level}" for level, _ in minor.values())
            kinds.update(["none"] * (4 - len(minor)))
            full = planned(where, options, strategy="full")
            assert full == planned_by(java, where, options, full=True), (number, options)
            other = {**options, "clustering.columns": "k,p"}  # by which no file is sorted yet
            assert planned(where, other, strategy="full") == planned_by(java, where, other, full=True)
            idle = {**options, "clustering.history-partition.idle-to-full-sort": "3 d"}
            found = planned(where, idle, partitions=[{"p": "a"}])
            by_java = planned_by(java, where, idle, full=False, partition={"p": "a"})
            if not found.keys() - {"a"}:
                # Where no partition is idle, Java's list of them is empty, which its scan takes for no condition.
                by_java = {name: picked for name, picked in by_java.items() if name == "a"}
            assert found == by_java, (number, options)
            kinds.update(["history"] * len(found.keys() - {"a"}))
            few = {**idle, "clustering.history-partition.limit": "1"}
            limited = planned(where, few, partitions=[{"p": "a"}])
            assert len(limited.keys() - {"a"}) == min(1, len(found.keys() - {"a"}))
            assert all(found[name] == picked for name, picked in limited.items())
    assert min(kinds[each] for each in ("none", "level 1", "level 2", "level 4", "history")) > 0, kinds
