"""Tests that need what not all versions of Spark have are skipped on the others, with what the table of docs says."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from penstock.spark.versions.facts import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.spark.versions.facts import Feature


def needs(*features: Feature) -> pytest.MarkDecorator:
    """Return a mark of tests that need all of these features of Spark."""
    return pytest.mark.skipif(not all(each.is_here for each in features), reason=_reason(features))


def skip_without(*features: Feature) -> None:
    """Skip the test that runs unless all of these features are here."""
    if not all(each.is_here for each in features):
        pytest.skip(_reason(features))


@contextmanager
def skip_if_refused(feature: Feature) -> Iterator[None]:
    """Skip the test if what runs inside is refused in the words of the table, on a version without the feature."""
    try:
        yield
    except PySparkException as error:
        if feature.is_here or feature.refused() not in str(error):
            raise
        skip_without(feature)


def condition_of(error: PySparkException) -> str | None:
    """Return the condition of an error, which Spark 3.5 calls its class."""
    return error.getCondition() if hasattr(error, "getCondition") else error.getErrorClass()


def _reason(features: tuple[Feature, ...]) -> str:
    missing = [each for each in features if not each.is_here]
    return "; ".join(f"needs Spark {text_of(each.since)}: {each.what}" for each in missing)
