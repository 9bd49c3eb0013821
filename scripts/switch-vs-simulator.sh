#!/bin/sh
# Is the live switch what the simulator says? Virtual nodes behind the switch against the simulation, for the mixes 60/40 and
# 80/20 of Jones's study (2002), CAP and RAND, 2 to 20 clients. For a machine that has nothing else to do.
#
#   scripts/switch-vs-simulator.sh [directory for results] [further flags of `assay cluster --run`]
set -eu
cd "$(dirname "$0")/.."
out=${1:-switch-vs-simulator}
[ $# -eq 0 ] || shift
mkdir -p "$out"
cargo build --release --quiet --package assay --bin assay
assay=target/release/assay
for figure in figure-5 figure-4; do
    "$assay" simulate "$figure" --json -o "$out/$figure-simulated.json"
    "$assay" cluster "$figure" --run --policy rand,cap --clients '2..20 by 2' --repetitions 3 --warm-up 5s --measure 60s "$@" \
        --against "$out/$figure-simulated.json" --json -o "$out/$figure-live.json" --html "$out/$figure.html"
    "$assay" policies "$out/$figure-live.json" --against "$out/$figure-simulated.json" | tee "$out/$figure.txt"
done
