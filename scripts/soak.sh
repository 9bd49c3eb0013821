#!/bin/sh
# Lets a switch, an evaluation and a fleet work for hours, and says whether anything grew or was lost (scripts/soak/__main__.py says how).
# Usage: soak.sh [--hours H] [--clients N] [--seed N] [--dir DIR] [--summary] [--self-test]
set -eu
cd "$(dirname "$0")/.."
command -v python3 >/dev/null || { echo "soak needs python3" >&2; exit 2; }
case " $* " in *" --summary "* | *" --self-test "*) exec python3 -B scripts/soak "$@" ;; esac
[ "$(id -u)" = 0 ] || { echo "soak needs root, for namespaces of its own" >&2; exit 2; }
for tool in unshare ip openssl nats-server nginx; do
    PATH=$PATH:/usr/sbin command -v "$tool" >/dev/null || { echo "soak needs $tool" >&2; exit 2; }
done
[ -n "${ASSAY:-}" ] || cargo build --release --quiet --package assay
exec python3 -B scripts/soak "$@"
