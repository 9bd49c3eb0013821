#!/bin/sh
# Do slow clients and slow servers cost others anything? Measures it (scripts/slow_clients.py says how).
# Usage: slow-clients.sh [--times PAIRS] [--slow N] [--seconds S] [--json FILE] [CASE]...
set -eu
cd "$(dirname "$0")/.."
for tool in python3 nginx openssl; do
    PATH=$PATH:/usr/sbin command -v "$tool" >/dev/null || { echo "the measurement needs $tool" >&2; exit 2; }
done
[ -n "${ASSAY:-}" ] || cargo build --release --quiet --package assay
exec python3 -B scripts/slow_clients.py "$@"
