"""Marks of tests that run in both ways of a read or of a stream: planned by the driver, or by a process of Spark's."""

from __future__ import annotations

from typing import Final

import pytest

READ_BOTH_WAYS: Final = pytest.mark.parametrize("read_way", ["catalog", "format"], indirect=True)
"""Reads through the scan of the catalog, and through ``format("penstock")``."""
READ_FORMAT_IF_SLOW: Final = pytest.mark.parametrize(
    "read_way", ["catalog", pytest.param("format", marks=pytest.mark.slow)], indirect=True
)
STREAM_BOTH_WAYS: Final = pytest.mark.parametrize("stream_way", ["driver", "python"], indirect=True)
"""Streams as in a session with a JVM of its own, and as in Spark Connect or another version of Spark."""
STREAM_PYTHON_IF_SLOW: Final = pytest.mark.parametrize(
    "stream_way", ["driver", pytest.param("python", marks=pytest.mark.slow)], indirect=True
)
