"""Features that change how a table is stored or who reads it, and what each operation does with a table that has them.

The checks, the page of options and the tests use this one table.

Source:
    Paimon ``api:CoreOptions.java``, ``core:iceberg/IcebergOptions.java``, ``core:schema/SchemaValidation.java``;
    docs/spec/format.md sections 9 and 10, docs/spec/commit.md section 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Operation(StrEnum):
    """What is done with a table, by its name in the documentation."""

    READ = "batch read"
    STREAM = "stream read"
    APPEND = "append"
    CHANGE = "row change"
    REWRITE = "compaction"
    TAG = "tag or rollback"


_ALL: Final = frozenset(Operation)
_WRITES: Final = frozenset({Operation.APPEND, Operation.CHANGE, Operation.REWRITE})
_COMMITS: Final = _WRITES | {Operation.TAG}
_READS: Final = frozenset({Operation.READ, Operation.STREAM})
_NONE: Final[frozenset[Operation]] = frozenset()
_FALSE: Final = frozenset({"false"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One feature.

    Attributes:
        keys: options that turn it on, with ``*`` for a free part.
        reason: continues "'key' = 'value' ..." with the reason and what to do; of a feature without refusals, why the
            options are harmless.
        refused: operations that refuse every table with the option.
        found: operations that refuse the table only if a file or the snapshot has the feature.
        inert: values that do not ask for it, in lower case.
    """

    name: str
    keys: tuple[str, ...]
    reason: str
    refused: frozenset[Operation] = _NONE
    found: frozenset[Operation] = _NONE
    inert: frozenset[str] = _FALSE

    def is_asked(self, key: str, value: str) -> bool:
        """Whether the option turns the feature on."""
        return any(fnmatchcase(key, each) for each in self.keys) and value.strip().lower() not in self.inert


FEATURES: Final = (
    Feature(
        name="Iceberg metadata",
        keys=("metadata.iceberg.storage",),
        reason="has Iceberg readers, which would not see commits of Penstock: write with Paimon on Flink or Spark, or "
        "remove the option",
        refused=_COMMITS,
        inert=frozenset({"disabled"}),
    ),
    Feature(
        name="partitions in a metastore",
        keys=("metastore.partitioned-table", "metastore.tag-to-partition"),
        reason="has readers that take partitions from a metastore, which would not learn of new ones: write with "
        "Paimon on Flink or Spark, or remove the option",
        refused=_COMMITS,
    ),
    Feature(
        name="Java callbacks",
        keys=("commit.callbacks", "commit.custom-listeners", "tag.callbacks"),
        reason="names Java classes to call after each commit or tag: write with Paimon on Flink or Spark, or remove "
        "the option",
        refused=_COMMITS,
        inert=frozenset({""}),
    ),
    Feature(
        name="encrypted files",
        keys=("orc.encrypt*", "orc.mask*", "parquet.encrypt*", "parquet.crypto.*"),
        reason="encrypts files, and those of Penstock would be plain: write with Paimon on Flink or Spark, or remove "
        "the option",
        refused=_WRITES,
        found=_READS,
    ),
    Feature(
        name="deletion vectors",
        keys=("deletion-vectors.enabled",),
        reason="DELETE, UPDATE and MERGE write them; compaction writes files without the deleted rows; a stream leaves "
        "out those of the snapshot that it begins with",
    ),
    Feature(
        name="row tracking",
        keys=("row-tracking.enabled",),
        reason="rows keep their ids when they are written again",
    ),
    Feature(
        name="data evolution",
        keys=("data-evolution.enabled",),
        reason="spreads a row over several files: copy the table without it",
        refused=_ALL,
    ),
    Feature(
        name="dedicated files for BLOB and VECTOR",
        keys=("blob-field", "blob-descriptor-field", "blob-view-field", "vector.file.format"),
        reason="keeps values in files of their own: copy the table without it",
        refused=_ALL,
        inert=frozenset({""}),
    ),
    Feature(
        name="MAPs in shared columns",
        keys=("fields.*.map.storage-layout",),
        reason="keeps a MAP in columns that its keys share: copy the table without it",
        refused=_ALL,
        inert=frozenset({"default"}),
    ),
    Feature(
        name="shredded VARIANTs",
        keys=("variant.shreddingSchema", "variant.inferShreddingSchema"),
        reason="new files keep each VARIANT in one column, which every engine reads; Spark's readers read all",
        found=frozenset({Operation.READ, Operation.STREAM, Operation.CHANGE, Operation.REWRITE}),
    ),
    Feature(
        name="chain tables",
        keys=("chain-table.enabled",),
        reason="spreads a table over branches: copy it without the option",
        refused=_ALL,
    ),
    Feature(
        name="format tables, object tables and others",
        keys=("type",),
        reason="is not an ordinary table: only 'table' is supported",
        refused=_ALL,
        inert=frozenset({"table"}),
    ),
    Feature(
        name="other formats of data files",
        keys=("file.format",),
        reason="is not a format that Penstock writes: set 'parquet', 'orc' or 'avro'",
        refused=_WRITES,
        found=_READS,
        inert=frozenset({"parquet", "orc", "avro"}),
    ),
    Feature(
        name="other formats of manifests",
        keys=("manifest.format",),
        reason="is not supported: only avro is",
        refused=_ALL,
        inert=frozenset({"avro"}),
    ),
    Feature(
        name="Hive's bucket function",
        keys=("bucket-function.type",),
        reason="is read only here: use 'default' or 'mod'",
        refused=_WRITES,
        inert=frozenset({"default", "mod"}),
    ),
    Feature(
        name="row kinds from a column",
        keys=("rowkind.field",),
        reason="gives rows kinds, which an append table does not have: remove the option",
        refused=_WRITES,
        inert=frozenset({""}),
    ),
    Feature(
        name="incremental clustering",
        keys=("clustering.incremental",),
        reason="compaction sorts some of the files at a time, and nothing merges files on its own",
    ),
    Feature(
        name="external paths",
        keys=("data-file.external-paths",),
        reason="new files are in the table's directory, where every engine finds them; others are read if the user "
        "allows it",
        found=frozenset({Operation.READ, Operation.STREAM, Operation.CHANGE, Operation.REWRITE}),
    ),
    Feature(
        name="deletion vectors of 64 bits",
        keys=("deletion-vectors.bitmap64",),
        reason="read and written like those of 32 bits",
    ),
    Feature(
        name="clustering of writes",
        keys=(
            "clustering.columns",
            "clustering.strategy",
            "clustering.incremental.optimize-write",
            "sink.clustering.*",
        ),
        reason="the order of rows within an unordered table has no meaning",
    ),
    Feature(
        name="formats, codecs and statistics by level",
        keys=("file.format.per.level", "file.compression.per.level", "metadata.stats-mode.per.level"),
        reason="files may differ, and append tables are at level 0",
    ),
    Feature(
        name="order and size of manifests",
        keys=("manifest-sort.*", "manifest.merge-optimize.enabled", "manifest.delete-file-drop-stats"),
        reason="readers do not depend on it",
    ),
    Feature(
        name="file indexes",
        keys=("file-index.*",),
        reason="files without an index are read in full",
    ),
    Feature(
        name="settings of the libraries for files",
        keys=("parquet.*", "orc.*", "avro.*"),
        reason="readers do not depend on them",
    ),
    Feature(
        name="indexes over row ids",
        keys=("global-index.*", "vector-search.*", "btree-index.*", "bitmap-index.*", "lumina.*"),
        reason="they need row tracking, without which no file has an index",
    ),
    Feature(
        name="storage of tables with a primary key",
        keys=("changelog-*", "merge-engine", "sequence.*", "pk-*", "postpone.*", "dynamic-bucket.*", "record-level.*"),
        reason="append tables have none of it",
    ),
)

STORED_PREFIXES: Final = (
    "blob",
    "bucket",
    "chain-table",
    "clustering",
    "data-evolution",
    "data-file",
    "deletion-vector",
    "encrypt",
    "fields.",
    "file.",
    "format-table",
    "global-index",
    "index",
    "manifest",
    "map.",
    "metadata",
    "metastore",
    "partition",
    "pk-",
    "postpone",
    "primary-key",
    "row-",
    "rowkind",
    "sequence",
    "statistics",
    "storage",
    "type",
    "variant",
    "vector",
)
"""Beginnings of keys that change what is stored. Writes refuse such keys of newer versions, whatever they mean."""


def refusals_of(options: Mapping[str, str], operation: Operation) -> Iterator[str]:
    """Yield why an operation refuses a table with the options."""
    for key, value in options.items():
        for feature in FEATURES:
            if operation in feature.refused and feature.is_asked(key, value):
                yield f"'{key}' = '{value}' {feature.reason}"


def feature_of(key: str) -> Feature | None:
    """Return the feature that a key turns on and some operation refuses; None if there is none."""
    return next((each for each in FEATURES if each.refused and any(fnmatchcase(key, name) for name in each.keys)), None)
