#!/bin/sh
# Makes the pictures of the README in docs/images (scripts/site/screenshots.py says which).
set -eu
cd "$(dirname "$0")/.."
for tool in python3 chromium; do
    command -v "$tool" >/dev/null || { echo "pictures need $tool" >&2; exit 2; }
done
[ -n "${ASSAY:-}" ] || cargo build --release --quiet --package assay --bin assay
exec python3 -B scripts/site/screenshots.py "$@"
