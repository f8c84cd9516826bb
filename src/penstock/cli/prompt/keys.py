"""Key bindings of the prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.keys import Keys

from penstock.dialect.parse.script import is_whole

if TYPE_CHECKING:
    from prompt_toolkit.input import Input
    from prompt_toolkit.key_binding import KeyPressEvent

# Commands of the prompt, which need no semicolon.
_COMMANDS: Final = frozenset({"quit", "exit", "help", "clear"})


def prompt_keys() -> KeyBindings:
    """Return the bindings: Enter runs a text that ends with a semicolon, and begins a new line otherwise."""
    keys = KeyBindings()

    @keys.add("enter")
    def _enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None  # accepts the completion
        elif runs_at_once(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.newline(copy_margin=False)

    @keys.add("escape", "enter")
    def _meta_enter(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return keys


def runs_at_once(text: str) -> bool:
    """Whether Enter runs a text: it is empty, a command, or all of its statements have ended."""
    return not text.strip() or command_of(text) is not None or is_whole(text)


def command_of(text: str) -> str | None:
    """Return the prompt command in a text; None if it is not one."""
    word = text.strip().rstrip(";").strip().lower()
    return word if word in _COMMANDS else None


def take_interrupt(given: Input) -> bool:
    """Whether Ctrl-C was typed right after the statement that the prompt returned; other keys stay for the next one.

    A slow machine may read both at once, or the Ctrl-C may arrive before the terminal turns it into signals again: then
    it is a key, which the next prompt would read.
    """
    typed = [*get_typeahead(given), *given.read_keys()]
    is_interrupt = bool(typed) and typed[0].key == Keys.ControlC
    store_typeahead(given, typed[1:] if is_interrupt else typed)
    return is_interrupt
