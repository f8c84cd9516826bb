"""The class that is compiled in the JVM, when several queries start at once."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from penstock.spark.connector import gateway
from penstock.spark.connector.gateway import Bridge

if TYPE_CHECKING:
    import pytest


def test_queries_that_start_at_once_share_one_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[object] = []

    def compile_slowly(*_: object) -> object:
        time.sleep(0.05)
        compiled.append(object())
        return compiled[-1]

    monkeypatch.setattr(gateway, "compile_driver", compile_slowly)
    monkeypatch.setattr(Bridge, "private", lambda *_: lambda: None)
    monkeypatch.setattr(Bridge, "_loader", lambda _: None)
    monkeypatch.setattr(Bridge, "_java_gateway", lambda _: None)
    bridge = Bridge(gateway=None)
    with ThreadPoolExecutor(max_workers=4) as pool:
        found = list(pool.map(lambda _: bridge.driver, range(4)))
    assert len(compiled) == 1
    assert set(found) == set(compiled)
