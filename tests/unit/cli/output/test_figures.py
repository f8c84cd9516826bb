"""Figures of metadata for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.cli.output.figures import figure_text, is_figure

if TYPE_CHECKING:
    from penstock.cli.output.plain import Plain


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("rows", 39_424_000, "39,424,000"),
        ("bytes", 39_424_000, "37.6 MiB"),
        ("file_size_in_bytes", 1024, "1.0 KiB"),
        ("bytes_in", 3, "3 B"),
        ("oldest_unread_ms", 1_407_042, "23 min 27 s"),
        ("age_seconds", 90_000, "1 d 1 h"),
        ("watermark", 1_767_225_600_000, "2026-01-01 00:00:00Z"),
        ("watermark", 2**63 - 1, "end of time"),
        ("snapshot_id", 4999, "4999"),
        ("last_compaction_snapshot_id", 12345, "12345"),
        ("max_sequence_number", 1234567, "1234567"),
        ("bucket", 1024, "1024"),
        ("removed_snapshots", [5000, *range(4998, 4000, -1)], "4001 to 4998, 5000"),
        ("removed_tags", [], "none"),
        ("tags", ["a", "b"], "a, b"),
        ("commit_time", "2026-01-01T10:00:00.123Z", "2026-01-01 10:00:00Z"),
        ("comment", "2026-01-01T10:00:00 is no instant", "2026-01-01T10:00:00 is no instant"),
        ("partition_key", True, "yes"),
        ("comment", None, ""),
        ("kept_by", [{"name": "a"}], '[{"name": "a"}]'),
    ],
)
def test_the_name_of_a_value_says_how_it_is_written(name: str, value: Plain, text: str) -> None:
    assert figure_text(name, value) == text


def test_numbers_and_times_are_figures() -> None:
    assert [is_figure(value) for value in (1, 1.5, "2026-01-01T10:00:00Z", True, "x", None)] == [
        *(True, True, True),
        *(False, False, False),
    ]
