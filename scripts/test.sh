#!/bin/sh
# Runs all tests, after everything is built. What waits most of its time, end-to-end tests that are not judged by their times,
# runs beside what computes; end-to-end tests that are (modules `alone`) run afterwards, with the machine to themselves.
#
# Every test belongs to one of these runs: unit tests, integration tests (`it`), end-to-end tests (`e2e`), examples in the
# documentation of the code. Ends with 1 if one of them failed; all are run before that.
set -u
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
said=$(mktemp -d) || exit 2
end() {
    [ -z "${beside:-}" ] || kill "$beside" 2>/dev/null
    rm -rf "$said"
}
trap end EXIT
trap 'exit 130' INT TERM

"$cargo" test --workspace --no-run --quiet || exit 1

# More threads than processors: they wait.
"$cargo" test --workspace --quiet --test e2e -- --skip alone:: --test-threads=4 >"$said/beside" 2>&1 &
beside=$!
failed=0
"$cargo" test --workspace --quiet --no-fail-fast --lib --bins --test it || failed=1
"$cargo" test --workspace --quiet --doc || failed=1
wait "$beside" || failed=1
beside=
cat "$said/beside"
"$cargo" test --workspace --quiet --test e2e -- alone:: || failed=1
exit "$failed"
