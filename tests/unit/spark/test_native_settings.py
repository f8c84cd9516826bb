"""Settings of the sessions that hand rows to Python workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from penstock.spark import native_settings
from penstock.spark.native_settings import batch_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"


@dataclass(frozen=True)
class Session:
    """What is asked of a session of the JVM, and its state, and its configuration."""

    settings: Mapping[str, str]

    def sessionState(self) -> Session:  # noqa: N802 - Spark's name
        return self

    def conf(self) -> Session:
        return self

    def contains(self, key: str) -> bool:
        return key in self.settings

    def arrowMaxRecordsPerBatch(self) -> int:  # noqa: N802 - Spark's name
        return int(self.settings.get(ROWS, 10_000))


@pytest.mark.parametrize(
    ("given", "rows"), [({}, "1000"), ({ROWS: "7"}, "7"), ({ROWS: "0"}, "1000"), ({ROWS: "20000"}, "1000")]
)
def test_batches_are_limited_by_rows_alone(given: dict[str, str], rows: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_settings, "MEASURES_BATCHES", True)
    assert batch_settings(Session(given)) == {BYTES: "2147483647", ROWS: rows}


def test_a_limit_of_the_user_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_settings, "MEASURES_BATCHES", True)
    assert batch_settings(Session({BYTES: "1m"})) == {}


def test_nothing_is_set_where_spark_has_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_settings, "MEASURES_BATCHES", False)
    assert batch_settings(Session({})) == {}
