#!/bin/sh
# Is the same stream served the same over every protocol? (scripts/protocols.py says how.) Needs the real proxies; some 40 minutes.
set -eu
cd "$(dirname "$0")/.."
command -v python3 >/dev/null || { echo "protocols needs python3" >&2; exit 2; }
[ -n "${ASSAY:-}" ] || cargo build --release --quiet --package assay
if unshare --net true 2>/dev/null; then
    exec unshare --net sh -c 'PATH="$PATH:/usr/sbin:/sbin"; ip link set lo up; exec python3 -B scripts/protocols.py "$@"' protocols "$@"
fi
exec python3 -B scripts/protocols.py "$@"
