"""The procedure of an operation: its arguments in ``CALL``, by position or by name, and the rows that it returns."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from datetime import datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from penstock.api import arguments as types
from penstock.api.operations.declaration import Operation, Parameter, description_of, parameters_of
from penstock.errors import InvalidOptionError
from penstock.format.text.partitions import PathText

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

_COLUMN_TYPES: Final[Mapping[str, pa.DataType]] = {"STRING": pa.string(), "BIGINT": pa.int64()}
ResultRows: TypeAlias = "Iterable[tuple[object, ...]]"
_MAX_LONG: Final = 2**63 - 1
_DRY_RUN: Final = "dry_run"
# Maximal length of a value in an error message.
_SHOWN: Final = 40


@dataclass(frozen=True, slots=True)
class Extra:
    """An argument of a procedure that its operation does not have.

    Attributes:
        option: option of the table that it sets; None for an argument without effect.
        only: the allowed values, in lower case; empty for all.
        refusal: the error for all others, after the name of the procedure.
    """

    name: str
    type: types.ArgumentType = types.TEXT
    _: KW_ONLY
    option: str | None = None
    only: tuple[str, ...] = ()
    refusal: str = ""
    aliases: tuple[str, ...] = ()


def run_only(target: Any, operation: Operation[Any, object]) -> ResultRows:  # noqa: ANN401 - a table or a warehouse
    """Run an operation that has nothing to report."""
    operation.run(target)
    return ()


@dataclass(frozen=True, slots=True)
class Procedure:
    """A procedure that CALL can run, with the name and the arguments of Paimon.

    Attributes:
        arguments: their names in Paimon, in the order of their positions; ``dry_run`` is taken by its name if the
            operation has it, also where Paimon does not. ``table``, if it is the first, is what the
            procedure works on; otherwise that is the warehouse of the current catalog, or of the table that the
            operation's argument ``name`` names. ``options`` are those of the table if the operation has none.
        columns: of the result, each with its type; ``result STRING`` is ``Success`` if there are no rows.
        run: runs an operation, and returns the rows of the result.
        build: returns the operations of a call, if their arguments are not those of the call.
        each: an argument with several values, with an operation for each.
        needed: an argument that is required, although the operation does not require it.
        extras: the arguments that the operation does not have.
        table_aliases: other names of the table.
        takes_database: whether the table may be ``database.*``, for all tables of a database.
        skips_damaged_schemas: whether it works on a table whose newest schema files are damaged.
        note: what its page says besides the description of the operation.
    """

    name: str
    operation: type[Operation[Any, Any]]
    arguments: str
    columns: str = "result STRING"
    run: Callable[[Any, Any], ResultRows] = run_only
    _: KW_ONLY
    build: Callable[[Arguments], Operation[Any, Any]] | None = None
    each: str | None = None
    needed: str | None = None
    extras: tuple[Extra, ...] = ()
    table_aliases: tuple[str, ...] = ()
    takes_database: bool = False
    skips_damaged_schemas: bool = False
    note: str = ""

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the arguments: those with a position in their order, then the others."""
        names = self.positions
        return (*names, _DRY_RUN) if _DRY_RUN in parameters_of(self.operation) and _DRY_RUN not in names else names

    @property
    def positions(self) -> tuple[str, ...]:
        """Names of the arguments that may be given without their names, in their order."""
        return tuple(self.arguments.split(", "))

    @property
    def description(self) -> str:
        """What it does, in one paragraph."""
        text = " ".join(description_of(self.operation).split("\n\n", maxsplit=1)[0].split()).replace("``", "`")
        return f"{text} {self.note[:1].upper()}{self.note[1:]}." if self.note else text

    @property
    def has_table(self) -> bool:
        """Whether the first argument is the table that it works on."""
        return self.parameters[0] == "table"

    @property
    def fields(self) -> Mapping[str, Parameter]:
        """Arguments of the operation by their names in Paimon."""
        found = {each.paimon: each for each in parameters_of(self.operation).values()}
        return {name: found[name] for name in self.parameters if name in found}

    @property
    def aliases(self) -> dict[str, str]:
        """Other names of arguments."""
        found = dict.fromkeys(self.table_aliases, "table")
        for name, parameter in self.fields.items():
            found |= dict.fromkeys(parameter.named.aliases, name)
        for extra in self.extras:
            found |= dict.fromkeys(extra.aliases, extra.name)
        return found

    def operations(self, arguments: Arguments) -> Iterator[Operation[Any, Any]]:
        """Yield the operations of a call. Raises ``InvalidOptionError``."""
        if self.build is not None:
            built: Any = self.build(arguments)
            yield replace(built, dry_run=arguments.value(_DRY_RUN, types.FLAG) or False)
            return
        values: dict[str, Any] = {}
        for name, parameter in self.fields.items():
            value = arguments.value(name, parameter.named.sql or parameter.type or types.TEXT)
            if value is not None:
                values[parameter.name] = value
            elif parameter.is_required or name == self.needed:
                raise arguments.missing(name)
        field = None if self.each is None else self.fields[self.each].name
        if field not in values:
            yield self.operation(**values)
        else:
            yield from (self.operation(**{**values, field: value}) for value in values[field])

    def table_options(self, arguments: Arguments) -> dict[str, str]:
        """Return the options of the table for a call, and check the arguments that the operation does not have.

        Raises:
            InvalidOptionError: one of them has another value than those that are allowed.
        """
        is_of_table = "options" in self.parameters and "options" not in self.fields
        options = (arguments.value("options", types.OPTIONS) or {}) if is_of_table else {}
        for extra in self.extras:
            value = arguments.value(extra.name, extra.type)
            if extra.only and str(value or extra.only[0]).lower() not in extra.only:
                raise arguments.error(extra.refusal)
            if extra.option is not None and value is not None:
                options[extra.option] = str(value)
        return options

    def result(self, rows: Sequence[tuple[object, ...]]) -> pa.Table:
        """Return the result of a call."""
        if not rows and self.columns == "result STRING":
            rows = [("Success",)]
        names = (column.split(" ") for column in self.columns.split(", "))
        schema = pa.schema([(name, _COLUMN_TYPES[kind]) for name, kind in names])
        columns = [pa.array([row[place] for row in rows], column.type) for place, column in enumerate(schema)]
        return pa.Table.from_arrays(columns, schema=schema)


class Arguments:
    """The arguments of one call.

    Args:
        positions: names of the parameters that have a position, in their order.
        parameters: names of all parameters.
        aliases: further names of parameters.
        given: names and values; the name of a positional argument is None.

    Raises:
        InvalidOptionError: there are too many arguments, or a name is unknown or given twice.
    """

    def __init__(
        self,
        procedure: str,
        positions: Sequence[str],
        parameters: Sequence[str],
        aliases: Mapping[str, str],
        given: Iterable[tuple[str | None, object]],
    ) -> None:
        self._procedure = procedure
        self._values: dict[str, object] = {}
        for place, (given_name, value) in enumerate(given):
            if given_name is None and place >= len(positions):
                raise self.error(f"takes at most {len(positions)} arguments: {', '.join(positions)}")
            name = positions[place] if given_name is None else given_name
            name = aliases.get(name, name)
            if name not in parameters:
                near = get_close_matches(name, parameters, n=1)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(parameters)}"
                raise self.error(f"has no argument '{name}'; {hint}")
            if name in self._values:
                raise self.error(f"was given '{name}' twice")
            self._values[name] = value

    def error(self, problem: str) -> InvalidOptionError:
        """Return an error about this call."""
        return InvalidOptionError(f"procedure sys.{self._procedure} {problem}")

    def missing(self, name: str) -> InvalidOptionError:
        """Return the error for a required argument that is missing."""
        return self.error(f"needs the argument {name}")

    def text(self, name: str) -> str | None:
        """Return a text; None if it is missing or empty, as in Flink."""
        value = self._values.get(name)
        return None if value is None or value == "" else str(value)

    def is_number(self, name: str) -> bool:
        """Return whether a number was given, not a text."""
        return isinstance(self._values.get(name), int)

    def needed(self, name: str) -> str:
        """Return a required text. Raises ``InvalidOptionError`` if it is missing."""
        value = self.text(name)
        if value is None:
            raise self.missing(name)
        return value

    def value(self, name: str, kind: types.ArgumentType) -> Any:  # noqa: ANN401 - as the type says
        """Return an argument as its type requires; None if it is missing or empty. Raises ``InvalidOptionError``."""
        text = self.text(name)
        try:
            return None if text is None else _PARSERS[kind](text)
        except _UnexpectedError as error:
            expected, found = error.args
            raise self.error(f"expects {expected} for {name}, found {found}") from None


class _UnexpectedError(Exception):
    """A text is not what a type expects; the arguments say what, and what was found."""


def _to_integer(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise _UnexpectedError("a whole number", f"'{text[:_SHOWN]}'") from None
    if abs(number) > _MAX_LONG:
        raise _UnexpectedError("a number of at most 64 bits", text[:_SHOWN])
    return number


def _to_flag(text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise _UnexpectedError("TRUE or FALSE", f"'{text}'")
    return text.lower() == "true"


def _to_time(text: str) -> datetime:
    """Return a local time in the time zone of this machine."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise _UnexpectedError("a time such as '2026-01-01 00:00:00'", f"'{text}'") from None


def _to_pairs(text: str) -> dict[str, str]:
    """Return ``k=v,k=v`` as a mapping."""
    parts = [part.partition("=") for part in text.split(",")]
    wrong = next((key for key, equals, _ in parts if not equals), None)
    if wrong is not None:
        raise _UnexpectedError("key=value", f"'{wrong.strip()}'")
    return {key.strip(): value.strip() for key, _, value in parts}


def _to_partitions(text: str) -> list[dict[str, PathText]]:
    """Return ``k=v,k2=v2;k=v3`` as partition specs."""
    parts = map(_to_pairs, text.removesuffix(";").split(";"))
    return [{key: PathText(value) for key, value in each.items()} for each in parts]


_PARSERS: Final[Mapping[types.ArgumentType, Callable[[str], object]]] = {
    types.TEXT: str,
    types.FILTER: str,
    types.LOCATION: str,
    types.NAMES: lambda text: [part.strip() for part in text.split(",")],
    types.INTEGER: _to_integer,
    types.POSITION: _to_integer,
    types.FLAG: _to_flag,
    types.TIME: _to_time,
    types.OPTIONS: _to_pairs,
    types.TEXT_MAPPING: _to_pairs,
    types.MAPPINGS: _to_partitions,
}
