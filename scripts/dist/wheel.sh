#!/bin/sh
# A Python wheel with a program that is built already, by maturin: contrib/python and the program as its script.
# `maturin build --release` in contrib/python does the same, and builds the program, too.
#
# usage: wheel.sh BINARY OUT      MATURIN=FILE names maturin where it is not in PATH
set -eu
binary=$(realpath "$1") out=$(realpath "$2")
top=$(cd "$(dirname "$0")/../.." && pwd)
maturin=$(realpath "$(command -v "${MATURIN:-maturin}")")
ASSAY_CARGO=$(command -v "${CARGO:-cargo}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# maturin names the script after the file.
cp "$binary" "$work/assay"
ASSAY_BUILT=$work/assay
CARGO=$top/scripts/dist/built-cargo.sh
export ASSAY_BUILT ASSAY_CARGO CARGO
cd "$top/contrib/python"
"$maturin" build --release --out "$out" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
