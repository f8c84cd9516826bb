"""Calls to the storage, and programs that make them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Hashable

Program: TypeAlias = "Generator[Op | Call | Note, Any, Any]"


class Verb(StrEnum):
    """Calls to the storage."""

    READ = "read"
    EXISTS = "exists"
    LIST = "list"
    STATUSES = "list with ages"
    WRITE = "write"
    PUT = "put_if_absent"
    REPLACE = "overwrite where absent or not"  # put_if_absent without its guard
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Op:
    """One call to the storage.

    Attributes:
        path: of a LIST, what the paths begin with.
    """

    verb: Verb
    path: str
    value: Hashable = None

    def __str__(self) -> str:
        return f"{self.verb.value} {self.path}"


@dataclass(frozen=True, slots=True)
class Call:
    """Run another program; its result is the answer."""

    program: Callable[..., Program]
    args: tuple[Hashable, ...] = ()


@dataclass(frozen=True, slots=True)
class Become:
    """Returned by a program that goes on as another one, without what it knew."""

    program: Callable[..., Program]
    args: tuple[Hashable, ...] = ()


@dataclass(frozen=True, slots=True)
class Note:
    """What an actor says to the outside, such as that rows are committed; no step."""

    value: Hashable


LOST: Final = "the storage did not answer"
"""Answer of a put whose outcome the storage does not say."""


def read(path: str) -> Op:
    """Answers the value; None where there is none."""
    return Op(Verb.READ, path)


def exists(path: str) -> Op:
    """Answers whether there is a value."""
    return Op(Verb.EXISTS, path)


def list_paths(prefix: str) -> Op:
    """Answers the paths that begin so, sorted."""
    return Op(Verb.LIST, prefix)


def list_statuses(prefix: str) -> Op:
    """Answers the paths that begin so, sorted, each with whether it is old."""
    return Op(Verb.STATUSES, prefix)


def write(path: str, value: Hashable) -> Op:
    """Creates or replaces."""
    return Op(Verb.WRITE, path, value)


def put_if_absent(path: str, value: Hashable) -> Op:
    """Creates; answers whether it did, or ``LOST``."""
    return Op(Verb.PUT, path, value)


def delete(path: str) -> Op:
    """Deletes; answers whether there was something."""
    return Op(Verb.DELETE, path)
