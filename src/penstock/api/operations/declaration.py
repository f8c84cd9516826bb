"""The declaration of an operation: a dataclass of its arguments, and what its users derive from it.

The fields have the arguments' names, types and defaults; the docstring describes them. From these derive the method of
a table or a catalog (``method``), the procedure of ``CALL`` (``penstock.api.operations.procedure``) and the options of
the command (``penstock.cli.command``).
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from abc import ABC, abstractmethod
from dataclasses import MISSING, dataclass
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Concatenate,
    Final,
    Generic,
    ParamSpec,
    TypeVar,
    cast,
    get_args,
    get_origin,
)

from penstock.api.arguments import NONE, TIME, ArgumentType, accepts, type_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.api.handle import TableMethods

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Target_contra = TypeVar("_Target_contra", contravariant=True)
_Result_co = TypeVar("_Result_co", covariant=True)

_TIMES: Final = "\n\nTimes are in ms since 1970-01-01 UTC, or datetimes, local without a zone."


class Operation(ABC, Generic[_Target_contra, _Result_co]):
    """An operation and its arguments; subclasses are frozen dataclasses."""

    __slots__ = ()

    @abstractmethod
    def run(self, target: _Target_contra, /) -> _Result_co:
        """Run the operation on a table or a warehouse."""


@dataclass(frozen=True, slots=True)
class Named:
    """Other names of an argument, in ``Annotated``.

    Attributes:
        paimon: its name in Paimon's procedures for Flink.
        aliases: its names in those for Spark.
        sql: how procedures read its text, if it is not by the type of the argument.
        option: its option of the command; empty if the command has none.
    """

    paimon: str | None = None
    aliases: tuple[str, ...] = ()
    sql: ArgumentType | None = None
    option: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One argument of an operation.

    Attributes:
        name: of the field.
        type: None for an argument that only Python has, such as a Spark session.
        is_optional: whether it may also be None.
    """

    name: str
    type: ArgumentType | None
    is_optional: bool
    is_required: bool
    named: Named

    @property
    def paimon(self) -> str:
        """Its name in Paimon's procedures."""
        return self.named.paimon or self.name


def parameters_of(operation: type) -> Mapping[str, Parameter]:
    """Return the arguments of an operation by the names of its fields.

    Raises:
        TypeError: the annotation of a field is not that of an argument; a text as annotation is one of Python only.
    """
    found = {}
    for field in dataclasses.fields(operation):
        annotation, named = field.type, Named()
        if get_origin(annotation) is Annotated:
            annotation, named = get_args(annotation)
        kind, is_optional = (None, False) if isinstance(annotation, str) else type_of(annotation)
        is_required = field.default is MISSING
        found[field.name] = Parameter(
            name=field.name, type=kind, is_optional=is_optional, is_required=is_required, named=named
        )
    return found


def section_of(operation: type, name: str) -> dict[str, str]:
    """Return the items of a section of a docstring by the names before their colons; empty if there is none."""
    match = re.search(rf"^{name}:\n((?:    .*\n|\n)*)", f"{inspect.getdoc(operation)}\n", re.MULTILINE)
    items = re.split(r"^    (?=\S)", match[1] if match else "", flags=re.MULTILINE)
    pairs = (item.partition(":") for item in items if item.strip())
    return {key: " ".join(text.split()) for key, _, text in pairs}


def description_of(operation: type) -> str:
    """Return the docstring of an operation before its sections."""
    return re.split(r"\n+(?:Args|Returns|Raises):\n", inspect.getdoc(operation) or "")[0]


def documentation_of(operation: type) -> str:
    """Return the docstring of an operation's method."""
    text, description = inspect.getdoc(operation) or "", description_of(operation)
    has_time = any(each.type is TIME for each in parameters_of(operation).values())
    return description + (_TIMES if has_time else "") + text.removeprefix(description)


def method_name(operation: type) -> str:
    """Return the name of an operation's method: ``create_tag`` for ``CreateTag``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", operation.__name__).lower()


def method(operation: Callable[_P, Operation[Any, _R]], owner: str = "Table") -> Callable[Concatenate[Any, _P], _R]:
    """Return the method of a table, of its namespaces or of a catalog that runs an operation.

    It checks the types of its arguments before anything else, as ``accepts`` does.

    Args:
        operation: a class.
        owner: name of the class of the handle, for messages.
    """
    declared = cast("type[Operation[Any, _R]]", operation)

    def call(self: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:  # noqa: ANN401 - all that have a target
        return operation(*args, **kwargs).run(self._target)

    call.__name__ = method_name(declared)
    call.__qualname__ = f"{owner}.{call.__name__}"
    call.__doc__ = documentation_of(declared)
    parameters = inspect.signature(declared).parameters.values()
    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    cast("Any", call).__signature__ = inspect.Signature(  # which inspect reads
        [first, *(each.replace(annotation=_plain(each.annotation)) for each in parameters)],
        return_annotation=inspect.signature(declared.run).return_annotation,
    )
    found = parameters_of(declared).values()
    types = {each.name: each.type | NONE if each.is_optional else each.type for each in found if each.type is not None}
    return accepts(**types)(call)


def _plain(annotation: object) -> object:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def run_on(table: TableMethods, operation: Operation[Any, _R]) -> _R:
    """Run an operation on a table."""
    return operation.run(table._target)  # noqa: SLF001 - of this package
