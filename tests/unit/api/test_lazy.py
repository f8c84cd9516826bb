"""What the driver of a job does not import before it is needed."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from penstock import Catalog
from penstock.api.lazy import load_module
from penstock.cli.exit_codes import ExitCode
from penstock.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from pathlib import Path

# Its rows come from a buffer: pyarrow itself imports pandas when it makes an array of Python's values.
WITHOUT_PANDAS = """
import struct, sys
import pyarrow as pa
from penstock import Catalog
data = b"".join(struct.pack("<q", number) for number in range(100))
rows = pa.table({"id": pa.Array.from_buffers(pa.int64(), 100, [None, pa.py_buffer(data)])})
catalog = Catalog(sys.argv[1], {})
catalog.create_database("d")
options = {"bucket": "3", "bucket-key": "id", "file.format": sys.argv[2]}
table = catalog.create_table("d.t", "id BIGINT", options=options)
table.append(rows)
table.append(rows)
assert table.to_arrow().num_rows == 200
assert sum(batch.num_rows for batch in table.follow(options={"scan.mode": "earliest"}, once=True)) == 200
print("pandas" in sys.modules)
"""


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_rows_are_written_and_read_without_importing_pandas(file_format: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_PANDAS, str(tmp_path), file_format]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"


COMMANDS = """
import sys
from penstock.cli.main import app
for line in sys.argv[2:]:
    app(["--warehouse", sys.argv[1], *line.split()], standalone_mode=False)
print("pandas" in sys.modules)
"""


def test_commands_that_only_print_do_not_import_pandas(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path), {})
    catalog.create_database("d")
    table = catalog.create_table("d.t", "id BIGINT, s STRING, dt STRING", partition_by=["dt"])
    table.append([{"id": 1, "s": "a", "dt": "2026-01-01"}, {"id": 2, "s": None, "dt": None}])
    lines = ["list", "list d", "show d.t", "snapshots d.t", "read d.t", "files d.t --format json", "files d.t"]
    lines = [line if "--format" in line else f"{line} --format csv" for line in lines]
    command = [sys.executable, "-c", COMMANDS, str(tmp_path), *lines, "read d.t --filter id=2"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.endswith("\nFalse\n")


@pytest.mark.parametrize("missing", ["pyspark", "py4j"])
def test_what_needs_spark_says_so_where_it_is_not_installed(missing: str) -> None:
    script = f"""
import sys
sys.modules[{missing!r}] = None
import penstock
catalog = penstock.Catalog("memory://no-spark")
catalog.create_database("d")
try:
    catalog.create_table("d.t", "id INT").compact("local[2]")
except penstock.UnsupportedFeatureError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert "pip install 'penstock[spark]'" in done.stdout


@pytest.mark.parametrize(
    ("missing", "call", "message"),
    [
        (
            "sqlglot",
            "penstock.sql(None, catalog, 'SHOW DATABASES')",
            "this needs a parser of SQL (sqlglot is missing): pip install 'penstock[sql]'",
        ),
        (
            "obstore",
            "penstock.Catalog('s3://bucket/warehouse').list_databases()",
            "location 's3://bucket/warehouse': object stores need the package obstore: pip install 'penstock[cloud]'",
        ),
    ],
)
def test_what_needs_an_extra_names_it_where_it_is_not_installed(missing: str, call: str, message: str) -> None:
    script = f"""
import sys
sys.modules[{missing!r}] = None
from penstock import *
import penstock
catalog = penstock.Catalog("memory://bare")
catalog.create_database("d")
catalog.create_table("d.t", "id INT").append([{{"id": 1}}])
try:
    {call}
except penstock.UnsupportedFeatureError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout == f"{message}\n"


def test_a_command_that_needs_an_extra_names_it_in_one_line() -> None:
    script = "import sys; sys.modules['sqlglot'] = None; from penstock.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script, "-w", "memory://bare", "sql", "-e", "SHOW DATABASES"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == ExitCode.UNSUPPORTED
    message = "this needs a parser of SQL (sqlglot is missing): pip install 'penstock[sql]'"
    assert (done.stdout, done.stderr) == ("", f"error: {message}\n")


def test_a_prompt_without_its_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prompt_toolkit", None)
    for name in [name for name in sys.modules if name.startswith("penstock.cli.prompt.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(UnsupportedFeatureError, match=r"this needs a prompt .*: pip install 'penstock\[sql\]'"):
        load_module("penstock.cli.prompt.loop")
