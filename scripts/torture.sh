#!/bin/sh
# Injects faults at random instants into commands of Assay, and counts what they leave (scripts/torture/__main__.py says how).
# Usage: torture.sh [--faults N] [--seed N] [--at-once N] [--of COMMANDS] [--only N]
set -eu
cd "$(dirname "$0")/.."
command -v python3 >/dev/null || { echo "torture needs python3" >&2; exit 2; }
case " $* " in *" --help "* | *" -h "*) exec python3 -B scripts/torture --help ;; esac
[ "$(id -u)" = 0 ] || { echo "torture needs root, for namespaces of its own" >&2; exit 2; }
for tool in unshare ip iptables; do
    command -v "$tool" >/dev/null || { echo "torture needs $tool (util-linux, iproute2, iptables)" >&2; exit 2; }
done
[ -n "${ASSAY:-}" ] || cargo build --release --quiet --package assay
exec python3 -B scripts/torture "$@"
