# What measurements of `assay size` run, for scripts that include this: SIZE_SPEED and ASSAY, built if they name nothing, and a directory for
# their files, work.
target=${CARGO_TARGET_DIR:-target}
work=$target/size-peers
mkdir -p "$work"
if [ -z "${SIZE_SPEED:-}" ]; then
    cargo build --release --quiet --package assay-logs --example size_speed
    SIZE_SPEED=$target/release/examples/size_speed
fi
if [ -z "${ASSAY:-}" ]; then
    cargo build --release --quiet --package assay
    ASSAY=$target/release/assay
fi
