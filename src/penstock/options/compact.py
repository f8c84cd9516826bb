"""Options for compaction and sorting.

Source:
    Paimon ``api:CoreOptions.java``, ``flink:FlinkConnectorOptions.java``; docs/spec/commit.md section 8.4,
    docs/spec/compaction.md. Keys that begin with ``penstock.`` are Penstock's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from penstock.options.choices import ClusteringStrategy, RangeStrategy
from penstock.options.group import Key, OptionGroup
from penstock.options.values import at_least, parse_bool, parse_float, parse_int, parse_names


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactOptions(OptionGroup):
    """When small files are merged.

    Attributes:
        max_file_num: number of files of any size that starts a merge, the rule of releases up to 1.0; None for the
            current rule.
        small_file_ratio: fraction of the target size; smaller files are candidates for a merge.
        delta_commits: number of commits between full compactions; None for no full compactions.
        max_tasks: maximal number of concurrent rewrites; None for all cores but one.
    """

    min_file_num: Annotated[
        int,
        Key(
            "compaction.min.file-num",
            at_least(2, parse_int),
            "number of small files at which a merge starts",
            honoured=True,
        ),
    ] = 5
    max_file_num: Annotated[
        int | None,
        Key(
            "compaction.max.file-num",
            at_least(2, parse_int),
            "number of files of any size at which a merge starts",
            honoured=True,
        ),
    ] = None
    small_file_ratio: Annotated[
        float,
        Key(
            "compaction.small-file-ratio",
            parse_float,
            "fraction of the target size below which a file is small",
            honoured=True,
        ),
    ] = 0.7
    delete_ratio_threshold: Annotated[
        float,
        Key("compaction.delete-ratio-threshold", parse_float, "fraction of deleted rows at which a file is rewritten"),
    ] = 0.2
    file_num_limit: Annotated[
        int,
        Key(
            "compaction.file-num-limit",
            at_least(1, parse_int),
            "maximum number of files in concurrent merges of a stream",
            honoured=True,
        ),
    ] = 100_000
    force_rewrite_all_files: Annotated[
        bool,
        Key(
            "compaction.force-rewrite-all-files",
            parse_bool,
            "a full compaction rewrites every file",
            honoured=True,
        ),
    ] = False
    skip_expired_partitions: Annotated[
        bool,
        Key(
            "compaction.skip-expired-partitions",
            parse_bool,
            "do not compact partitions that are about to expire",
            honoured=True,
        ),
    ] = False
    delta_commits: Annotated[
        int | None,
        Key(
            "full-compaction.delta-commits",
            at_least(1, parse_int),
            "commits between full compactions of a queue",
            honoured=True,
        ),
    ] = None
    precommit: Annotated[
        bool,
        Key(
            "precommit-compact",
            parse_bool,
            "merge the files of a commit before the commit",
            ("changelog.precommit-compact",),
            honoured=True,
        ),
    ] = False
    max_tasks: Annotated[
        int | None,
        Key(
            "penstock.compaction.max-tasks",
            at_least(1, parse_int),
            "maximum number of concurrent merges",
            ("unaware-bucket.compaction.parallelism",),
            honoured=True,
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SortOptions(OptionGroup):
    """How sort compaction splits and orders rows."""

    range_strategy: Annotated[
        RangeStrategy, Key("sort-compaction.range-strategy", RangeStrategy, "measure by which ranges are balanced")
    ] = RangeStrategy.SIZE
    sample_magnification: Annotated[
        int,
        Key(
            "sort-compaction.local-sample.magnification",
            at_least(20, parse_int),
            "samples of each range",
            honoured=True,
        ),
    ] = 1_000
    zorder_text_bytes: Annotated[
        int, Key("zorder.var-length-contribution", at_least(1, parse_int), "bytes of a text that z-order uses")
    ] = 8
    max_open_files: Annotated[
        int,
        Key("local-sort.max-num-file-handles", at_least(2, parse_int), "files that an external sort merges at once"),
    ] = 128
    clustering_columns: Annotated[
        tuple[str, ...],
        Key("clustering.columns", parse_names, "columns that batches are sorted by", ("sink.clustering.by-columns",)),
    ] = ()
    clustering_strategy: Annotated[
        ClusteringStrategy,
        Key(
            "clustering.strategy",
            ClusteringStrategy,
            "order of the sorted rows",
            ("sink.clustering.strategy",),
        ),
    ] = ClusteringStrategy.AUTO
    incremental_clustering: Annotated[
        bool,
        Key(
            "clustering.incremental",
            parse_bool,
            "files have levels; Penstock does not compact such tables",
            honoured=True,
        ),
    ] = False
