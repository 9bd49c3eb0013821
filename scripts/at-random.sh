#!/bin/sh
# Tries messages at random through the sockets of a crate: at-random.sh CRATE, as `at-random.sh switch`. PROPTEST_CASES says how many on
# each path. So many connections leave no source port on a machine for a while: this one runs in a network of its own (needs root), in
# which few closed connections are kept.
set -eu
cd "$(dirname "$0")/.."
crate=${1:?"usage: at-random.sh CRATE"}
program=$("${CARGO:-cargo}" test --release --package "assay-$crate" --test it --no-run 2>&1 | sed -n 's/.*Executable.*(\(.*\/it-[0-9a-f]*\)).*/\1/p')
[ -n "$program" ] || { echo "at-random: the tests of assay-$crate cannot be built: cargo test --release -p assay-$crate --test it --no-run says why" >&2; exit 1; }
case $program in /*) ;; *) program=$PWD/$program ;; esac
cd crates/*/"$crate"
export PROPTEST_CASES="${PROPTEST_CASES:-20000}"
exec unshare --net sh -c 'PATH="$PATH:/usr/sbin:/sbin"; ip link set lo up
    echo 1024 65535 >/proc/sys/net/ipv4/ip_local_port_range
    echo 50 >/proc/sys/net/ipv4/tcp_max_tw_buckets
    exec "$0" at_random --test-threads=2' "$program"
