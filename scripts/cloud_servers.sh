#!/bin/sh
# Fetches the servers of `make test-cloud` into .cloud/, unless they are there: Azurite by npm, versitygw by Go, an HDFS
# and s3proxy by Maven. Without one of these programs its server is left out, with one line, and its tests are skipped.
set -eu
cd "$(dirname "$0")/.."
versitygw=v1.8.0

without() {
    command -v "$1" >/dev/null && return 1
    echo "$1 is not on the PATH, so there is no $2" >&2
}

without npm Azurite || scripts/azurite.sh

if [ ! -x .cloud/versitygw/versitygw ] && ! without go versitygw; then
    GOBIN="$PWD/.cloud/versitygw" go install "github.com/versity/versitygw/cmd/versitygw@$versitygw"
fi

for server in hdfs s3proxy; do
    if [ ! -d ".cloud/$server" ] && ! without mvn "$server"; then
        mvn -q -B -f "scripts/servers/$server.xml" dependency:copy-dependencies -DincludeScope=runtime \
            "-DoutputDirectory=$PWD/.cloud/$server.part"
        mv ".cloud/$server.part" ".cloud/$server"
    fi
done
