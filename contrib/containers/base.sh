#!/bin/sh
# Makes what stands in for the image debian:bookworm-slim where it cannot be pulled: a minimal system (debootstrap) as a tarball. Lists of
# sources are those of this machine, if it has some in the form of that image; they must have security updates.
#
# usage: base.sh TARBALL          needs root
set -eu
tarball=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
chmod 755 "$work"
debootstrap --variant=minbase bookworm "$work" >/dev/null
if [ -e /etc/apt/sources.list.d/debian.sources ]; then
    rm -f "$work/etc/apt/sources.list"
    cp /etc/apt/sources.list.d/debian.sources "$work/etc/apt/sources.list.d"
fi
tar -C "$work" -cf "$tarball" .
