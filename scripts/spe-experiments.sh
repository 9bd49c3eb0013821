#!/bin/sh
# The artificial and the reverse-proxy experiment of simultaneous evaluation, on the proxies of this machine
# (docs/explanation/evaluations.md; scripts/spe_experiments.py says what is done): spe-experiments.sh artificial|reverse [flags]
set -eu
cd "$(dirname "$0")/.."
cargo build --release --quiet --package assay
exec python3 scripts/spe_experiments.py "${CARGO_TARGET_DIR:-target}/release/assay" "$@"
