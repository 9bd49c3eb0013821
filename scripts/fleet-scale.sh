#!/bin/sh
# What does a coordinator spend on each of many agents? (scripts/fleet_scale.py says how it is measured.)
set -eu
command -v python3 >/dev/null || { echo "fleet-scale needs python3" >&2; exit 2; }
[ -n "${ASSAY:-}" ] || cargo build --release --quiet --package assay
exec python3 -B scripts/fleet_scale.py "$@"
