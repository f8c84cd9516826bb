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
from penstock.options.layout import FormatOptions, LayoutOptions
from penstock.options.values import parse_bool, parse_bytes, parse_duration_ms
from penstock.options.write import CommitOptions, ManifestOptions, WriteOptions

__all__ = [
    "ClusteringStrategy",
    "CommitOptions",
    "ConsumerMode",
    "ExpireMode",
    "FormatOptions",
    "IncrementalScanMode",
    "LayoutOptions",
    "ManifestOptions",
    "PartitionExpireStrategy",
    "RangeStrategy",
    "ScanMode",
    "SinkStrategy",
    "TagCreation",
    "TagFormatter",
    "TagPeriod",
    "WatermarkEmitStrategy",
    "WriteOptions",
    "parse_bool",
    "parse_bytes",
    "parse_duration_ms",
]
