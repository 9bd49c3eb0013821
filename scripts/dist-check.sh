#!/bin/sh
# Builds and packages twice, in two target directories, and compares: the same source must give the same bytes. Takes twice as long as
# `make dist`. Arguments go to scripts/dist.sh.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
for time in one two; do
    CARGO_TARGET_DIR=$work/target-$time "$top/scripts/dist.sh" "$@" --out "$work/$time" >/dev/null
done
if diff "$work/one/SHA256SUMS" "$work/two/SHA256SUMS"; then
    echo "both builds are the same, byte by byte"
else
    echo "dist-check: the two builds differ in the files above" >&2
    exit 1
fi
