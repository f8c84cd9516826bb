#!/bin/sh
# Ends with 1 and one line when no Java 17 or newer is found where Spark looks: $JAVA_HOME, else the PATH.
set -u
if [ -n "${JAVA_HOME:-}" ]; then
    java=$JAVA_HOME/bin/java
    where="JAVA_HOME=$JAVA_HOME"
else
    java=java
    where=PATH
fi
# 'openjdk version "17.0.15"'; before 9 it was "1.8.0_412"; early access builds say "25-ea". Other lines may stand before it.
version=$("$java" -version 2>&1 | sed -n 's/^[a-z]* version "\([^"]*\)".*/\1/p' | head -n 1)
major=$(printf '%s' "$version" | sed 's/^1\.//; s/[^0-9].*//')
[ "${major:-0}" -ge 17 ] && exit 0
echo "Java 17 or newer is needed (found in $where: ${version:-none}). Install it (Debian: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17) and, where it is not on the PATH, set JAVA_HOME." >&2
exit 1
