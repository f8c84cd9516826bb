"""Marks of tests that run in both ways of a read or of a stream: planned by the driver, or by a process of Spark's."""

from __future__ import annotations

from typing import Final

import pytest

READ_BOTH_WAYS: Final = pytest.mark.parametrize("read_way", ["catalog", "format"], indirect=True)
"""Reads through the scan of the catalog, and through ``format("penstock")``."""
READ_FORMAT_IF_SLOW: Final = pytest.mark.parametrize(
    "read_way", ["catalog", pytest.param("format", marks=pytest.mark.slow)], indirect=True
)
STREAM_BOTH_WAYS: Final = pytest.mark.parametrize("stream_way", ["driver", "format"], indirect=True)
"""Streams of ``read_stream``, and of ``format("penstock")``, as a client of Spark Connect has them."""
STREAM_FORMAT_IF_SLOW: Final = pytest.mark.parametrize(
    "stream_way", ["driver", pytest.param("format", marks=pytest.mark.slow)], indirect=True
)
