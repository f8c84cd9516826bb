"""``forked_python_client.py <socket> <python> <arguments>``: asks the server of ``forked_python.py`` for a process.

Imports little, since it takes the place of processes that shall start in no time.
"""

import json
import os
import socket
import sys


def ask(address: str, arguments: list[str]) -> int | None:
    """Have the server run a module, and return the exit code of that; None where there is no server."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(address)
    except OSError:
        return None
    request = json.dumps([os.getcwd(), dict(os.environ), *arguments]).encode()  # noqa: PTH109 - pathlib takes longer
    sent = socket.send_fds(connection, [request], [0, 1, 2])
    connection.sendall(request[sent:])
    connection.shutdown(socket.SHUT_WR)
    # Nothing comes where the process was killed.
    return (connection.recv(1) or b"\1")[0]


def main() -> None:
    """Ask for a module of PySpark; be the usual Python for anything else, or without a server."""
    address, python, *arguments = sys.argv[1:]
    if arguments[:1] == ["-m"] and arguments[1].startswith("pyspark."):
        code = ask(address, arguments[1:])
        if code is not None:
            sys.exit(code)
    os.execv(python, [python, *arguments])  # noqa: S606 - the Python of this environment


if __name__ == "__main__":
    main()
