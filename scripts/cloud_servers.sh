#!/bin/sh
# Fetches the servers of `make test-cloud` into .cloud/, unless they are there: Azurite by npm, versitygw by Go, an HDFS
# and s3proxy by Maven. Without one of these programs, or where it does not fetch its server within five minutes, that
# server is left out, with one line, and its tests are skipped. With --probe, the exit code says whether there is any.
set -eu
cd "$(dirname "$0")/.."
versitygw=v1.8.0
limit="timeout 300"
command -v timeout >/dev/null || limit=

# fetch NAME PROGRAM COMMAND...
fetch() {
    name=$1 program=$2
    shift 2
    if ! command -v "$program" >/dev/null; then
        echo "$program is not on the PATH, so there is no $name" >&2
        return 1
    fi
    $limit "$@" && return
    echo "$program did not fetch $name, whose tests are skipped" >&2
    return 1
}

mkdir -p .cloud
azurite=.cloud/node_modules/.bin/azurite-blob
[ -x "$azurite" ] || fetch Azurite npm scripts/azurite.sh || true

if [ ! -x .cloud/versitygw/versitygw ]; then
    export GOBIN="$PWD/.cloud/versitygw"
    fetch versitygw go go install "github.com/versity/versitygw/cmd/versitygw@$versitygw" || true
fi

for server in hdfs s3proxy; do
    if [ ! -d ".cloud/$server" ]; then
        fetch "$server" mvn mvn -q -B -f "scripts/servers/$server.xml" dependency:copy-dependencies \
            -DincludeScope=runtime "-DoutputDirectory=$PWD/.cloud/$server.part" &&
            mv ".cloud/$server.part" ".cloud/$server" || true
    fi
done

[ "${1:-}" = --probe ] || exit 0
for server in "$azurite" .cloud/versitygw/versitygw .cloud/hdfs .cloud/s3proxy; do
    [ ! -e "$server" ] || exit 0
done
exit 1
