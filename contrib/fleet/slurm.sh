#!/bin/sh
#SBATCH --job-name=assay
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --time=01:00:00
# A run on machines that Slurm gives: sbatch slurm.sh run image --proxy varnish --rehearse 5m
#
# The first node runs the NATS server and the coordinator, the second the proxy, the third origins, and all others robots. Assay, the
# proxy and nats-server must be installed on these nodes. The run directory is in runs/ of the directory that the job was submitted
# from. Everything ends with the job.
set -eu
[ $# -gt 0 ] || { echo "usage: sbatch slurm.sh run WORKLOAD [FLAGS]" >&2; exit 2; }
here=${ASSAY_FLEET:-$SLURM_SUBMIT_DIR/contrib/fleet}
nodes=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
first=$(echo "$nodes" | head -n 1)
[ "$(echo "$nodes" | wc -l)" -ge 4 ] || { echo "four nodes are needed: one for the server, for the proxy, for origins, for robots" >&2; exit 2; }

ASSAY_SECRETS=$(mktemp -d "${SLURM_SUBMIT_DIR}/.assay-XXXXXX")
# What the server keeps until the end, on the first node: that is where this script runs.
store=$(mktemp -d)
trap 'kill $started 2>/dev/null || :; wait; rm -rf "$ASSAY_SECRETS" "$store"' EXIT
trap 'exit 130' INT TERM
started=
for who in run agents; do
    head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$ASSAY_SECRETS/$who"
done
# A letter first: the server takes what looks like a number for one.
ASSAY_RUN_PASSWORD=p$(cat "$ASSAY_SECRETS/run") ASSAY_AGENTS_PASSWORD=p$(cat "$ASSAY_SECRETS/agents")
printf '%s\n' "$ASSAY_RUN_PASSWORD" >"$ASSAY_SECRETS/run"
printf '%s\n' "$ASSAY_AGENTS_PASSWORD" >"$ASSAY_SECRETS/agents"

ASSAY_NATS=nats://$first:${ASSAY_PORT:-4222} ASSAY_LABEL=$SLURM_JOB_ID ASSAY_RUN=$*
ASSAY_AGENTS=$(($(echo "$nodes" | wc -l) - 1))
export ASSAY_AGENTS ASSAY_SECRETS ASSAY_RUN_PASSWORD ASSAY_AGENTS_PASSWORD ASSAY_NATS ASSAY_LABEL ASSAY_RUN
srun --overlap --nodes=1 --ntasks=1 --nodelist="$first" nats-server -c "$here/nats.conf" -sd "$store" --port "${ASSAY_PORT:-4222}" &
started="$started $!"
index=0
for node in $nodes; do
    if [ "$index" -gt 0 ]; then
        ASSAY_INDEX=$index srun --overlap --nodes=1 --ntasks=1 --nodelist="$node" "$here/member.sh" &
        started="$started $!"
    fi
    index=$((index + 1))
done
ASSAY_INDEX=0 srun --overlap --nodes=1 --ntasks=1 --nodelist="$first" --chdir="$SLURM_SUBMIT_DIR" "$here/member.sh"
