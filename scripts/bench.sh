#!/bin/sh
# Measures Assay itself against its peers (scripts/bench.py says what and how); installs them where it can.
set -eu
PATH="$PATH:/usr/sbin:/sbin"
missing=""
for pair in wrk:wrk nginx:nginx-light python3:python3-minimal; do
    command -v "${pair%%:*}" >/dev/null || missing="$missing ${pair##*:}"
done
if [ -n "$missing" ]; then
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        echo "bench needs:$missing (as root on Debian they would be installed)" >&2
        exit 2
    fi
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi
cargo build --release --quiet --package assay-engine --examples
exec python3 scripts/bench.py "$@"
