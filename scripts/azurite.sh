#!/bin/sh
# Fetches Azurite, a server that speaks Azure Blob, by npm into .cloud/, unless it is there.
set -eu
cd "$(dirname "$0")/.."
version=3.35.0
[ -x .cloud/node_modules/.bin/azurite-blob ] && exit 0
command -v npm >/dev/null || { echo "error: npm is not on the PATH; Azurite needs Node.js" >&2; exit 1; }
mkdir -p .cloud
npm install --prefix .cloud --no-audit --no-fund --loglevel=error "azurite@$version"
