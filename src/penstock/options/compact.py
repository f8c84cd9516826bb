"""Options for compaction, sorting and incremental clustering.

Source:
    Paimon ``api:CoreOptions.java``, ``flink:FlinkConnectorOptions.java``; docs/spec/commit.md section 8.4,
    docs/spec/compaction.md. Keys that begin with ``penstock.`` are Penstock's own.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.options.choices import ClusteringMode, ClusteringStrategy, RangeStrategy
from penstock.options.group import (
    OptionGroup,
    at_least,
    option,
    parse_bool,
    parse_duration_ms,
    parse_float,
    parse_int,
    parse_names,
)


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

    min_file_num: int = option(
        "compaction.min.file-num", at_least(2, parse_int), 5, "number of small files at which a merge starts"
    )
    max_file_num: int | None = option(
        "compaction.max.file-num", at_least(2, parse_int), None, "number of files of any size at which a merge starts"
    )
    small_file_ratio: float = option(
        "compaction.small-file-ratio", parse_float, 0.7, "fraction of the target size below which a file is small"
    )
    delete_ratio_threshold: float = option(
        "compaction.delete-ratio-threshold",
        parse_float,
        0.2,
        "a compaction rewrites files of which deletion vectors delete more than this fraction of the rows",
    )
    file_num_limit: int = option(
        "compaction.file-num-limit",
        at_least(1, parse_int),
        100_000,
        "maximum number of files in concurrent merges of a stream",
    )
    force_rewrite_all_files: bool = option(
        "compaction.force-rewrite-all-files", parse_bool, False, "a full compaction rewrites every file"
    )
    skip_expired_partitions: bool = option(
        "compaction.skip-expired-partitions", parse_bool, False, "do not compact partitions that are about to expire"
    )
    delta_commits: int | None = option(
        "full-compaction.delta-commits", at_least(1, parse_int), None, "commits between full compactions of a queue"
    )
    precommit: bool = option(
        "precommit-compact",
        parse_bool,
        False,
        "merge the files of a commit before the commit",
        ("changelog.precommit-compact",),
    )
    max_tasks: int | None = option(
        "penstock.compaction.max-tasks",
        at_least(1, parse_int),
        None,
        "maximum number of concurrent merges",
        ("unaware-bucket.compaction.parallelism",),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SortOptions(OptionGroup):
    """How sort compaction splits and orders rows."""

    range_strategy: RangeStrategy = option(
        "sort-compaction.range-strategy",
        RangeStrategy,
        RangeStrategy.SIZE,
        "measure by which ranges are balanced",
        honoured=False,
    )
    sample_magnification: int = option(
        "sort-compaction.local-sample.magnification", at_least(20, parse_int), 1_000, "samples of each range"
    )
    zorder_text_bytes: int = option(
        "zorder.var-length-contribution", at_least(1, parse_int), 8, "bytes of a text that z-order uses", honoured=False
    )
    max_open_files: int = option(
        "local-sort.max-num-file-handles",
        at_least(2, parse_int),
        128,
        "files that an external sort merges at once",
        honoured=False,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringOptions(OptionGroup):
    """Which files incremental clustering takes, and how it sorts them.

    Attributes:
        columns: with the blanks of the text.
        history_idle_ms: time without rows after which a partition out of scope is sorted as a whole; None for never.
        max_levels: None for one more than ``trigger``.
        size_ratio: percentage by which the next run may be larger than those before it, to be taken with them.
        max_amplification: percentage of the oldest run; if all others together are larger, all runs are taken.
    """

    columns: tuple[str, ...] = option(
        "clustering.columns",
        parse_names,
        (),
        "columns that incremental clustering sorts by; batches are not sorted before they are written",
        ("sink.clustering.by-columns",),
    )
    strategy: ClusteringStrategy = option(
        "clustering.strategy",
        ClusteringStrategy,
        ClusteringStrategy.AUTO,
        "order of the sorted rows",
        ("sink.clustering.strategy",),
    )
    is_incremental: bool = option(
        "clustering.incremental", parse_bool, False, "files have levels, and compaction sorts some of them at a time"
    )
    mode: ClusteringMode = option(
        "clustering.incremental.mode",
        ClusteringMode,
        ClusteringMode.GLOBAL_SORT,
        "sort all rows that are taken together, or those of each file alone",
    )
    history_idle_ms: int | None = option(
        "clustering.history-partition.idle-to-full-sort",
        parse_duration_ms,
        None,
        "time without rows before a full sort of a history partition",
    )
    max_history_partitions: int = option(
        "clustering.history-partition.limit", at_least(0, parse_int), 5, "idle partitions clustered at once"
    )
    trigger: int = option(
        "num-sorted-run.compaction-trigger", at_least(1, parse_int), 5, "runs at which clustering starts"
    )
    max_levels: int | None = option("num-levels", parse_int, None, "levels of incremental clustering")
    size_ratio: int = option("compaction.size-ratio", parse_int, 1, "percent of difference between runs of one size")
    max_amplification: int = option(
        "compaction.max-size-amplification-percent",
        parse_int,
        200,
        "percentage of extra space at which all files are merged",
    )

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, without blanks around them."""
        return tuple(name.strip() for name in self.columns)
