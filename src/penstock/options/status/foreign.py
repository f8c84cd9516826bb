"""Keys that no option group parses: keys of other engines, unsupported keys, and keys whose text is used unparsed.

Source:
    Paimon ``api:CoreOptions.java``, ``api:options/CatalogOptions.java``, ``flink:FlinkConnectorOptions.java``,
    ``spark:SparkConnectorOptions.java``; docs/spec/commit.md section 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class KnownKey:
    """A documented key."""

    name: str
    type: str
    default: str
    group: str
    meaning: str


_FLINK: Final = "flink deployment"
_LAYOUT: Final = "layout"
_INDEX: Final = "file index"
_COMMIT: Final = "commit"
_MAINTENANCE: Final = "maintenance"
_SORT: Final = "sort"
_TABLE: Final = "table"
_REFUSED: Final = "refused"

DOCUMENTED: Final = (
    KnownKey("path", "text", "", _TABLE, "location of the table; the catalog gives it"),
    KnownKey("partition", "names", "", _TABLE, "partition columns, instead of PARTITIONED BY"),
    KnownKey("primary-key", "names", "", _REFUSED, "primary keys are not supported"),
    KnownKey("auto-create", "boolean", "false", _FLINK, "create the table when a job starts"),
    KnownKey("row-tracking.enabled", "boolean", "false", _REFUSED, "row tracking is not supported"),
    KnownKey("data-evolution.enabled", "boolean", "false", _REFUSED, "data evolution is not supported"),
    KnownKey("deletion-vectors.enabled", "boolean", "false", _REFUSED, "deletion vectors are not supported"),
    KnownKey("changelog-producer", "text", "none", _REFUSED, "changelogs need a primary key"),
    KnownKey("data-file.external-paths.strategy", "text", "none", _LAYOUT, "how an external path is chosen"),
    KnownKey("data-file.external-paths.specific-fs", "text", "", _LAYOUT, "the one external storage to use"),
    KnownKey("data-file.external-paths.weights", "text", "", _LAYOUT, "shares of the external paths"),
    KnownKey("file.format.per.level", "map", "", _LAYOUT, "format by level; append tables stay at level 0"),
    KnownKey("file.compression.per.level", "map", "", _LAYOUT, "codec by level; append tables stay at level 0"),
    KnownKey("metadata.stats-mode.per.level", "map", "", _LAYOUT, "statistics by level"),
    KnownKey(
        "index-file-in-data-file-dir", "boolean", "false", _LAYOUT, "store index files in the directories of data files"
    ),
    KnownKey("async-file-write", "boolean", "true", _LAYOUT, "write files in a separate thread"),
    KnownKey("file-reader-async-threshold", "size", "10 mb", _LAYOUT, "size from which files are read ahead"),
    KnownKey("file-index.in-manifest-threshold", "size", "500 b", _INDEX, "largest index kept in the manifest"),
    KnownKey("partition.timestamp-format.strict", "boolean", "false", "write", "refuse partitions without a time"),
    KnownKey("commit.callbacks", "text", "", _COMMIT, "Java classes called after a commit"),
    KnownKey("commit.custom-listeners", "text", "", _COMMIT, "Java classes called after a commit"),
    KnownKey("manifest.merge-optimize.enabled", "boolean", "true", _COMMIT, "copy blocks while merging manifests"),
    KnownKey("manifest-sort.enabled", "boolean", "false", _COMMIT, "sort manifest entries by partition"),
    KnownKey("manifest-sort.partition-field", "text", "", _COMMIT, "the partition column to sort by"),
    KnownKey("manifest-sort.max-rewrite-size", "size", "256 mb", _COMMIT, "manifests that one sort rewrites"),
    KnownKey(
        "changelog.num-retained.min", "integer", "", _MAINTENANCE, "minimum number of changelogs that are retained"
    ),
    KnownKey(
        "changelog.num-retained.max", "integer", "", _MAINTENANCE, "maximum number of changelogs; the oldest expire"
    ),
    KnownKey("changelog.time-retained", "duration", "", _MAINTENANCE, "age at which a changelog expires"),
    KnownKey("tag.callbacks", "text", "", _MAINTENANCE, "Java classes called when a tag is created"),
    KnownKey(
        "partition.mark-done-action.custom.class", "text", "", _MAINTENANCE, "Java class that marks the partition"
    ),
    KnownKey(
        "partition.mark-done-action.http.url", "text", "", _MAINTENANCE, "URL that is called when a partition is done"
    ),
    KnownKey("partition.mark-done-action.http.params", "text", "", _MAINTENANCE, "parameters of the call of that URL"),
    KnownKey(
        "partition.idle-time-to-report-statistic",
        "duration",
        "0 ms",
        _MAINTENANCE,
        "time without rows before statistics are reported",
    ),
    KnownKey("compaction.bucket-distribution-strategy", "text", "linear", _FLINK, "spread of buckets over tasks"),
    KnownKey("unaware-bucket.no-shuffle", "boolean", "false", _FLINK, "no shuffle in change data pipelines"),
    KnownKey("clustering.history-partition.limit", "integer", "5", _SORT, "idle partitions clustered at once"),
    KnownKey(
        "clustering.history-partition.idle-to-full-sort",
        "duration",
        "",
        _SORT,
        "time without rows before a full sort of a history partition",
    ),
    KnownKey("clustering.incremental.mode", "text", "global-sort", _SORT, "how incremental clustering sorts"),
    KnownKey("clustering.incremental.optimize-write", "boolean", "false", _SORT, "cluster before the write"),
    KnownKey("sink.clustering.sample-factor", "integer", "100", _SORT, "samples of a range shuffle"),
    KnownKey("sink.clustering.sort-in-cluster", "boolean", "true", _SORT, "sort inside each range"),
    KnownKey("num-sorted-run.compaction-trigger", "integer", "5", _SORT, "runs at which clustering starts"),
    KnownKey("num-levels", "integer", "", _SORT, "levels of incremental clustering"),
    KnownKey("compaction.size-ratio", "integer", "1", _SORT, "percent of difference between runs of one size"),
    KnownKey(
        "compaction.max-size-amplification-percent",
        "integer",
        "200",
        _SORT,
        "percentage of extra space at which all files are merged",
    ),
    KnownKey("scan.fallback-branch", "text", "", "read", "branch for partitions that are missing, in batch reads only"),
    KnownKey("scan.primary-branch", "text", "", "read", "branch whose partitions come first"),
    KnownKey("scan.plan-auto-tag-for-read.time-retained", "duration", "", "read", "tag a snapshot while it is read"),
    KnownKey("scan.infer-parallelism", "boolean", "true", _FLINK, "one source task for each bucket"),
    KnownKey("scan.infer-parallelism.max", "integer", "1024", _FLINK, "maximum number of source tasks"),
    KnownKey("scan.split-enumerator.batch-size", "integer", "10", _FLINK, "splits assigned at once"),
    KnownKey("scan.split-enumerator.mode", "text", "fair", _FLINK, "how splits are assigned"),
    KnownKey(
        "scan.partitions",
        "text",
        "",
        "read",
        "partitions to read, in batch reads only: dt=a;dt=b, max_pt() or max_two_pt()",
    ),
    KnownKey("scan.dedicated-split-generation", "boolean", "false", _FLINK, "plan in a separate task"),
    KnownKey("source.operator-uid.suffix", "text", "", _FLINK, "part of the operator's id"),
    KnownKey("sink.operator-uid.suffix", "text", "", _FLINK, "part of the operator's id"),
    KnownKey("sink.parallelism", "integer", "", _FLINK, "sink tasks"),
    KnownKey(
        "sink.use-managed-memory-allocator", "boolean", "false", _FLINK, "use Flink's managed memory for the buffer"
    ),
    KnownKey("sink.managed.writer-buffer-memory", "size", "256 mb", _FLINK, "weight of that memory"),
    KnownKey("sink.writer-cpu", "number", "1.0", _FLINK, "cores of a writer"),
    KnownKey("sink.writer-memory", "size", "", _FLINK, "memory of a writer"),
    KnownKey("sink.committer-cpu", "number", "1.0", _FLINK, "cores of the committer"),
    KnownKey("sink.committer-memory", "size", "", _FLINK, "memory of the committer"),
    KnownKey("sink.committer-operator-chaining", "boolean", "true", _FLINK, "committer and writer in one task"),
    KnownKey("sink.savepoint.auto-tag", "boolean", "false", _FLINK, "a tag for each savepoint"),
)

# Keys without documentation: for tables with a primary key, for catalogs, and rare ones of engines.
OTHERS: Final = frozenset(
    [
        "add-column-before-partition",
        "aggregation.remove-record-on-delete",
        "alter-column-null-to-not-null.disabled",
        "batch-scan-mode",
        "blob-as-descriptor",
        "blob-descriptor-field",
        "blob-field",
        "blob.target-file-size",
        "cache-page-size",
        "case-sensitive",
        "changelog-file.compression",
        "changelog-file.format",
        "changelog-file.prefix",
        "changelog-file.stats-mode",
        "changelog-producer.compaction-interval",
        "changelog-producer.row-deduplicate",
        "changelog-producer.row-deduplicate-ignore-fields",
        "changelog.precommit-compact.buffer-size",
        "changelog.precommit-compact.thread-num",
        "comment",
        "compaction.force-up-level-0",
        "compaction.incremental-size-threshold",
        "compaction.offpeak-ratio",
        "compaction.offpeak.end.hour",
        "compaction.offpeak.start.hour",
        "compaction.optimization-interval",
        "compaction.total-size-threshold",
        "connector",
        "cross-partition-upsert.bootstrap-parallelism",
        "cross-partition-upsert.index-ttl",
        "data-file.thin-mode",
        "delete.force-produce-changelog",
        "deletion-vector.index-file.target-size",
        "deletion-vectors.bitmap64",
        "deletion-vectors.merge-on-read",
        "deletion-vectors.modifiable",
        "disable-explicit-type-casting",
        "dynamic-bucket.assigner-parallelism",
        "dynamic-bucket.initial-buckets",
        "dynamic-bucket.max-buckets",
        "dynamic-bucket.target-row-num",
        "filesystem.job-level-settings.enabled",
        "force-lookup",
        "ignore-update-before",
        "local-kv-db.block-size",
        "local-merge-buffer-size",
        "location",
        "lock.enabled",
        "lock.type",
        "lookup-compact",
        "lookup-compact.max-interval",
        "lookup-wait",
        "merge-engine",
        "metastore",
        "metastore.partitioned-table",
        "metastore.tag-to-partition",
        "metastore.tag-to-partition.preview",
        "num-sorted-run.stop-trigger",
        "overwrite-upgrade",
        "owner",
        "partial-update.remove-record-on-delete",
        "partial-update.remove-record-on-sequence-group",
        "primary-key.nullable",
        "provider",
        "query-auth.enabled",
        "read.allow.fullScan",
        "read.changelog",
        "record-level.expire-time",
        "record-level.time-field",
        "row-tracking.partition-group-on-commit",
        "rowkind.field",
        "scan.fallback-branch.read-fail-fast",
        "scan.fallback-delta-branch",
        "scan.fallback-snapshot-branch",
        "scan.remove-normalize",
        "sequence.field",
        "sequence.field.sort-order",
        "sequence.snapshot-ordering",
        "sink.coordinator-commit.enabled",
        "sink.cross-partition.managed-memory",
        "sink.key-only-deletes.enabled",
        "sink.writer-coordinator.enabled",
        "sink.writer-refresh-detectors",
        "sort-engine",
        "sort-spill-buffer-size",
        "sort-spill-threshold",
        "stream-scan-mode",
        "uri",
        "vector-field",
        "vector.file.format",
        "vector.target-file-size",
        "visibility-callback.enabled",
        "warehouse",
        "write.merge-schema",
        "write.merge-schema.explicit-cast",
        "write.merge-schema.type-widening",
        "write.sequence-number-init-mode",
        "write.use-v2-write",
    ]
)

PREFIXES: Final = (
    "avro.",
    "chain-table.",
    "commit.callback.",
    "data-evolution.",
    "dlf.",
    "fields.",
    "file-index.",
    "file.compression.per.level.",
    "file.format.per.level.",
    "format-table.",
    "fs.",
    "global-index.",
    "hadoop.",
    "hive.",
    "lookup.",
    "materialized-table.",
    "metadata.stats-mode.per.level.",
    "orc.",
    "oss.",
    "parquet.",
    "pk-",
    "postpone.",
    "s3.",
    "schema.",
    "sink.writer-coordinator.",
    "table-default.",
    "tag.callback.",
    "variant.",
    "vector-search.",
)
"""Prefixes of keys that continue with a column, an index type, or a setting that is passed on."""


HONOURED: Final = frozenset(
    [
        "add-column-before-partition",
        "alter-column-null-to-not-null.disabled",
        "comment",
        "deletion-vectors.modifiable",
        "disable-explicit-type-casting",
        "owner",
        "partition",
        "path",
        "provider",
        "scan.fallback-branch",
    ]
)
"""Keys of this module that Penstock acts on, or that only describe the table."""

HONOURED_PREFIXES: Final = ("schema.",)
"""Prefix of the options in which Flink stores computed columns and the watermark."""
