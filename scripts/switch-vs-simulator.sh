#!/bin/sh
# Is the live switch what the simulator says? Virtual nodes behind the switch against the simulation, for the mixes 60/40 and
# 80/20 of Jones's study (2002), CAP and RAND, 2 to 20 clients. For a machine that has nothing else to do.
#
#   scripts/switch-vs-simulator.sh [directory for results] [further flags of `assay cluster --run`]
#
# Some of it only, by variables of the environment (what stands here is all of it):
#   FIGURES='figure-5 figure-4'   the mixes 60/40 and 80/20; or `locality`, with POLICIES=cap,lard
#   POLICIES=rand,cap  CLIENTS='2..20 by 2'  REPETITIONS=3  WARM_UP=5s  MEASURE=60s
#   SLOWER=1                      everything so many times slower, on a machine that has other things to do
#   ASSAY=target/release/assay    that binary as it is; without it, it is built
# The six points of the manual's table, in four minutes:
#   FIGURES=figure-4 CLIENTS=2,8,20 WARM_UP=2s MEASURE=10s scripts/switch-vs-simulator.sh
set -eu
cd "$(dirname "$0")/.."
out=${1:-switch-vs-simulator}
[ $# -eq 0 ] || shift
mkdir -p "$out"
if [ -z "${ASSAY:-}" ]; then
    cargo build --release --quiet --package assay --bin assay
    ASSAY=target/release/assay
fi
for figure in ${FIGURES:-figure-5 figure-4}; do
    # The whole of it: long enough that chance is not in it. A later call of the same takes it as it is.
    [ -s "$out/$figure-simulated.json" ] || "$ASSAY" simulate "$figure" --json -o "$out/$figure-simulated.json"
    "$ASSAY" cluster "$figure" --run --policy "${POLICIES:-rand,cap}" --clients "${CLIENTS:-2..20 by 2}" \
        --repetitions "${REPETITIONS:-3}" --warm-up "${WARM_UP:-5s}" --measure "${MEASURE:-60s}" --slower "${SLOWER:-1}" "$@" \
        --against "$out/$figure-simulated.json" --json -o "$out/$figure-live.json" --html "$out/$figure.html"
    "$ASSAY" policies "$out/$figure-live.json" --against "$out/$figure-simulated.json" | tee "$out/$figure.txt"
done
