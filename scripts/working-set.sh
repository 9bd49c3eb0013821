#!/bin/sh
# Does a large working set cost more than a small one? Memory, and processor time per request, of working sets of a thousand
# and of a thousand million objects (crates/model/workload/examples/working_set.rs says how). Ends with 1 if they differ by more
# than 5 %. Takes some minutes: the large set is really introduced, slot by slot, before anything is measured.
#
#     scripts/working-set.sh [OBJECTS…]      two sizes, 1000 and 1000000000 unless told otherwise
set -eu
cd "$(dirname "$0")/.."
command -v python3 >/dev/null || { echo "the comparison needs python3" >&2; exit 2; }
cargo build --release --quiet --package assay-workload --example working_set
release=${CARGO_TARGET_DIR:-target}/release
"$release/examples/working_set" "$@" | exec python3 -B scripts/working_set.py
