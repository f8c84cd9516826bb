"""Option values that turn each feature on, and the operations of the table of features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.errors import UnsupportedFeatureError
from penstock.options.status.features import FEATURES, Operation

if TYPE_CHECKING:
    from collections.abc import Callable

    import penstock

COLUMNS: Final = "a INT, m MAP<STRING, INT>"
VALUES: Final = {
    "metadata.iceberg.storage": "table-location",
    "metastore.tag-to-partition": "dt",
    "commit.callbacks": "org.example.Callback",
    "commit.custom-listeners": "org.example.Listener",
    "tag.callbacks": "org.example.Callback",
    "orc.encrypt*": "pii:a",
    "orc.mask*": "redact,a",
    "parquet.encrypt*": "k",
    "parquet.crypto.*": "org.example.Factory",
    "blob-field": "a",
    "blob-descriptor-field": "a",
    "blob-view-field": "a",
    "vector.file.format": "lance",
    "fields.*.map.storage-layout": "shared-shredding",
    "variant.shreddingSchema": '{"type":"ROW","fields":[]}',
    "type": "object-table",
    "file.format": "row",
    "manifest.format": "orc",
    "bucket-function.type": "hive",
    "rowkind.field": "a",
    "data-file.external-paths": "file:///elsewhere",
    "clustering.columns": "a",
    "clustering.strategy": "order",
    "file.format.per.level": "5:orc",
    "file.compression.per.level": "5:lz4",
    "metadata.stats-mode.per.level": "5:none",
    "merge-engine": "deduplicate",
}
"""By the key of a feature; the others are 'true'."""

_PARTS: Final = {
    "fields.*.map.storage-layout": "m",
    "manifest-sort.*": "enabled",
    "global-index.*": "enabled",
    "sequence.*": "field.sort-order",
    "pk-*": "btree.index.columns",
    "postpone.*": "merge-on-read",
}
"""What a key has in the place of its free part; another key has 'x'."""

_WITH: Final = {"clustering.incremental": {"clustering.columns": "a"}}
"""Further options without which a feature means nothing."""

CASES: Final = [(feature, key) for feature in FEATURES for key in feature.keys]


def option_of(key: str) -> dict[str, str]:
    """Return an option that turns on the feature of a key, with those that it needs."""
    return {key.replace("*", _PARTS.get(key, "x")): VALUES.get(key, "true"), **_WITH.get(key, {})}


def _append(table: penstock.Table) -> None:
    table.append([{"a": 4, "m": [("k", 4)]}])


OPERATIONS: Final[dict[Operation, Callable[[penstock.Table], object]]] = {
    Operation.READ: lambda table: table.to_arrow(),
    Operation.STREAM: lambda table: list(table.follow(once=True)),
    Operation.CHANGE: lambda table: table.delete("a = 1"),
    Operation.APPEND: _append,
    Operation.REWRITE: lambda table: table.compact(),
    Operation.TAG: lambda table: table.create_tag("a"),
}


def outcomes(load: Callable[[], penstock.Table]) -> dict[Operation, str]:
    """Do every operation; return the text of each refusal, '' where there is none."""
    texts = {}
    for operation, act in OPERATIONS.items():
        try:
            act(load())
        except UnsupportedFeatureError as error:
            texts[operation] = str(error)
        else:
            texts[operation] = ""
    return texts
