# Load generators and checkers that no package brings: built once, and kept outside the repository. To be sourced.
ASSAY_BENCH_TOOLS="${ASSAY_BENCH_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/assay-bench/bin}"
export ASSAY_BENCH_TOOLS

is_there() { command -v "$1" >/dev/null || [ -x "$ASSAY_BENCH_TOOLS/$1" ]; }

go_tool() { # name, module, version, and its package where that is not the module itself
    if is_there "$1" || ! command -v go >/dev/null; then return; fi
    echo "building $1 $3" >&2
    scratch=$(mktemp -d)
    printf 'module bench\ngo 1.24\nrequire %s %s\n' "$2" "$3" >"$scratch/go.mod"
    mkdir -p "$ASSAY_BENCH_TOOLS"
    # A tool that cannot be built is one that is not there.
    (cd "$scratch" && GOFLAGS="-mod=mod -buildvcs=false" nice timeout 600 go build -o "$ASSAY_BENCH_TOOLS/$1" "${4:-$2}") >&2 || true
    rm -rf "$scratch"
}

cargo_tool() { # name, version
    if is_there "$1"; then return; fi
    echo "building $1 $2" >&2
    nice cargo install --quiet --locked --version "$2" --root "$(dirname "$ASSAY_BENCH_TOOLS")" "$1" >&2 || true
}
