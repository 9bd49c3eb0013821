#!/bin/sh
# Does a run give an answer, and the right one, on a machine that has other work? Counts it (scripts/answers.py says how).
set -eu
command -v python3 >/dev/null || { echo "answers needs python3" >&2; exit 2; }
[ -n "${ASSAY:-}" ] || cargo build --release --quiet --package assay
exec python3 -B scripts/answers.py "$@"
