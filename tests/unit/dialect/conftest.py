"""A warehouse in memory, and SQL run in it without Spark."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

import penstock

if TYPE_CHECKING:
    from penstock import Catalog


@dataclass(frozen=True, slots=True, kw_only=True)
class Sql:
    """Runs scripts, one session for all."""

    catalog: Catalog

    def __call__(self, text: str) -> Any:
        return penstock.sql(None, self.catalog, text)

    def rows(self, text: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self(text).to_pylist()
        return found


@pytest.fixture
def sql() -> Sql:
    return Sql(catalog=penstock.Catalog(f"memory://{uuid.uuid4()}/warehouse"))


@pytest.fixture
def shop(sql: Sql) -> Sql:
    """A partitioned table ``orders`` with two rows in the current database ``shop``."""
    sql(
        """
        CREATE DATABASE shop;
        USE shop;
        CREATE TABLE orders (id BIGINT NOT NULL, price DECIMAL(10, 2), at TIMESTAMP(3), dt STRING)
          PARTITIONED BY (dt) WITH ('bucket' = '-1');
        INSERT INTO orders VALUES
          (1, 2.5, TIMESTAMP '2026-01-01 10:00:00.123', 'a'), (2, NULL, NULL, 'b');
        """
    )
    return sql
