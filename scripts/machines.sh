#!/bin/sh
# Four machines on one host: network namespaces on a bridge, with monotonic clocks that are minutes apart. Everything is in a network
# namespace of its own (`unshare --net sh machines.sh …`), and gone when the last process in it has ended.
#
# $1 the program, $2 a directory, then a command that is run once all agents are there. The server, at nats://10.9.0.254:4222, asks for
# the user `run` and the password in the directory's file `password`. DELAY_MS="THERE BACK": what agents send to the server and get
# from it is late by so many milliseconds. DRIFT_PPM="M1 M2 M3 M4": the clock that each gives is faster by so many millionths.
# DISK_KB=N: m1 writes on a file system of that size, for which this must be in a mount namespace of its own, too (`unshare --net --mount`).
# CLOCK_STEP_MS=N: the clock that an agent gives is set forward by so much when it gets SIGUSR1.
set -eu
assay=$1 directory=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
PATH="$PATH:/usr/sbin:/sbin"
# `unshare` ignores other signals; its child goes with it, and roles with their agent.
trap 'kill -s KILL $pids 2>/dev/null; wait' EXIT
pids=""

ip link set lo up
ip link add lan type bridge
ip addr add 10.9.0.254/24 dev lan
ip link set lan up

cat >"$directory/nats.conf" <<END
listen: "10.9.0.254:4222"
jetstream { store_dir: "$directory/jetstream" }
authorization { user: run, password: "a password" }
END
echo "a password" >"$directory/password"
nats-server -c "$directory/nats.conf" >"$directory/nats.log" 2>&1 &
echo $! >"$directory/nats.pid"
pids="$pids $!"
login="--nats-user run --nats-password-file $directory/password"
until "$assay" fleet --nats nats://10.9.0.254:4222 $login >/dev/null 2>&1; do sleep 0.1; done
agents_port=4222
if [ -n "${DELAY_MS:-}" ]; then
    agents_port=4223
    # Two numbers.
    # shellcheck disable=SC2086
    python3 -B "$here/delay.py" 10.9.0.254:4223 10.9.0.254:4222 $DELAY_MS &
    pids="$pids $!"
fi

if [ -n "${DISK_KB:-}" ]; then
    mkdir "$directory/m1"
    mount -t tmpfs -o "size=${DISK_KB}k" tmpfs "$directory/m1"
fi
step=${CLOCK_STEP_MS:+--clock-step $CLOCK_STEP_MS}

# $1 number, $2 label, $3 by how many seconds its clock is ahead, $4 its drift
machine() {
    unshare --net --time --monotonic "$3" --fork --kill-child sh -c "
        until ip route get 10.9.0.254 >/dev/null 2>&1; do sleep 0.05; done
        exec '$assay' agent --nats nats://10.9.0.254:$agents_port $login --name m$1 --label $2 --dir '$directory/m$1' --clock-drift $4 $step
    " >"$directory/m$1.log" 2>&1 &
    pids="$pids $!"
    # The shell is the child of \`unshare\`, in the new namespaces.
    until child=$(cat "/proc/$!/task/$!/children" 2>/dev/null) && [ -n "$child" ]; do sleep 0.05; done
    child=${child%% *}
    ip link add "port$1" type veth peer name eth0 netns "$child"
    ip link set "port$1" master lan up
    nsenter --target "$child" --net sh -c "ip link set lo up; ip addr add 10.9.0.$1/24 dev eth0; ip link set eth0 up"
}
drift() { echo "${DRIFT_PPM:-0 0 0 0}" | cut -d ' ' -f "$1"; }
machine 1 robots 60 "$(drift 1)"
machine 2 robots 3600 "$(drift 2)"
machine 3 proxy 300 "$(drift 3)"
machine 4 origins 0 "$(drift 4)"
tries=0
until [ "$("$assay" fleet --nats nats://10.9.0.254:4222 $login 2>/dev/null | grep -c idle)" = 4 ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 200 ] || { echo "not all machines came:" >&2; cat "$directory"/*.log >&2; exit 1; }
    sleep 0.1
done

"$@"
