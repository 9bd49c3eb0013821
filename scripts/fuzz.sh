#!/bin/sh
# Runs fuzz targets for a time, each on from the inputs that earlier runs kept (scripts/fuzz.py says how).
# Usage: fuzz.sh [--seconds S] [--jobs N] [--page] [TARGET]...
set -eu
cd "$(dirname "$0")/.."
command -v cargo-fuzz >/dev/null || { echo "fuzzing needs cargo-fuzz: cargo install cargo-fuzz" >&2; exit 2; }
cargo +nightly --version >/dev/null 2>&1 || { echo "fuzzing needs a nightly toolchain: rustup toolchain install nightly" >&2; exit 2; }
exec python3 -B scripts/fuzz.py "$@"
