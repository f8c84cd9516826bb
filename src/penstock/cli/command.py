"""Commands from functions: with the session, and with the arguments and options of the operation that they run."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperCommand

from penstock.api import arguments as types
from penstock.api.operations.declaration import Parameter, description_of, parameters_of, section_of
from penstock.cli.arguments import GLOBAL_OPTIONS, DryRun, parse_pairs, split_list
from penstock.cli.session import Session
from penstock.cli.times import parse_millis
from penstock.errors import InvalidOptionError
from penstock.format.text.partitions import parse_partition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# Digits of a 64-bit id.
_MAX_DIGITS: Final = 18


def _parse_position(text: str, option: str) -> int | str:
    if text in {"earliest", "latest"}:
        return text
    if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS:
        return int(text)
    raise InvalidOptionError(f"{option} '{text}': expected the id of a snapshot, earliest or latest")


# For each type: that of the option, what stands for its value in the help, and the function that parses it.
_OPTION_TYPES: Final[dict[types.ArgumentType, tuple[Any, str | None, Callable[[Any, str], object] | None]]] = {
    types.FLAG: (bool, None, None),
    types.INTEGER: (int, None, None),
    types.TEXT: (str, None, None),
    types.FILTER: (str, None, None),
    types.LOCATION: (str, None, None),
    types.TIME: (str, None, parse_millis),
    types.POSITION: (str, "SNAPSHOT", _parse_position),
    types.NAMES: (str, "NAME[,NAME]", lambda text, _: split_list(text)),
    types.OPTIONS: (list[str], "KEY=VALUE", parse_pairs),
    types.TEXT_MAPPING: (list[str], "KEY=VALUE", parse_pairs),
    types.MAPPINGS: (list[str], "K=V[,K=V]", lambda texts, _: [parse_partition(text) for text in texts]),
}
_SEVERAL: Final = frozenset({types.OPTIONS, types.TEXT_MAPPING, types.MAPPINGS})


class UsageCommand(TyperCommand):
    """A command whose usage names required arguments without the braces that some versions of typer put around them."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ANN401 - of the click that typer uses
        """Return the words after the name."""
        return [re.sub(r"^\{(.*)\}(\.\.\.)?$", r"\1\2", piece) for piece in super().collect_usage_pieces(ctx)]


class CommandGroup(typer.Typer):
    """A command with commands of its own, such as ``penstock tag``."""

    def __init__(self, help: str) -> None:
        super().__init__(no_args_is_help=True, help=help, rich_markup_mode=None)

    def add(self, name: str) -> Callable[[Callable[..., None]], None]:
        """Return a decorator that adds a command."""

        def add(body: Callable[..., None]) -> None:
            self.command(name, cls=UsageCommand, epilog=GLOBAL_OPTIONS)(command(body))

        return add


def command(body: Callable[..., None]) -> Callable[..., None]:
    """Return the function of a command, as typer takes it.

    Args:
        body: its parameter ``session`` is the session. Its parameter ``operation``, if there is one, is an operation,
            whose class is its annotation; the fields become arguments and options. All others are further ones. One
            with the name of a field is declared there instead of being derived, and its value is also that of the
            field. Without a docstring, the command has the description of the operation.
    """
    own = inspect.signature(body, eval_str=True).parameters
    operation = own["operation"].annotation if "operation" in own else None
    fields = {} if operation is None else parameters_of(operation)
    texts = {} if operation is None else section_of(operation, "Args")
    derived = {name: each for name, each in fields.items() if each.type in _OPTION_TYPES and name not in own}

    def run(*, context: typer.Context, **given: Any) -> None:  # noqa: ANN401 - as declared
        values = {name: given[name] for name in fields if name in own}
        for name, parameter in derived.items():
            value = given.pop(name)
            if value is not None:
                values[name] = _parsed(parameter, value)
        if operation is not None:
            given["operation"] = operation(**values)
        body(session=context.obj if isinstance(context.obj, Session) else Session(), **given)

    parameters = [inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)]
    for each in own.values():
        if each.name == "operation":
            parameters += [_option(parameter, fields, texts) for parameter in derived.values()]
        elif each.name != "session":
            parameters.append(each.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    run.__doc__ = body.__doc__ or (operation and description_of(operation).replace("``", ""))
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    vars(run).update(__signature__=inspect.Signature(parameters), operation=operation)
    return run


def _parsed(parameter: Parameter, value: object) -> object:
    parse = _OPTION_TYPES[parameter.type or types.TEXT][2]
    return value if parse is None else parse(value, _option_name(parameter))


def _option_name(parameter: Parameter) -> str:
    name = parameter.name.removesuffix("s") if parameter.type in _SEVERAL else parameter.name
    return parameter.named.option or f"--{name.replace('_', '-')}"


def _option(parameter: Parameter, fields: Mapping[str, Parameter], texts: Mapping[str, str]) -> inspect.Parameter:
    kind, metavar, _ = _OPTION_TYPES[parameter.type or types.TEXT]
    annotation: Any
    if parameter.name == "dry_run":
        annotation = DryRun
    elif parameter.is_required and parameter.named.option is None:
        name = parameter.paimon if parameter.name == "name" else parameter.name
        text = texts.get(parameter.name, f"name of the {parameter.paimon}.")
        annotation = Annotated[kind, typer.Argument(metavar=name.upper(), help=_help(text, fields))]
    else:
        text = texts.get(parameter.name, "")
        if parameter.type is types.TIME:
            text = f"{text.removesuffix('.')}; ISO 8601, local without a zone, or ms since 1970."
        names = (_option_name(parameter), *(("-o",) if parameter.type is types.OPTIONS else ()))
        more = " May be repeated." if parameter.type in _SEVERAL else ""
        option = typer.Option(*names, metavar=metavar, help=_help(text, fields) + more)
        is_plain = parameter.is_required or parameter.type is types.FLAG
        annotation = Annotated[kind if is_plain else kind | None, option]
    default = inspect.Parameter.empty if parameter.is_required else (False if parameter.type is types.FLAG else None)
    return inspect.Parameter(parameter.name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _help(text: str, fields: Mapping[str, Parameter]) -> str:
    """Return a text of a docstring as help: with the names of options for those of fields."""
    sentence = text[:1].upper() + text[1:]

    def option(match: re.Match[str]) -> str:
        return _option_name(fields[match[1]]) if match[1] in fields else match[1]

    return re.sub("``(.*?)``", option, sentence)
