#!/bin/sh
# Predicted and measured hit ratios of four proxies: two workloads and a log, at sizes below, at and above what they request
# altogether, three repetitions each. About an hour and a half, on loopback; what was interrupted is gone on with. The results are
# experiments in target/predicted, and the tables (standard output) those of docs/explanation/predicted.md.
# Usage: predicted.sh [demo | site | log]...
set -eu
cd "$(dirname "$0")/.."
command -v python3 >/dev/null || { echo "predicted needs python3, to make a log" >&2; exit 2; }
[ -n "${ASSAY:-}" ] || cargo build --release --quiet --package assay
assay=${ASSAY:-target/release/assay} results=${PREDICTED:-target/predicted}
mkdir -p "$results"

# The log: 8,000 GETs in 200 seconds for some 1,900 objects of 21 MB, their popularity by Zipf, their sizes log-normal.
log() {
    python3 - <<'PYTHON'
import random

chance = random.Random(2026)
sizes = [min(200_000, max(300, int(chance.lognormvariate(8.7, 1.1)))) for _ in range(2_400)]
weights = [1 / rank**0.8 for rank in range(1, len(sizes) + 1)]
for number, item in enumerate(chance.choices(range(len(sizes)), weights, k=8_000)):
    second = number * 200 // 8_000
    client = f"10.0.{chance.randrange(4)}.{chance.randrange(1, 255)}"
    time = f"01/Jun/2026:12:{second // 60:02}:{second % 60:02} +0000"
    print(f'{client} - - [{time}] "GET /o/{item}.html HTTP/1.1" 200 {sizes[item]} "-" "-"')
PYTHON
}

prove() {
    input=$1 name=$2 sizes=$3
    shift 3
    "$assay" size "$input" --prove varnish,nginx,squid,builtin --at "$sizes" --repetitions 3 --dir "$results/$name" \
        --policy lru --json --output "$results/$name.json" "$@"
    "$assay" size "$input" --prove varnish,nginx,squid,builtin --at "$sizes" --repetitions 3 --dir "$results/$name" \
        --policy lru "$@"
}

for case in ${*:-demo site log}; do
    case $case in
    demo) prove demo demo 16MB,42MB,84MB ;;
    site) prove site site 32MB,80MB,160MB --rehearse 25s ;;
    log)
        [ -s "$results/made.log" ] || log >"$results/made.log"
        prove "$results/made.log" log 16MB,22MB,44MB --speed 6
        ;;
    *)
        echo "predicted: there is no case $case; there are demo, site and log" >&2
        exit 2
        ;;
    esac
done
