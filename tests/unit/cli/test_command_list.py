"""The list of commands and the modules that they are in agree."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import penstock.cli.commands
from penstock.cli.group import SECTIONS, Commands

MODULES = {name: module for commands in SECTIONS.values() for name, (module, _) in commands.items()}


def test_every_command_of_a_module_is_in_the_list() -> None:
    found = {}
    for info in pkgutil.iter_modules(penstock.cli.commands.__path__):
        module = importlib.import_module(f"penstock.cli.commands.{info.name}")
        found |= dict.fromkeys(module.COMMANDS, info.name)
    assert found == MODULES


@pytest.mark.parametrize("name", MODULES)
def test_the_list_says_of_a_command_what_its_help_begins_with(name: str) -> None:
    words = next(words for commands in SECTIONS.values() for each, (_, words) in commands.items() if each == name)
    assert Commands()[name].help.startswith(words[:12])
    assert words.endswith(".")


def test_an_unknown_name_is_missing() -> None:
    with pytest.raises(KeyError):
        Commands()["nope"]
    assert len(Commands()) == len(MODULES)
