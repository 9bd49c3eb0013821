#!/bin/sh
# Is a known limit found beside other work? (scripts/peak_known.py says how.)
set -eu
cd "$(dirname "$0")/.."
command -v python3 >/dev/null || { echo "the measurement needs python3" >&2; exit 2; }
[ -n "${ASSAY:-}" ] || cargo build --release --quiet --package assay --bin assay
exec python3 -B scripts/peak_known.py "$@"
