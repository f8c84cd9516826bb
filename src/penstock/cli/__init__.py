"""Commands compute values; ``render`` prints them."""

import importlib
import os
import sys
from typing import NoReturn


def run() -> NoReturn:
    """Run the ``penstock`` command; an interrupt while its modules are imported ends it as a later one does."""
    try:
        importlib.import_module("penstock.cli.main").main()
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted\n")
    os._exit(130)
