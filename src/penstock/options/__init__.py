"""Every option: its key, parser and default, in typed groups.

Strings end here: ``WriteOptions.parse(stored, dynamic)`` once, at the door; inside there are typed fields.
"""

from penstock.options.choices import (
    ClusteringStrategy,
    ConsumerMode,
    ExpireMode,
    IncrementalScanMode,
    PartitionExpireStrategy,
    RangeStrategy,
    ScanMode,
    SinkStrategy,
    TagCreation,
    TagFormatter,
    TagPeriod,
    WatermarkEmitStrategy,
)
from penstock.options.compact import CompactOptions, SortOptions
from penstock.options.layout import BucketOptions, FormatOptions, LayoutOptions
from penstock.options.retain import PartitionExpireOptions, RetentionOptions, TagOptions
from penstock.options.scan import ReadOptions
from penstock.options.stream import ConsumerOptions, StreamOptions, WatermarkOptions
from penstock.options.values import parse_bool, parse_bytes, parse_duration_ms
from penstock.options.write import CommitOptions, ManifestOptions, WriteOptions

__all__ = [
    "BucketOptions",
    "CommitOptions",
    "CompactOptions",
    "ConsumerOptions",
    "FormatOptions",
    "LayoutOptions",
    "ManifestOptions",
    "PartitionExpireOptions",
    "ReadOptions",
    "RetentionOptions",
    "SortOptions",
    "StreamOptions",
    "TagOptions",
    "WatermarkOptions",
    "WriteOptions",
    "parse_bool",
    "parse_bytes",
    "parse_duration_ms",
]
