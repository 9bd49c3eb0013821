#!/bin/sh
# Does a run on several machines keep its promises about clocks and faults? Counts it (scripts/fleet_runs.py says how).
set -eu
command -v python3 >/dev/null || { echo "fleet-runs needs python3" >&2; exit 2; }
[ -n "${ASSAY:-}" ] || cargo build --release --quiet --package assay
exec python3 -B scripts/fleet_runs.py "$@"
