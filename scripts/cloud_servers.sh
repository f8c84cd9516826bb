#!/bin/sh
# Fetches the servers of `make test-cloud` into .cloud/, unless they are there: azurite by npm, versitygw by Go, hdfs,
# s3proxy and Hadoop's connectors for S3 and Azure by Maven. Arguments are the names of those that are wanted, all of
# them without arguments. Without one of these programs, or where it does not fetch its server in time, that server is
# left out, with one line, and its tests are skipped.
set -eu
cd "$(dirname "$0")/.."
versitygw=v1.8.0
limit="timeout 240"
wanted=" ${*:-azurite versitygw hdfs s3proxy hadoop-aws hadoop-azure} "
command -v timeout >/dev/null || limit=

is_wanted() {
    case "$wanted" in *" $1 "*) true ;; *) false ;; esac
}

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
if is_wanted azurite && [ ! -x .cloud/node_modules/.bin/azurite-blob ]; then
    fetch azurite npm scripts/azurite.sh || true
fi

if is_wanted versitygw && [ ! -x .cloud/versitygw/versitygw ]; then
    export GOBIN="$PWD/.cloud/versitygw"
    fetch versitygw go go install "github.com/versity/versitygw/cmd/versitygw@$versitygw" || true
fi

for server in hdfs s3proxy hadoop-aws hadoop-azure; do
    if is_wanted "$server" && [ ! -d ".cloud/$server" ]; then
        fetch "$server" mvn mvn -q -B -f "scripts/servers/$server.xml" dependency:copy-dependencies \
            -DincludeScope=runtime "-DoutputDirectory=$PWD/.cloud/$server.part" &&
            mv ".cloud/$server.part" ".cloud/$server" || true
    fi
done
