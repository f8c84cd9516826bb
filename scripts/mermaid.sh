#!/bin/sh
# Fetches the script that draws the site's diagrams from npm into .mermaid/, unless it is there.
set -eu
cd "$(dirname "$0")/.."
version=11.17.2
sha512=57a2b70bc101744b0f1595d228c25eea9a50384371b87011afd1af1d7e21878ee501b84c443f6a7f8a042bb2e8691431
sha512=${sha512}50b31af34feab798073bbdda0a578106
[ -s ".mermaid/$version/mermaid.min.js" ] && exit 0
if ! command -v npm >/dev/null; then
    echo "npm is not on the PATH: readers of the site will need a network to see its diagrams" >&2
    exit 0
fi
mkdir -p ".mermaid/$version"
cd ".mermaid/$version"
npm pack --silent --loglevel=error "mermaid@$version" >/dev/null
echo "$sha512  mermaid-$version.tgz" | sha512sum --check --quiet
tar xzf "mermaid-$version.tgz" --strip-components=1 package/LICENSE
tar xzf "mermaid-$version.tgz" --strip-components=2 package/dist/mermaid.min.js
rm "mermaid-$version.tgz"
