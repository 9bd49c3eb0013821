#!/bin/sh
# Measures how exactly requests leave (scripts/pacing.py says what and how). vegeta and k6 are built once with Go, where there
# is one, and kept outside the repository; without them they are left out, and the program says so.
set -eu
cd "$(dirname "$0")/.."
command -v python3 >/dev/null || { echo "the measurement needs python3" >&2; exit 2; }

ASSAY_BENCH_TOOLS="${ASSAY_BENCH_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/assay-bench/bin}"
export ASSAY_BENCH_TOOLS
go_tool() { # name, module, version
    if command -v "$1" >/dev/null || [ -x "$ASSAY_BENCH_TOOLS/$1" ] || ! command -v go >/dev/null; then return; fi
    echo "building $1 $3" >&2
    scratch=$(mktemp -d)
    printf 'module bench\ngo 1.24\nrequire %s %s\n' "$2" "$3" >"$scratch/go.mod"
    mkdir -p "$ASSAY_BENCH_TOOLS"
    # A tool that cannot be built is one that is not there.
    (cd "$scratch" && GOFLAGS="-mod=mod -buildvcs=false" nice go build -o "$ASSAY_BENCH_TOOLS/$1" "$2") >&2 || true
    rm -rf "$scratch"
}
go_tool vegeta github.com/tsenart/vegeta/v12 v12.12.0
go_tool k6 go.k6.io/k6 v1.8.1

cargo build --release --quiet --package assay-engine --example pacing
exec python3 -B scripts/pacing.py "$@"
