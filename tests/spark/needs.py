"""Tests that need what not all versions of Spark have are skipped on the others, with what the table of docs says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.spark.versions.facts import text_of

if TYPE_CHECKING:
    from pyspark.errors.exceptions.base import PySparkException

    from penstock.spark.versions.facts import Feature


def needs(*features: Feature) -> pytest.MarkDecorator:
    """Return a mark of tests that need all of these features of Spark."""
    return pytest.mark.skipif(not all(each.is_here for each in features), reason=_reason(features))


def skip_without(*features: Feature) -> None:
    """Skip the test that runs unless all of these features are here."""
    if not all(each.is_here for each in features):
        pytest.skip(_reason(features))


def condition_of(error: PySparkException) -> str | None:
    """Return the condition of an error, which Spark 3.5 calls its class."""
    return error.getCondition() if hasattr(error, "getCondition") else error.getErrorClass()


def _reason(features: tuple[Feature, ...]) -> str:
    missing = [each for each in features if not each.is_here]
    return "; ".join(f"needs Spark {text_of(each.since)}: {each.what}" for each in missing)
