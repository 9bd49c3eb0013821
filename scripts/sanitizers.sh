#!/bin/sh
# Runs the tests of all crates that use `unsafe` (docs/reference/unsafe.md) under AddressSanitizer. Needs a nightly toolchain; builds
# everything again, in a directory of its own. Memory that is never given back does not count: tests leave threads behind.
set -eu
cd "$(dirname "$0")/.."
crates=$(sed -n 's/^| `[a-z]*\/\([a-z]*\)\/src\/.*/\1/p' docs/reference/unsafe.md | sort -u)
packages=
for crate in $crates; do
    # The program's own tests start it as a process, without a sanitizer.
    [ "$crate" = assay ] || packages="$packages --package assay-$crate"
done
target=$(rustc +nightly -vV | sed -n 's/^host: //p')
export RUSTFLAGS="-Zsanitizer=address" ASAN_OPTIONS="detect_leaks=0:${ASAN_OPTIONS:-}"
# Programs that tests of the lab start.
cargo +nightly build --target "$target" --target-dir "${CARGO_TARGET_DIR:-target}/sanitizers" --quiet --package assay-lab \
    --example fake_role --example killed_lab
# shellcheck disable=SC2086
exec cargo +nightly test --target "$target" --target-dir "${CARGO_TARGET_DIR:-target}/sanitizers" $packages --lib --tests --quiet --no-fail-fast "$@"
