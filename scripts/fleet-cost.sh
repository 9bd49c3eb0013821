#!/bin/sh
# What does it cost robots that they are commanded over NATS? (scripts/fleet_cost.py says how it is measured.)
set -eu
command -v python3 >/dev/null || { echo "fleet-cost needs python3" >&2; exit 2; }
[ -n "${ASSAY:-}" ] || cargo build --release --quiet --package assay
exec python3 -B scripts/fleet_cost.py "$@"
