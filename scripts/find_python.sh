#!/bin/sh
# Prints the path of a Python 3.11 or newer: $PYTHON, else the first that fits by its usual names.
set -eu
probe='
import sys
if sys.version_info < (3, 11):
    sys.exit(1)
# Inside an activated environment the interpreter behind it: the environment itself may be about to be rebuilt.
print(getattr(sys, "_base_executable", None) or sys.executable)
'
for name in "${PYTHON:-python3}" python3 python3.11 python3.12 python3.13 python3.14; do
    if found=$("$name" -c "$probe" 2>/dev/null) && [ -n "$found" ]; then
        echo "$found"
        exit 0
    fi
done
echo "Python 3.11 or newer is needed (asked: ${PYTHON:-python3}). Install it (Debian: apt-get install python3; macOS: brew install python@3.11), or name one: make PYTHON=/path/to/python3.11 ..." >&2
exit 1
