"""Statements that make tables and views out of others, or explain queries, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.dialect.parse.query import Query
    from penstock.dialect.parse.statements import CreateTable, Insert, Path, Select


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateView:
    """``CREATE [TEMPORARY] VIEW``.

    Attributes:
        columns: names of the query's columns, in its order, with their comments; empty for its own.
    """

    name: Path
    query: Query
    columns: tuple[tuple[str, str | None], ...] = ()
    comment: str | None = None
    if_not_exists: bool = False
    is_temporary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropView:
    """``DROP [TEMPORARY] VIEW``."""

    name: Path
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowCreateView:
    """``SHOW CREATE VIEW``."""

    name: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTableAs:
    """``CREATE TABLE … AS SELECT``.

    Attributes:
        table: its columns come before the query's, but for those of a name that the query has, which say its type.
        order: the query's columns in the order that the table has them; empty for the query's own.
    """

    table: CreateTable
    query: Query
    order: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTableLike:
    """``CREATE TABLE … LIKE``.

    Attributes:
        table: what the statement says itself, which comes behind what the source has.
        rules: ``INCLUDING``, ``EXCLUDING`` or ``OVERWRITING`` for each feature, such as ``OPTIONS``.
    """

    table: CreateTable
    source: Path
    rules: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explain:
    """``EXPLAIN``."""

    action: Select | Insert
