#!/bin/sh
# Do repeated conformance runs contradict each other? Counts it (scripts/conform_runs.py says how).
set -eu
command -v python3 >/dev/null || { echo "conform-runs needs python3" >&2; exit 2; }
[ -n "${ASSAY:-}" ] || cargo build --release --quiet --package assay
exec python3 -B scripts/conform_runs.py "$@"
