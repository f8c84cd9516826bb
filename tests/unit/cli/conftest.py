"""A warehouse in memory, and the command run inside this process."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from penstock import Catalog
from penstock.cli.main import app

if TYPE_CHECKING:
    from click.testing import Result

ORDERS = "order_id BIGINT NOT NULL, product STRING, price DECIMAL(10, 2), dt STRING"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Runs ``penstock`` in a warehouse."""

    warehouse: str

    @property
    def catalog(self) -> Catalog:
        return Catalog(self.warehouse)

    def __call__(self, *args: str, code: int = 0, input: str | bytes | None = None) -> Result:
        environment = {"PENSTOCK_WAREHOUSE": self.warehouse, "COLUMNS": "200"}
        result = CliRunner().invoke(app, list(args), input=input, env=environment)
        assert result.exit_code == code, f"{args}: {result.exit_code}\n{result.output}\n{result.exception!r}"
        return result

    def json(self, *args: str) -> Any:
        return json.loads(self(*args, "--format", "json").stdout)

    def rows(self, table: str, *args: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.json("read", table, *args)
        return found


@pytest.fixture
def penstock() -> Command:
    """The command, with the database ``shop`` made."""
    command = Command(warehouse=f"memory://{uuid.uuid4()}/warehouse")
    command("create", "shop")
    return command


@pytest.fixture
def orders(penstock: Command) -> Command:
    """The command, with ``shop.orders`` made, partitioned by ``dt``."""
    penstock("create", "shop.orders", ORDERS, "--partition-by", "dt")
    return penstock
