#!/bin/sh
# Measures how fast `assay logs` reads, beside calamaris and goaccess, on one generated log of Squid's native format
# (scripts/logs_peers.py says how). Installs the two if apt can and they are not there.
#
#     scripts/logs-peers.sh [LINES] [ROUNDS]      200000 lines and 5 rounds unless told otherwise
set -eu
cd "$(dirname "$0")/.."
command -v python3 >/dev/null || { echo "the comparison needs python3" >&2; exit 2; }
for peer in calamaris goaccess; do
    command -v "$peer" >/dev/null || apt-get install -y --no-install-recommends "$peer" >/dev/null 2>&1 ||
        echo "$peer is not there and cannot be installed: left out" >&2
done
if [ -z "${READ_SPEED:-}" ]; then
    cargo build --release --quiet --package assay-logs --example read_speed
    READ_SPEED=${CARGO_TARGET_DIR:-target}/release/examples/read_speed
fi
export READ_SPEED
exec python3 -B scripts/logs_peers.py "$@"
