"""Options that are refused, because ignoring them would return or store other rows than requested.

Source:
    Paimon ``api:CoreOptions.java``, ``flink:FlinkConnectorOptions.java``, ``spark:SparkConnectorOptions.java``; the
    read and write options of Delta Lake and of Iceberg for Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why an option is refused.

    Attributes:
        cure: what to do instead, as the end of a sentence.
        inert: values that request nothing, in lower case.
        reads: whether a read that ignores the option returns other rows; then it is refused as a stored option too.
        is_own: whether the feature's own code checks the option, with an error text of its own.
        is_for_batch: whether batch reads support it.
    """

    cure: str
    inert: frozenset[str] = frozenset({"false"})
    reads: bool = False
    is_own: bool = False
    is_for_batch: bool = False


_NEVER: Final[frozenset[str]] = frozenset()
_MAIN: Final = frozenset({"main"})
_BRANCHES: Final = "Table.with_options({'branch': 'b'}) and the name t$branch_b read and write a branch"
_MERGE_SCHEMA: Final = "add the column first, with Catalog.alter_table and AddColumn or ALTER TABLE ... ADD"
_NO_KEYS: Final = "it needs a primary key, which append tables do not have; leave it out"

REFUSED: Final[dict[str, Refusal]] = {
    "branch": Refusal(cure=_BRANCHES, inert=_MAIN, reads=True),
    "scan.fallback-snapshot-branch": Refusal(cure=_BRANCHES, inert=_NEVER, reads=True),
    "scan.fallback-delta-branch": Refusal(cure=_BRANCHES, inert=_NEVER, reads=True),
    "scan.primary-branch": Refusal(cure=_BRANCHES, inert=_NEVER, reads=True),
    "scan.partitions": Refusal(
        cure="name the partitions in the filter, such as filter=\"dt = '2026-01-01'\" or WHERE dt = '2026-01-01'",
        inert=_NEVER,
        reads=True,
        is_for_batch=True,
    ),
    "scan.bucket": Refusal(
        cure="filter on the bucket key, which reads only the buckets that can hold it", inert=_NEVER, reads=True
    ),
    "incremental-to-auto-tag": Refusal(
        cure="name both tags with incremental-between = '<earlier>,<later>'", inert=_NEVER, is_own=True
    ),
    "read.changelog": Refusal(cure="append tables have no changelog: every row is an insertion", reads=True),
    "query-auth.enabled": Refusal(cure="Penstock does not query a catalog for a user's permissions", reads=True),
    "commit.strict-mode.last-safe-snapshot": Refusal(cure="Penstock has no such check; leave it out", inert=_NEVER),
    "commit.discard-duplicate-files": Refusal(cure="Penstock does not look for them; leave it out"),
    "write.merge-schema": Refusal(cure=_MERGE_SCHEMA),
    "changelog-producer": Refusal(cure=_NO_KEYS, inert=frozenset({"none"}), is_own=True),
    "primary-key": Refusal(cure=_NO_KEYS, inert=frozenset({""}), is_own=True),
    "streaming-read-overwrite": Refusal(cure="set 'streaming-read-append-overwrite'", is_own=True),
}
"""Paimon's refused options, by key."""

DEFAULT_VALUE: Final = ("fields.", ".default-value")
"""Prefix and suffix of the keys of column defaults; rows without the column would not get the default value."""

DEFAULT_VALUE_REFUSAL: Final = Refusal(
    cure="declare it with the column, such as status STRING DEFAULT 'new'", inert=_NEVER
)

_DELTA: Final = "Delta Lake"
_ICEBERG: Final = "Iceberg"
_FILES: Final = "plain files in Spark"
_AS_OF: Final = "only batch reads take it; a stream starts with 'scan.mode' = 'from-snapshot' and 'scan.snapshot-id'"
_AS_OF_TIME: Final = (
    "only batch reads take it; a stream starts with 'scan.mode' = 'from-timestamp' and 'scan.timestamp-millis'"
)
_CHANGES: Final = "give 'incremental-between' = '<after snapshot>,<to snapshot>', or read the table as a stream"
_APPENDS: Final = "a stream delivers appended rows only, those of overwrites with 'streaming-read-append-overwrite'"
_REPEATED: Final = (
    "give both to df.write.format('penstock') in foreachBatch, or write with Table.write_stream, whose micro-batches "
    "are in the table exactly once"
)
_SCHEMA: Final = "change the columns with Catalog.alter_table or ALTER TABLE"

FOREIGN: Final[dict[str, tuple[str, str]]] = {
    "versionasof": (_DELTA, _AS_OF),
    "timestampasof": (_DELTA, _AS_OF_TIME),
    "startingversion": (_DELTA, "give 'scan.mode' = 'from-snapshot' and 'scan.snapshot-id' = '<first snapshot>'"),
    "startingtimestamp": (_DELTA, "give 'scan.mode' = 'from-timestamp' and 'scan.timestamp-millis'"),
    "endingversion": (_DELTA, _CHANGES),
    "endingtimestamp": (_DELTA, "give 'incremental-between-timestamp' = '<after ms>,<to ms>'"),
    "readchangefeed": (_DELTA, _CHANGES),
    "readchangedata": (_DELTA, _CHANGES),
    "ignorechanges": (_DELTA, _APPENDS),
    "ignoredeletes": (_DELTA, _APPENDS),
    "skipchangecommits": (_DELTA, _APPENDS),
    "mergeschema": (_DELTA, _MERGE_SCHEMA),
    "overwriteschema": (_DELTA, _SCHEMA),
    "replacewhere": (_DELTA, "give it to df.write.format('penstock').mode('overwrite'), or overwrite(partition=...)"),
    "replaceon": (_DELTA, "give 'replaceWhere' with a condition on partition columns"),
    "replaceusing": (_DELTA, "give 'replaceWhere' with a condition on partition columns"),
    "txnappid": (_DELTA, _REPEATED),
    "txnversion": (_DELTA, _REPEATED),
    "maxrecordsperfile": (_DELTA, "give 'target-file-row-num' = '<rows>'"),
    "snapshot-id": (_ICEBERG, "give 'scan.snapshot-id' = '<snapshot>'"),
    "as-of-timestamp": (_ICEBERG, "give 'scan.timestamp-millis' = '<ms since 1970>'"),
    "tag": (_ICEBERG, "give 'scan.tag-name' = '<tag>'"),
    "start-snapshot-id": (_ICEBERG, _CHANGES),
    "end-snapshot-id": (_ICEBERG, _CHANGES),
    "start-timestamp": (_ICEBERG, "give 'incremental-between-timestamp' = '<after ms>,<to ms>'"),
    "end-timestamp": (_ICEBERG, "give 'incremental-between-timestamp' = '<after ms>,<to ms>'"),
    "stream-from-timestamp": (_ICEBERG, "give 'scan.mode' = 'from-timestamp' and 'scan.timestamp-millis'"),
    "streaming-skip-overwrite-snapshots": (_ICEBERG, _APPENDS),
    "streaming-skip-delete-snapshots": (_ICEBERG, _APPENDS),
    "merge-schema": (_ICEBERG, _MERGE_SCHEMA),
    "overwrite-mode": (_ICEBERG, "give 'partitionOverwriteMode' = 'static' or 'dynamic'"),
    "isolation-level": (_ICEBERG, "leave it out: there is one level here"),
    "validate-from-snapshot-id": (_ICEBERG, "leave it out: there is no such check"),
    "write-format": (_ICEBERG, "give 'file.format' = 'parquet', 'orc' or 'avro'"),
    "target-file-size-bytes": (_ICEBERG, "give 'target-file-size' = '128 mb'"),
    "modifiedafter": (_FILES, "give 'scan.file-creation-time-millis' = '<ms since 1970>'"),
    "modifiedbefore": (_FILES, "give 'scan.timestamp' = 'yyyy-MM-dd HH:mm:ss'"),
    "pathglobfilter": (_FILES, "name partitions in the filter"),
}
"""Keys of other table formats, in lower case: the format, and the equivalent here."""
