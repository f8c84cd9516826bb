"""Times of time travel clauses with intervals."""

from __future__ import annotations

import pytest

from penstock.dialect.parse.script import StatementText
from penstock.dialect.parse.tables import plain_query
from penstock.errors import InvalidSqlError


def time_of(clause: str) -> str:
    text = f"SELECT * FROM t FOR SYSTEM_TIME AS OF {clause} WHERE a > 1"  # noqa: S608 - of this file
    (use,) = plain_query(StatementText(text=text, line=1, column=1)).tables.values()
    return dict(use.options)["scan.timestamp"]


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("TIMESTAMP '2026-01-31 10:00:00'", "2026-01-31 10:00:00"),
        ("TIMESTAMP '2026-01-31 10:00:00' + INTERVAL '1' DAY", "2026-02-01 10:00:00"),
        (
            "TIMESTAMP '2026-01-31 10:00:00' - INTERVAL '90' MINUTES + INTERVAL '1.5' SECOND",
            "2026-01-31 08:30:01.500000",
        ),
        ("TIMESTAMP '2026-01-31 10:00:00' + INTERVAL 1 MONTH", "2026-02-28 10:00:00"),
        ("TIMESTAMP '2026-01-31 10:00:00' - INTERVAL '2' YEAR", "2024-01-31 10:00:00"),
        ("DATE '2026-03-01' - INTERVAL '1' DAY", "2026-02-28 00:00:00"),
        ("'2026-01-31 10:00:00.123' + INTERVAL '1' WEEK", "2026-02-07 10:00:00.123000"),
    ],
)
def test_intervals_move_the_time(clause: str, expected: str) -> None:
    assert time_of(clause) == expected


@pytest.mark.parametrize(
    ("clause", "says"),
    [
        ("TIMESTAMP '2026-01-31 10:00:00' + 5", "expected an interval such as INTERVAL '1' DAY"),
        ("TIMESTAMP '2026-01-31 10:00:00' + INTERVAL '1' FORTNIGHT", "in one of SECOND, MINUTE"),
        ("TIMESTAMP 'noon' - INTERVAL '1' DAY", "expected a time such as"),
        ("CURRENT_TIMESTAMP - INTERVAL '1' DAY", "expected a literal"),
        ("TIMESTAMP '2026-01-31 10:00:00' + INTERVAL '99999999999' DAY", "column 49: this time is before the year 1"),
        ("TIMESTAMP '2026-01-31 10:00:00' + INTERVAL '9000' YEAR", "after 9999"),
        ("TIMESTAMP '2026-01-31 10:00:00' - INTERVAL '3000' YEAR", "before the year 1"),
    ],
)
def test_what_is_no_time_is_refused_at_its_place(clause: str, says: str) -> None:
    with pytest.raises(InvalidSqlError, match=says):
        time_of(clause)
