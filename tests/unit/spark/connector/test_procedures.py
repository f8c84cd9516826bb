"""What is said of procedures that are not there, without Spark."""

from __future__ import annotations

import pytest

from penstock.spark.connector.procedures import ProcedureSource

SOURCE = ProcedureSource(
    parameters={"compact": (), "compact_manifest": (), "rollback": ()},
    descriptions={},
    run=lambda *_: None,  # type: ignore[arg-type, return-value] # is not called
    unsupported={"purge_files": "write TRUNCATE TABLE"},
)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("compct", "; did you mean sys.compact?"),
        ("ROLBACK", "; did you mean sys.rollback?"),
        ("something", "; there are sys.compact, sys.compact_manifest, sys.rollback"),
        ("purge_files", ": write TRUNCATE TABLE"),
    ],
)
def test_an_unknown_procedure_is_answered_with_the_nearest_name(name: str, hint: str) -> None:
    assert str(SOURCE.missing(f"sys.{name}", name)) == f"there is no procedure sys.{name}{hint}"
