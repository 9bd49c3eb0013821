#!/bin/sh
# Runs all tests, after everything is built: four rows of them side by side, as many wait most of their time, and then those
# end-to-end tests that are judged by their times (modules `alone`), most of them one by one. The integration tests of the binary (`commands`) are
# a row of their own: they wait most, and take longer than those of all other crates together. Some of them, those of several machines and of Python
# (`later`), follow the unit tests in their row, which is the shortest, so that all rows end at about the same time. Lints and the documentation of the code
# are a fifth row, which takes what the others leave of the processors (it is scheduled when nothing else can run), also from
# `alone`: those tests wait most of their time, and what a busy machine does to their times is what they are about.
#
# Every test belongs to one of these: unit tests, integration tests (`it`, `commands`), end-to-end tests (`e2e`), examples in the
# documentation of the code, counts of instructions. Ends with 1 if one of them failed; all are run before that.
set -u
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
failed=0
# Modules of `commands` that are run behind the unit tests.
later="fleet:: fleet_lost:: fleet_descriptions:: python:: by_hand:: machine::"

case ${1:-all} in
e2e)
    # More threads than processors: they wait. The tests of commands have as many as there are: with four of each, the load is 40 in the first
    # minutes, requests that come due cannot leave, and tests fail for that.
    exec "$cargo" test --workspace --quiet --test e2e -- --skip alone:: --test-threads=4
    ;;
commands)
    skipped=
    for module in $later; do skipped="$skipped --skip $module"; done
    # shellcheck disable=SC2086 # they are words
    exec "$cargo" test --workspace --quiet --test commands -- $skipped
    ;;
later)
    # By its program, where that is known: cargo is held by the lints at that time.
    if [ -n "${COMMANDS:-}" ]; then
        cd crates/cli || exit 1
        # shellcheck disable=SC2086 # they are words
        exec "$COMMANDS" --quiet $later --test-threads=3
    fi
    # shellcheck disable=SC2086 # they are words
    exec "$cargo" test --workspace --quiet --test commands -- $later --test-threads=3
    ;;
unit)
    "$cargo" test --workspace --quiet --no-fail-fast --lib --bins || failed=1
    ASSAY=${CARGO_TARGET_DIR:-target}/debug/assay scripts/instructions.sh --check || failed=1
    exit "$failed"
    ;;
unit-and-later)
    scripts/test.sh unit || failed=1
    scripts/test.sh later || failed=1
    exit "$failed"
    ;;
lint)
    # Where sessions share the processors evenly (autogroup), the priority is that of the session.
    if ! { echo 19 >/proc/self/autogroup; } 2>/dev/null; then :; fi
    # Examples in the documentation of the code: as the lints, they have cargo build.
    "$cargo" test --workspace --quiet --doc || failed=1
    idle=
    if chrt --idle 0 true 2>/dev/null; then idle="chrt --idle 0"; fi
    $idle nice -n 19 "$cargo" clippy --workspace --all-targets --quiet -- -D warnings || failed=1
    # As clippy checks them, and with the features that tests need (so one example, too): crates that it has checked are not checked
    # again.
    RUSTC_WORKSPACE_WRAPPER="$(rustc --print sysroot)/bin/clippy-driver" CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__ \
        RUSTDOCFLAGS="-D warnings" $idle nice -n 19 "$cargo" doc --workspace --lib --bins --example fake_role --no-deps \
        --document-private-items --quiet || failed=1
    exit "$failed"
    ;;
all) ;;
*)
    echo "usage: scripts/test.sh [unit | later | unit-and-later | commands | e2e | lint]: all tests, or one of the rows that run side by side (or a part of one)" >&2
    exit 2
    ;;
esac

said=$(mktemp -d) || exit 2
rows=
end() {
    # A row is a process group of its own (setsid): with it, everything that it started ends.
    for row in $rows; do kill -- "-$row" 2>/dev/null; done
    rm -rf "$said"
}
trap end EXIT
trap 'exit 130' INT TERM

# Cargo says which programs it made: some are run directly, while cargo, which builds one thing at a time, is held by the lints.
"$cargo" test --workspace --no-run --quiet --lib --bins --tests --message-format=json-render-diagnostics >"$said/built" || exit 1
# Of the examples, only those that tests start: clippy has checked all, and most are for measuring. By `cargo build`: an example that
# `cargo test` is told to build becomes a test of its own, under another name.
"$cargo" build --workspace --quiet --example fake_role --example killed_lab || exit 1
program_of() {
    found=$(sed -n "s/.*\"executable\":\"\([^\"]*\/$1-[^\"]*\)\".*/\1/p" "$said/built")
    [ -x "$found" ] || { echo "cargo did not say where the tests $1 are: $found" >&2; exit 1; }
    echo "$found"
}
end_to_end=$(program_of e2e) && COMMANDS=$(program_of commands) || exit 1
export COMMANDS
start() {
    setsid scripts/test.sh "$1" >"$said/$1" 2>&1 &
    started=$!
    rows="$rows $started"
}
for row in unit-and-later commands e2e; do start "$row"; done
{ "$cargo" test --workspace --quiet --no-fail-fast --test it 2>&1 || touch "$said/failed"; } | tee "$said/it" &
first=$!
# Cargo builds one thing at a time. So lints begin when all tests run that have been built: before, these would wait for them.
for row in unit-and-later commands e2e it; do
    until [ -s "$said/$row" ] || ! kill -0 "$first" 2>/dev/null; do sleep 0.1; done
done
tests=$rows
start lint
lint=$started
for row in $tests; do wait "$row" || failed=1; done
wait "$first"
rows=$lint
cat "$said/unit-and-later" "$said/commands" "$said/e2e"
{ (cd crates/cli && "$end_to_end" --quiet alone:: --test-threads=3) 2>&1 || touch "$said/failed"; } | tee "$said/alone"
wait "$lint" || failed=1
rows=
cat "$said/lint"
[ ! -e "$said/failed" ] || failed=1
if [ "$failed" -ne 0 ]; then
    # Last, so that whoever sees only the end of this knows what to look for.
    echo "What failed:"
    cd "$said" && grep -A 3 -E ' --- FAILED$|^error|are kept: | panicked at ' unit-and-later commands e2e it alone lint | cut -c 1-1500
fi
exit "$failed"
