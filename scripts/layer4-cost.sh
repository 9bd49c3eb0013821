#!/bin/sh
# Measures what each way to a server costs the switch, beside HAProxy in TCP mode (scripts/benchmarks/layer4_cost.py says how).
# ASSAY_SWITCH names another build of the example `switch` (one with `--profile quick` takes a tenth of the time to build).
set -eu
cd "$(dirname "$0")/.."
for tool in python3 nginx haproxy ab; do
    PATH=$PATH:/usr/sbin command -v "$tool" >/dev/null || { echo "the measurement needs $tool" >&2; exit 2; }
done
[ -n "${ASSAY_SWITCH:-}" ] || cargo build --release --quiet --package assay-switch --example switch
exec python3 -B scripts/benchmarks/layer4_cost.py "$@"
