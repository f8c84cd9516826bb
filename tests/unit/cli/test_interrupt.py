"""Ctrl-C while a statement runs on Spark."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from penstock.cli.prompt import loop
from penstock.cli.prompt.loop import Interrupts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def test_jobs_are_cancelled_until_the_statement_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = threading.Semaphore(0)

    @contextmanager
    def cancellable_jobs(_spark: object) -> Iterator[Callable[[], None]]:
        yield calls.release

    monkeypatch.setattr(loop, "lazy_spark", SimpleNamespace(cancellable_jobs=cancellable_jobs))
    monkeypatch.setattr(loop, "_CANCEL_AGAIN_SECONDS", 0.01)
    spark: Any = object()
    with Interrupts(spark) as statement:
        os.kill(os.getpid(), signal.SIGINT)
        # The job that the first call missed is cancelled by one of the next.
        assert all(calls.acquire(timeout=10) for _ in range(3))
        assert statement.event.is_set()
    while calls.acquire(timeout=0.2):
        pass
    assert not calls.acquire(timeout=0.2)


def test_an_interrupt_before_spark_knows_the_statement_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled = threading.Event()

    @contextmanager
    def cancellable_jobs(_spark: object) -> Iterator[Callable[[], None]]:
        os.kill(os.getpid(), signal.SIGINT)
        yield cancelled.set

    monkeypatch.setattr(loop, "lazy_spark", SimpleNamespace(cancellable_jobs=cancellable_jobs))
    before = signal.getsignal(signal.SIGINT)
    spark: Any = object()
    with Interrupts(spark) as statement:
        assert statement.event.is_set()
    assert not cancelled.is_set()
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_interrupt_before_the_statement_gives_the_handler_back(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def cancellable_jobs(_spark: object) -> Iterator[Callable[[], None]]:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
        yield lambda: None

    monkeypatch.setattr(loop, "lazy_spark", SimpleNamespace(cancellable_jobs=cancellable_jobs))
    before = signal.getsignal(signal.SIGINT)
    spark: Any = object()
    with pytest.raises(KeyboardInterrupt), Interrupts(spark):
        pass
    assert signal.getsignal(signal.SIGINT) is before
