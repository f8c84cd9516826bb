"""SQL in a warehouse in memory, for the tests of procedures."""

from tests.unit.dialect.conftest import shop, sql

__all__ = ["shop", "sql"]
