#!/bin/sh
# Makes .venv hold what uv.lock names, plus the dependency groups given as arguments.
set -eu
cd "$(dirname "$0")/.."
python=$(scripts/find_python.sh)
uv=$("$python" scripts/find_uv.py)

groups=
for group in "$@"; do
    groups="$groups --group $group"
done

unset VIRTUAL_ENV
export UV_PROJECT_ENVIRONMENT=.venv
# The interpreter found above is used as it is: a download of another one would come from outside the package registry.
export UV_PYTHON_DOWNLOADS=never
# PySpark is one file of 450 MB.
export UV_HTTP_TIMEOUT="${UV_HTTP_TIMEOUT:-180}"
# shellcheck disable=SC2086 # group names have no blanks
exec "$uv" sync --locked --python "$python" $groups
