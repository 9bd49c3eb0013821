#!/bin/sh
# Shows that no machine can fail the first tier of tests: runs `make test` ten times in a row, every second time beside two busy loops and a
# process that writes to disk all the time. Each run must pass, and no test in it may have needed a second try.
#
#   scripts/repeat-tests.sh [RUNS]
set -eu
cd "$(dirname "$0")/.."
runs=${1:-10}
logs=$(mktemp -d)
others=
end() {
    # shellcheck disable=SC2086 # they are numbers
    [ -z "$others" ] || kill $others 2>/dev/null || true
    others=
}
trap 'end; rm -rf "$logs"' EXIT
trap 'exit 130' INT TERM

beside() {
    for _ in 1 2; do
        while :; do :; done &
        others="$others $!"
    done
    # Sixteen megabytes again and again, each time down to the disk.
    while :; do dd if=/dev/zero of="$logs/disk" bs=1M count=16 conv=fsync 2>/dev/null; done &
    others="$others $!"
}

failed=0
run=1
while [ "$run" -le "$runs" ]; do
    how=quiet
    if [ $((run % 2)) -eq 0 ]; then
        how=disturbed
        beside
    fi
    start=$(date +%s)
    result=passed
    make test >"$logs/$run" 2>&1 </dev/null || result=FAILED
    end
    if grep -q '^FLAKY ' "$logs/$run"; then result="$result, with second tries"; fi
    [ "$result" = passed ] || failed=1
    echo "run $run of $runs, $how: $result in $(($(date +%s) - start)) s"
    grep -E '^(FLAKY|FAILED) ' "$logs/$run" || [ "$result" = passed ] || tail -n 30 "$logs/$run"
    run=$((run + 1))
done
exit "$failed"
