"""Print the path of a uv that can read our lock file: the one on the PATH, else one installed from PyPI into .uv/.

Runs on the system's interpreter before anything is installed, so it needs only the standard library.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

VERSION: Final = "0.13.8"
# The lock file was written by this release line; an older uv might rewrite it.
OLDEST: Final = (0, 13)
HOME: Final = Path(__file__).resolve().parent.parent / ".uv"

# For interpreters without venv and pip (Debian's bare python3): a wheel of pip can run without installation.
PIP_WHEEL: Final = (
    "https://files.pythonhosted.org/packages/07/25/ee8c38ae72d66b844ce8eb9711ba905dba21ca1a8a0c960057c41cd23337/"
    "pip-26.3-py3-none-any.whl"
)
PIP_SHA256: Final = "f3b60b20ffaadd4415ed7957212a38ac63fa4c5fa375bd0f4a797777940fad13"


def is_recent(uv: Path | str) -> bool:
    """Whether ``uv`` runs and is of our release line or newer."""
    try:
        text = subprocess.run([str(uv), "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return False
    found = re.search(r"(\d+)\.(\d+)", text)
    return found is not None and (int(found[1]), int(found[2])) >= OLDEST


def run(*command: str) -> None:
    """Run a step and show its output only if it fails; stdout is reserved for the result."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        last = done.stdout.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise RuntimeError(last[0])


def install_into_venv() -> Path:
    """Install with the interpreter's own venv module."""
    run(sys.executable, "-m", "venv", "--clear", str(HOME))
    run(str(HOME / "bin" / "python"), "-m", "pip", "install", f"uv=={VERSION}")
    return HOME / "bin" / "uv"


def install_into_folder(pip: Sequence[str] = ("-m", "pip")) -> Path:
    """Install with the interpreter's pip, which needs no ensurepip, without changing the interpreter's packages."""
    shutil.rmtree(HOME, ignore_errors=True)
    run(sys.executable, *pip, "install", "--target", str(HOME), f"uv=={VERSION}")
    return HOME / "bin" / "uv"


def install_with_fetched_pip() -> Path:
    """Install with a pinned wheel of pip, fetched over HTTPS."""
    with urllib.request.urlopen(PIP_WHEEL, timeout=60) as answer:
        wheel = answer.read()
    if hashlib.sha256(wheel).hexdigest() != PIP_SHA256:
        message = "the wheel of pip has an unexpected checksum"
        raise RuntimeError(message)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / PIP_WHEEL.rsplit("/", maxsplit=1)[-1]
        path.write_bytes(wheel)
        return install_into_folder((str(path / "pip"),))


WAYS: Final[tuple[Callable[[], Path], ...]] = (install_into_venv, install_into_folder, install_with_fetched_pip)


def find_uv() -> Path:
    """Return a usable uv; install one if there is none.

    Raises:
        SystemExit: all methods failed; the message has one line for each.
    """
    named = os.environ.get("UV") or shutil.which("uv")
    for uv in (named, HOME / "bin" / "uv"):
        if uv and is_recent(uv):
            return Path(uv)
    print(f"Installing uv {VERSION} from PyPI into .uv/", file=sys.stderr)
    failures = []
    for way in WAYS:
        try:
            return way()
        except (OSError, RuntimeError) as error:
            failures.append(f"  {way.__name__}: {error}")
    message = (
        "uv could not be installed from PyPI; put uv on the PATH, or install Python's venv module "
        "(Debian: apt-get install python3-venv) and check the network.\n"
    )
    raise SystemExit(message + "\n".join(failures))


if __name__ == "__main__":
    print(find_uv())
