#!/bin/sh
# Measures Assay itself against its peers (scripts/benchmarks says what and how); installs them where it can. vegeta and k6
# are built once with Go and oha once with Cargo, and kept outside the repository; without them they are left out.
set -eu
cd "$(dirname "$0")/.."
PATH="$PATH:/usr/sbin:/sbin"
missing=""
for pair in wrk:wrk nginx:nginx-light haproxy:haproxy apache2:apache2-bin h2load:nghttp2-client httperf:httperf hey:hey \
    python3:python3-minimal; do
    command -v "${pair%%:*}" >/dev/null || missing="$missing ${pair##*:}"
done
if [ -n "$missing" ]; then
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
    else
        echo "not there:$missing (as root on Debian they would be installed)" >&2
    fi
fi
. scripts/tools.sh
go_tool vegeta github.com/tsenart/vegeta/v12 v12.12.0
go_tool k6 go.k6.io/k6 v1.8.1
cargo_tool oha 1.10.0
cargo build --release --quiet --package assay
cargo build --release --quiet --package assay-load --examples
exec python3 -B scripts/benchmarks "$@"
