#!/bin/sh
# Checks a user's script strictly with pyright, which npm fetches into .pyright/ unless it is there.
set -eu
cd "$(dirname "$0")/.."
version=1.1.414
if [ ! -x .pyright/node_modules/.bin/pyright ]; then
    command -v npm >/dev/null || { echo "error: npm is not on the PATH; pyright needs Node.js" >&2; exit 1; }
    mkdir -p .pyright
    npm install --prefix .pyright --no-audit --no-fund --loglevel=error "pyright@$version"
fi
exec .pyright/node_modules/.bin/pyright -p tests/typed/pyrightconfig.json
