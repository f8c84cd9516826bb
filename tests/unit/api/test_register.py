"""The format made known to a session by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import penstock
from penstock.spark import ship
from penstock.spark.data_source.source import PenstockDataSource

if TYPE_CHECKING:
    import pytest


def test_register_checks_the_python_of_the_workers_first(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[object] = []
    monkeypatch.setattr(ship, "ensure_python_worker", lambda _: done.append("python"))
    spark: Any = SimpleNamespace(dataSource=SimpleNamespace(register=done.append))
    penstock.register(spark)
    assert done == ["python", PenstockDataSource]
