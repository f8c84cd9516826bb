#!/bin/sh
# Makes .venv hold what uv.lock names, plus the dependency groups given as arguments.
set -eu
cd "$(dirname "$0")/.."
groups=
for group in "$@"; do
    groups="$groups --group $group"
done
# shellcheck disable=SC2086 # group names have no blanks
exec scripts/uv.sh sync --locked $groups
