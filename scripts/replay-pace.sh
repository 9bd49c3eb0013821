#!/bin/sh
# Measures how well the Collector of simultaneous proxy evaluation keeps the pace of what it recorded: tables 11.1 and 11.2
# and figure 11.7 of the document it follows (crates/run/host/examples/replay_pace says what and how). Flags are passed on.
set -eu
cd "$(dirname "$0")/.."
cargo build --release --quiet --package assay-host --example replay_pace
exec "${CARGO_TARGET_DIR:-target}/release/examples/replay_pace" "$@"
