#!/bin/sh
# Does every workload in the binary run without content errors, and offer what `assay check` says? (scripts/rehearse.py)
set -eu
PATH="$PATH:/usr/sbin:/sbin"
command -v python3 >/dev/null || { echo "rehearsing needs python3" >&2; exit 2; }
cargo build --release --quiet --package assay
exec python3 scripts/rehearse.py "$@"
