#!/bin/sh
# Runs the questions of the gallery that have no result yet, and keeps what they made in target/gallery (scripts/site/gallery.py).
set -eu
cd "$(dirname "$0")/.."
command -v python3 >/dev/null || { echo "the gallery needs python3" >&2; exit 2; }
[ -n "${ASSAY:-}" ] || cargo build --release --quiet --package assay --bin assay
exec python3 -B scripts/site/gallery.py "$@"
