"""What the log of a driver shows of a query that has failed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.quick_spark import quick_environment
from tests.spark.needs import skip_without

from penstock.spark.versions.facts import PYTHON_SOURCES

SCRIPT = Path(__file__).with_name("failures_script.py")
# Spark logs the exceptions of its own that it puts around an error of foreachBatch.
TRACES = {"written": 60, "by_name": 0, "source": 0}
SENTENCES = {
    "written": "table d.written: it was dropped or moved while a query wrote to it",
    "by_name": "table d.by_name: it was dropped or moved while a query wrote to it",
    "source": "holds no table: the stream cannot continue",
}


@pytest.mark.cluster
def test_a_query_ends_with_one_sentence_and_no_traces(tmp_path: Path) -> None:
    skip_without(PYTHON_SOURCES)
    environment = os.environ | quick_environment()
    run = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path)], capture_output=True, text=True, check=False, env=environment
    )
    parts = [[line for line in part.splitlines() if line] for part in run.stderr.split("\n== ")[1:]]
    found = {part[0]: part[1:] for part in parts}
    assert found.keys() == {*SENTENCES, "end"}, run.stderr
    for name, sentence in SENTENCES.items():
        lines = found[name]
        assert lines[-1].startswith("penstock: query "), lines
        assert sentence in lines[-1], lines
        assert sum(line.startswith("penstock: query ") for line in lines) == 1, lines
        assert sum(line.lstrip().startswith("at ") for line in lines) <= TRACES[name], lines
        assert not any("Traceback" in line for line in lines), lines
