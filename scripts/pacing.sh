#!/bin/sh
# Measures how exactly requests leave (scripts/pacing.py says what and how). vegeta and k6 are built once with Go, where there
# is one, and kept outside the repository; without them they are left out, and the program says so.
set -eu
cd "$(dirname "$0")/.."
command -v python3 >/dev/null || { echo "the measurement needs python3" >&2; exit 2; }

. scripts/tools.sh
go_tool vegeta github.com/tsenart/vegeta/v12 v12.12.0
go_tool k6 go.k6.io/k6 v1.8.1

cargo build --release --quiet --package assay-load --example pacing
exec python3 -B scripts/pacing.py "$@"
