#!/bin/sh
# Does Assay know when it, or the machine, shaped a result? Counts it (scripts/honesty.py says what and how).
set -eu
PATH="$PATH:/usr/sbin:/sbin"
command -v python3 >/dev/null || { echo "honesty needs python3" >&2; exit 2; }
[ -n "${ASSAY:-}" ] || cargo build --release --quiet --package assay
exec python3 -B scripts/honesty.py "$@"
