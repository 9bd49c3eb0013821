#!/bin/sh
# Installs each package in an empty Debian system, as its users would, and uses it there: the program runs the demo and gives its report,
# bash completes on Tab, `man assay-run` opens, and after removal all paths are as before. There is no Rust there, and no network.
#
# usage: scripts/dist/try.sh [--dist DIR] [--base FILE] [--rehearse TIME] [PACKAGE…]
#
#   --dist DIR       where the packages are [default: target/dist]
#   --base FILE      the empty system as a tarball; written if it is not there yet, so that it is made once [default: made each time]
#   --rehearse TIME  shortens the demo to this time
#   PACKAGE          deb, rpm, tarball (as root, to /usr/local), home (the tarball as a user, to ~/.local) [default: all]
#
# Needs root, debootstrap, iproute2, python3 and, for the .rpm, rpm. Everything is in a tmpfs in namespaces of this command alone, which
# the kernel removes with it, also when it is killed.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
usage() { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
fail() { echo "try: $*" >&2; exit 1; }

# Three stages: outside, in namespaces of its own, and without a network.
stage=${1:-}
if [ "$stage" != --inside ] && [ "$stage" != --offline ]; then
    dist=$top/target/dist base='' rehearse='' wanted=''
    while [ $# -gt 0 ]; do
        case $1 in
            --dist) dist=${2:?--dist needs a directory}; shift 2 ;;
            --base) base=$(realpath -m "${2:?--base needs a file}"); shift 2 ;;
            --rehearse) rehearse=${2:?--rehearse needs a time}; shift 2 ;;
            deb | rpm | tarball | home) wanted="$wanted $1"; shift ;;
            *) usage ;;
        esac
    done
    [ "$(id -u)" -eq 0 ] || fail "must run as root, which chroot and namespaces need"
    for tool in debootstrap ip python3 unshare; do
        command -v "$tool" >/dev/null || fail "needs $tool"
    done
    dist=$(realpath "$dist")
    ls "$dist"/*.tar.gz >/dev/null 2>&1 || fail "there are no packages in $dist: make dist"
    exec unshare --mount --pid --fork --kill-child --mount-proc --propagation private \
        "$0" --inside "$dist" "$base" "$rehearse" "${wanted:-deb rpm tarball home}"
fi

dist=$2 base=$3 rehearse=$4 wanted=$5
place=/mnt
empty=$place/empty root=$place/root

if [ "$stage" = --inside ]; then
    mount -t tmpfs -o mode=755 try "$place"
    mkdir "$empty" "$root"
    if [ -n "$base" ] && [ -e "$base" ]; then
        tar -C "$empty" -xf "$base"
        [ -e "$empty/usr/share/bash-completion/bash_completion" ] ||
            fail "$base is not a system that this command wrote: it has no bash-completion. Name a file that is not there yet"
    else
        echo "making an empty system (debootstrap)"
        debootstrap --variant=minbase --include=bash-completion,man-db bookworm "$empty" >"$place/log" 2>&1 ||
            { tail -n 20 "$place/log"; fail "debootstrap failed"; }
        if [ -n "$base" ]; then tar -C "$empty" -cf "$base" .; fi
    fi
    chroot "$empty" useradd --home-dir /srv/tester --create-home --shell /bin/bash tester
    # What an installer of Debian writes, and a minimal system does not have.
    echo "127.0.0.1 localhost" >"$empty/etc/hosts"
    shift
    exec unshare --net "$0" --offline "$@"
fi
ip link set lo up

inside() { chroot "$root" "$@"; }
as_tester() { chroot --userspec=tester:tester "$root" env -i HOME=/srv/tester TERM=dumb USER=tester bash --login -euc "cd; $1"; }
# Paths that are not the package manager's own notes, nor a user's files.
paths() {
    (cd "$root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./srv/tester/results -o -path ./var/log \
        -o -path ./var/cache -o -path ./var/lib/dpkg -o -path ./var/lib/apt -o -path ./var/lib/rpm \) -prune -o -print | sort)
}

# A fresh copy of the empty system.
fresh() {
    mkdir "$place/$1" "$place/$1/upper" "$place/$1/work"
    mount -t overlay -o "lowerdir=$empty,upperdir=$place/$1/upper,workdir=$place/$1/work" try "$root"
    for directory in proc sys dev; do mount --rbind "/$directory" "$root/$directory"; done
    mkdir "$root/srv/packages"
    cp "$dist"/*.deb "$dist"/*.tar.gz "$root/srv/packages"
    tar -C "$root/srv/packages" -xzf "$dist"/*.tar.gz
    # `rpm` of this machine keeps its notes in there.
    if [ "$1" = rpm ]; then cp "$dist"/*.rpm "$root/srv/packages"; rpm --root "$root" --initdb; fi
    as_tester 'mkdir results'
    if inside sh -c 'command -v cargo rustc assay'; then fail "the system is not empty"; fi
    paths >"$place/before"
}

install_package() {
    case $1 in
        deb) inside sh -c 'apt-get install -y /srv/packages/*.deb' ;;
        rpm)
            # The system has its libraries from another package manager. A static program needs none.
            dependencies=''
            if rpm -qp --requires "$dist"/*.rpm | grep -q '^libc'; then dependencies=--nodeps; fi
            rpm --root "$root" --install $dependencies "$dist"/*.rpm
            ;;
        tarball) inside sh -c '/srv/packages/assay-*/install.sh' ;;
        home) as_tester '/srv/packages/assay-*/install.sh' ;;
    esac
}

remove_package() {
    case $1 in
        deb) inside apt-get purge -y assay ;;
        rpm) rpm --root "$root" --erase assay ;;
        tarball) inside sh -c '/srv/packages/assay-*/install.sh --uninstall' ;;
        home) as_tester '/srv/packages/assay-*/install.sh --uninstall' ;;
    esac
}

try() {
    fresh "$1"
    began=$(date +%s)
    install_package "$1" >"$place/log" 2>&1 || { cat "$place/log"; fail "$1: cannot be installed"; }
    paths >"$place/installed"

    # 96: this machine is so busy that not all figures are known, which Assay is right to say.
    code=0
    as_tester "cd results; assay run demo ${rehearse:+--rehearse $rehearse}" >"$place/log" 2>&1 </dev/null || code=$?
    case $code in 0 | 96) ;; *) cat "$place/log"; fail "$1: the demo ended with $code" ;; esac
    as_tester 'grep -q "</html>" results/runs/*/report.html && test "$(assay report results/runs/* --json | grep -c measured)" -gt 0' ||
        fail "$1: the demo gave no report"
    took=$(($(date +%s) - began))

    "$top/scripts/dist/tab.py" "$root" tester 'assay run dem' 'assay run demo' || fail "$1: bash does not complete"
    "$top/scripts/dist/tab.py" "$root" tester 'assay run demo --rehea' 'assay run demo --rehearse' || fail "$1: bash completes no flags"
    as_tester 'MANPAGER=cat man assay-run' >"$place/log" 2>&1 || { cat "$place/log"; fail "$1: man assay-run does not open"; }
    grep -q -- --rehearse "$place/log" || { cat "$place/log"; fail "$1: man assay-run does not know --rehearse"; }
    grep -q "^\./.*/assay-agent.service$" "$place/installed" || fail "$1: has no unit for the agent"

    remove_package "$1" >"$place/log" 2>&1 || { cat "$place/log"; fail "$1: cannot be removed"; }
    paths >"$place/after"
    diff "$place/before" "$place/after" >"$place/log" || { cat "$place/log"; fail "$1: removal does not leave what was there before"; }
    added=$(($(wc -l <"$place/installed") - $(wc -l <"$place/before")))
    echo "$1: $added paths installed, report after $took s, completion, manual page, nothing left after removal"
    umount -R "$root"
    rm -rf "${place:?}/$1"
}

for package in $wanted; do
    if [ "$package" = rpm ] && ! { ls "$dist"/*.rpm && command -v rpm; } >/dev/null 2>&1; then
        echo "rpm: not tried (no .rpm in $dist, or no rpm on this machine)"
        continue
    fi
    try "$package"
done
