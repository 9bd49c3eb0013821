#!/bin/sh
# Does a number's true value lie in the interval that Assay states for it? Counts it (scripts/own_error.py says how).
set -eu
command -v python3 >/dev/null || { echo "own-error needs python3" >&2; exit 2; }
[ -n "${ASSAY:-}" ] || cargo build --release --quiet --package assay
exec python3 -B scripts/own_error.py "$@"
