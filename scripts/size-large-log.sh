#!/bin/sh
# Measures memory and time of `assay size` for an access log of 100 million lines for 20 million objects (11.9 GB), which is written to its
# standard input as it reads, once for each list of arguments: a sample that was asked for, and none, so that one is drawn because the log
# is too large. Ends with 1 if either takes 2 GB or more.
#
#     scripts/size-large-log.sh [LINES]      100,000,000 unless told otherwise
set -eu
cd "$(dirname "$0")/.."
command -v /usr/bin/time >/dev/null || { echo "the measurement needs GNU time in /usr/bin/time" >&2; exit 2; }
. scripts/size-programs.sh
missed=0
for arguments in "--sample 1%" ""; do
    # shellcheck disable=SC2086
    "$SIZE_SPEED" log "${1:-100000000}" |
        /usr/bin/time -v -o "$work/large-log.time" "$ASSAY" size - $arguments --json -o "$work/large-log.json"
    kilobytes=$(sed -n 's/.*Maximum resident set size (kbytes): //p' "$work/large-log.time")
    echo "assay size ${arguments:-(no --sample)}: $((kilobytes / 1024)) MB at most"
    grep -E 'User time|System time|Elapsed' "$work/large-log.time"
    [ "$kilobytes" -lt 2097152 ] || { echo "MISSED: 2 GB or more"; missed=1; }
done
exit $missed
