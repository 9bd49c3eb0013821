#!/bin/sh
# Measures what it costs that workers watch themselves, in instructions per request (scripts/watch_cost.py says how).
set -eu
cd "$(dirname "$0")/.."
for tool in python3 valgrind; do
    command -v "$tool" >/dev/null || { echo "the measurement needs $tool" >&2; exit 2; }
done
cargo build --release --quiet --package assay --bin assay
cargo build --release --quiet --package assay-load --features valgrind --example robots --example origins
exec python3 -B scripts/watch_cost.py "$@"
