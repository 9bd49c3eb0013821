#!/bin/sh
# Measures what it costs to measure the roles' processes and the machine (scripts/host_cost.py says how).
set -eu
cd "$(dirname "$0")/.."
for tool in python3 varnishd; do
    PATH=$PATH:/usr/sbin command -v "$tool" >/dev/null || { echo "the measurement needs $tool" >&2; exit 2; }
done
[ -n "${ASSAY:-}" ] || cargo build --release --quiet --package assay --bin assay
exec python3 -B scripts/host_cost.py "$@"
