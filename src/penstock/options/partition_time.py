"""Options for deriving a time from partition values.

Source:
    Paimon ``api:CoreOptions.java``; docs/spec/commit.md section 7.3.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.options.group import OptionGroup, option
from penstock.options.values import parse_text


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTimeOptions(OptionGroup):
    """How the time of a partition is derived from its values.

    Attributes:
        timestamp_pattern: text with partition columns, such as ``$dt $hour:00:00``.
        timestamp_formatter: Java date pattern of that text.
    """

    timestamp_pattern: str | None = option(
        "partition.timestamp-pattern", parse_text, None, "pattern that gives the time of a partition from its values"
    )
    timestamp_formatter: str | None = option("partition.timestamp-formatter", parse_text, None, "format of that time")
