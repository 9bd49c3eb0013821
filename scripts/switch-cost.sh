#!/bin/sh
# Measures what the switch costs beside nginx, HAProxy and httpd (scripts/benchmarks/switch_cost.py says how).
set -eu
cd "$(dirname "$0")/.."
for tool in python3 nginx haproxy apache2 wrk valgrind; do
    PATH=$PATH:/usr/sbin command -v "$tool" >/dev/null || { echo "the measurement needs $tool" >&2; exit 2; }
done
[ -n "${ASSAY:-}" ] || cargo build --release --quiet --package assay --bin assay
exec python3 -B scripts/benchmarks/switch_cost.py "$@"
