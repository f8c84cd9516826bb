"""How commands print."""

from enum import StrEnum


class OutputFormat(StrEnum):
    """How a command prints what it found."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
