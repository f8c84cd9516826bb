#!/bin/sh
# Runs uv, which is fetched when there is none, with the settings of this project: scripts/uv.sh lock
set -eu
folder=$(dirname "$0")
python=$("$folder/find_python.sh")
uv=$("$python" "$folder/find_uv.py")

export UV_PROJECT_ENVIRONMENT="${UV_PROJECT_ENVIRONMENT:-.venv}"
# The machine's own interpreter is used as it is: a download of another would not come from the package registry.
export UV_PYTHON="$python" UV_PYTHON_DOWNLOADS=never
# PySpark is one file of 450 MB.
export UV_HTTP_TIMEOUT="${UV_HTTP_TIMEOUT:-180}"
# Trust whom the machine trusts, a company's proxy included, where it has a say in that.
if [ -s /etc/ssl/certs/ca-certificates.crt ]; then
    export UV_SYSTEM_CERTS="${UV_SYSTEM_CERTS:-true}"
fi
unset VIRTUAL_ENV
exec "$uv" "$@"
