"""What time the values of a partition stand for.

Source:
    Paimon ``api:CoreOptions.java``; docs/spec/commit.md section 7.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from penstock.options.group import Key, OptionGroup
from penstock.options.values import parse_text


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTimeOptions(OptionGroup):
    """How the time of a partition is told from its values.

    Attributes:
        timestamp_pattern: of partition columns, ``$dt $hour:00:00``.
        timestamp_formatter: Java's pattern of that text.
    """

    timestamp_pattern: Annotated[
        str | None, Key("partition.timestamp-pattern", parse_text, "time of a partition from its values", honoured=True)
    ] = None
    timestamp_formatter: Annotated[
        str | None, Key("partition.timestamp-formatter", parse_text, "how that time is written", honoured=True)
    ] = None
