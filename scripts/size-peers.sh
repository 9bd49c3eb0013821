#!/bin/sh
# Measures how fast `assay size` simulates, beside libCacheSim's Python package, on one generated trace (scripts/size_peers.py says how),
# and how much longer it takes for an access log than `assay logs`. Makes a Python environment in target/size-peers if there is none.
#
#     scripts/size-peers.sh [ROUNDS]      3 rounds unless told otherwise
set -eu
cd "$(dirname "$0")/.."
command -v python3 >/dev/null || { echo "the comparison needs python3" >&2; exit 2; }
. scripts/size-programs.sh
PEER=${PEER:-$work/venv/bin/python}
[ -x "$PEER" ] || { python3 -m venv "$work/venv" && "$work/venv/bin/pip" install --quiet libcachesim==0.3.5; }
trace=$work/zipf.oracleGeneral
[ -s "$trace" ] || "$SIZE_SPEED" generate "$trace"
export PEER SIZE_SPEED ASSAY
exec python3 -B scripts/size_peers.py "$trace" "$@"
