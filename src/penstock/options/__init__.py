"""All options: keys, parsers and defaults, in typed groups.

Option strings are parsed only here: ``ref.parsed(WriteOptions)`` returns the typed fields of a group, parsed once per
schema and handle.
"""

from penstock.options.check import (
    Side,
    check_batch,
    check_catalog_keys,
    check_keys,
    check_reads,
    check_side,
    check_values,
)
from penstock.options.choices import (
    ClusteringMode,
    ClusteringStrategy,
    ConsumerMode,
    ExpireMode,
    IncrementalScanMode,
    MarkDoneAction,
    MarkDoneMode,
    PartitionExpireStrategy,
    RangeStrategy,
    ScanMode,
    SinkStrategy,
    TagCreation,
    TagFormatter,
    TagPeriod,
    WatermarkEmitStrategy,
)
from penstock.options.compact import ClusteringOptions, CompactOptions, SortOptions
from penstock.options.group import (
    OptionGroup,
    format_bytes,
    format_duration_ms,
    parse_bool,
    parse_bytes,
    parse_duration_ms,
)
from penstock.options.layout import BucketOptions, FileIndexOptions, FormatOptions, LayoutOptions, StatsOptions
from penstock.options.metadata import MetadataOptions, metadata_limits
from penstock.options.retain import MarkDoneOptions, PartitionExpireOptions, RetentionOptions, TagOptions
from penstock.options.scan import ReadOptions
from penstock.options.status.keys import (
    KNOWN_KEYS,
    OptionRow,
    Status,
    describe_options,
    is_known,
    nearest_key,
    status_of,
)
from penstock.options.stream import ConsumerOptions, StreamOptions, WatermarkOptions
from penstock.options.write import CommitOptions, DeletionVectorOptions, ManifestOptions, WriteOptions

__all__ = [
    "KNOWN_KEYS",
    "BucketOptions",
    "ClusteringMode",
    "ClusteringOptions",
    "ClusteringStrategy",
    "CommitOptions",
    "CompactOptions",
    "ConsumerMode",
    "ConsumerOptions",
    "DeletionVectorOptions",
    "ExpireMode",
    "FileIndexOptions",
    "FormatOptions",
    "IncrementalScanMode",
    "LayoutOptions",
    "ManifestOptions",
    "MarkDoneAction",
    "MarkDoneMode",
    "MarkDoneOptions",
    "MetadataOptions",
    "OptionGroup",
    "OptionRow",
    "PartitionExpireOptions",
    "PartitionExpireStrategy",
    "RangeStrategy",
    "ReadOptions",
    "RetentionOptions",
    "ScanMode",
    "Side",
    "SinkStrategy",
    "SortOptions",
    "StatsOptions",
    "Status",
    "StreamOptions",
    "TagCreation",
    "TagFormatter",
    "TagOptions",
    "TagPeriod",
    "WatermarkEmitStrategy",
    "WatermarkOptions",
    "WriteOptions",
    "check_batch",
    "check_catalog_keys",
    "check_keys",
    "check_reads",
    "check_side",
    "check_values",
    "describe_options",
    "format_bytes",
    "format_duration_ms",
    "is_known",
    "metadata_limits",
    "nearest_key",
    "parse_bool",
    "parse_bytes",
    "parse_duration_ms",
    "status_of",
]
