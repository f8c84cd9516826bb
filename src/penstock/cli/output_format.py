"""How commands print."""

from enum import StrEnum


class OutputFormat(StrEnum):
    """How a command prints its result."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
