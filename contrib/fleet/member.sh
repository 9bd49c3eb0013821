#!/bin/sh
# What each member of a job of several machines does, by its number: 0 coordinates a run, 1 is the machine of the proxy, 2 that of origins,
# and all others are those of robots. Used by kubernetes/run.yaml and slurm.sh.
#
#   ASSAY_INDEX   the number                      ASSAY_NATS   the server
#   ASSAY_LABEL   what is this job's alone        ASSAY_RUN    arguments of the coordinator: run image --proxy varnish …
#   ASSAY_AGENTS  how many agents there are to be
#   ASSAY_SECRETS files `run` and `agents` with the passwords are there [/secrets]
#   ASSAY         the program [assay]             ASSAY_AGENT  more arguments of agents, like --address 10.0.0.7
set -eu
: "${ASSAY_INDEX:?}" "${ASSAY_NATS:?}" "${ASSAY_LABEL:?}"
assay=${ASSAY:-assay} secrets=${ASSAY_SECRETS:-/secrets}
# Names have 40 characters at most, and an identifier of Kubernetes has 36 already.
ASSAY_LABEL=$(printf %.30s "$ASSAY_LABEL")

agent() {
    # shellcheck disable=SC2086 # they are words
    exec "$assay" agent --nats "$ASSAY_NATS" --nats-user agents --nats-password-file "$secrets/agents" \
        --name "$1-$ASSAY_LABEL" --label "$2-$ASSAY_LABEL" ${ASSAY_AGENT:-}
}

case $ASSAY_INDEX in
0) : "${ASSAY_RUN:?}" "${ASSAY_AGENTS:?}" ;;
1) agent cache cache ;;
2) agent origins origins ;;
*) agent "load-$ASSAY_INDEX" load ;;
esac

to_server() {
    command=$1
    shift
    "$assay" "$command" "$@" --nats-user run --nats-password-file "$secrets/run"
}
# Machines do not start all at once, and the server may be the last.
tries=0
while there=$(to_server fleet --nats "$ASSAY_NATS" --json 2>/dev/null | grep -c "\"name\": *\".*-$ASSAY_LABEL\"") || :
    [ "$there" -lt "$ASSAY_AGENTS" ] && [ "$tries" -lt 60 ]; do
    tries=$((tries + 1))
    sleep 1
done
# Where some have not come, this says which are missing.
# shellcheck disable=SC2086 # they are words
to_server $ASSAY_RUN --fleet "$ASSAY_NATS" \
    --robots-on "load-$ASSAY_LABEL" --proxy-on "cache-$ASSAY_LABEL" --origins-on "origins-$ASSAY_LABEL"
