#!/bin/sh
# Counts the instructions of a request on each hot path (scripts/benchmarks/instructions.py says how). Without ASSAY, of a release
# that it builds.
set -eu
cd "$(dirname "$0")/.."
[ -n "${ASSAY:-}" ] || cargo build --release --quiet --package assay --bin assay
exec python3 -B scripts/benchmarks/instructions.py "$@"
