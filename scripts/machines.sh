#!/bin/sh
# Four machines on one host: network namespaces on a bridge, with monotonic clocks that are minutes apart. Everything is in a network
# namespace of its own (`unshare --net sh machines.sh …`), and gone when the last process in it has ended.
#
# $1 the program, $2 a directory, then a command that is run once all agents are there. The server, at nats://10.9.0.254:4222, asks for
# the user `run` and the password in the directory's file `password`.
set -eu
assay=$1 directory=$2
shift 2
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

# $1 number, $2 label, $3 by how many seconds its clock is ahead
machine() {
    unshare --net --time --monotonic "$3" --fork --kill-child sh -c "
        until ip route get 10.9.0.254 >/dev/null 2>&1; do sleep 0.05; done
        exec '$assay' agent --nats nats://10.9.0.254:4222 $login --name m$1 --label $2 --dir '$directory/m$1'
    " >"$directory/m$1.log" 2>&1 &
    pids="$pids $!"
    # The shell is the child of \`unshare\`, in the new namespaces.
    until child=$(cat "/proc/$!/task/$!/children" 2>/dev/null) && [ -n "$child" ]; do sleep 0.05; done
    child=${child%% *}
    ip link add "port$1" type veth peer name eth0 netns "$child"
    ip link set "port$1" master lan up
    nsenter --target "$child" --net sh -c "ip link set lo up; ip addr add 10.9.0.$1/24 dev eth0; ip link set eth0 up"
}
machine 1 robots 60
machine 2 robots 3600
machine 3 proxy 300
machine 4 origins 0
tries=0
until [ "$("$assay" fleet --nats nats://10.9.0.254:4222 $login 2>/dev/null | grep -c idle)" = 4 ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 200 ] || { echo "not all machines came:" >&2; cat "$directory"/*.log >&2; exit 1; }
    sleep 0.1
done

"$@"
