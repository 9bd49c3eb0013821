#!/bin/sh
# Makes the context that the Containerfiles are built in: base.tar, the few files that an image from nothing needs beside the program, and
# program.tar. Owners and modes are those in the image, and dates those of the last commit (or SOURCE_DATE_EPOCH).
#
# usage: context.sh BINARY OUT
set -eu
binary=$1 out=$2
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$top" log -1 --format=%ct)}
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
umask 022
mkdir -p "$out" "$work/base/etc/ssl/certs" "$work/base/tmp" "$work/base/work" "$work/program/usr/bin"

# Names of users, for what asks for them. Engines write /etc/hosts themselves; with others, localhost must still be known.
printf 'root:x:0:0:root:/:/nonexistent\nassay:x:65532:65532:assay:/work:/nonexistent\n' >"$work/base/etc/passwd"
printf 'root:x:0:\nassay:x:65532:\n' >"$work/base/etc/group"
printf '127.0.0.1 localhost\n::1 localhost\n' >"$work/base/etc/hosts"
printf 'hosts: files dns\n' >"$work/base/etc/nsswitch.conf"
# Authorities that may vouch for a NATS server (`assay agent`, `--fleet`).
authorities=${AUTHORITIES:-/etc/ssl/certs/ca-certificates.crt}
if [ -e "$authorities" ]; then
    cp "$authorities" "$work/base/etc/ssl/certs/ca-certificates.crt"
else
    echo "context.sh: no $authorities, so the image trusts no public authority" >&2
fi

cp "$binary" "$work/program/usr/bin/assay"
mkdir -p "$work/program/usr/share/doc/assay"
cp "$top/LICENSE-MIT" "$top/LICENSE-APACHE" "$work/program/usr/share/doc/assay"
# A program that is not static brings the libraries of this machine.
if readelf --program-headers "$binary" | grep -q INTERP; then
    echo "context.sh: $binary is not static; the image gets this machine's libraries, too" >&2
    ldd "$binary" | grep -o '/[^ ]*' | while IFS= read -r library; do
        mkdir -p "$work/base$(dirname "$library")"
        cp -L "$library" "$work/base$library"
    done
fi
find "$work" -exec chmod u=rwX,go=rX {} +
chmod 755 "$work/program/usr/bin/assay"
chmod 1777 "$work/base/tmp" "$work/base/work"

pack() {
    (cd "$work/$1" && find . -mindepth 1 | sort |
        tar --no-recursion --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -cf "$out/$1.tar" --files-from=-)
}
out=$(cd "$out" && pwd)
pack base
pack program
cp "$here/Containerfile" "$here/Containerfile.proxies" "$out"
rm -rf "$out/proxies"
cp -r "$here/proxies" "$out"
