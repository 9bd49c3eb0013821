#!/bin/sh
# A package for Debian and its relatives from a staged installation.
#
# usage: deb.sh ROOT VERSION MACHINE OUT
set -eu
staged=$1 version=$2 machine=$3 out=$4
case $machine in x86_64) architecture=amd64 ;; aarch64) architecture=arm64 ;; *) architecture=$machine ;; esac
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT INT TERM
chmod 755 "$root"
cp -a "$staged/." "$root"

# Where zsh of Debian looks for what packages bring.
mkdir -p "$root/usr/share/zsh/vendor-completions"
mv "$root/usr/share/zsh/site-functions/_assay" "$root/usr/share/zsh/vendor-completions/_assay"
rmdir "$root/usr/share/zsh/site-functions"
gzip -9n <"$root/usr/share/doc/assay/CHANGELOG.md" >"$root/usr/share/doc/assay/changelog.gz"
rm "$root/usr/share/doc/assay/CHANGELOG.md"
cp "$root/usr/share/doc/assay/LICENSE-MIT" "$root/usr/share/doc/assay/copyright"

# A static program needs nothing.
depends=''
if readelf --program-headers "$root/usr/bin/assay" | grep -q INTERP; then depends='Depends: libc6, libgcc-s1'; fi
mkdir "$root/DEBIAN"
sed '/^$/d' >"$root/DEBIAN/control" <<EOF
Package: assay
Version: $version
Architecture: $architecture
Maintainer: ${MAINTAINER:-The Assay developers <assay@users.noreply.github.com>}
Installed-Size: $(du -sk --apparent-size "$root/usr" | cut -f 1)
$depends
Suggests: varnish, nginx, squid, trafficserver, haproxy, apache2
Section: web
Priority: optional
Homepage: https://github.com/assay-bench/assay
Description: measures how fast, how effective and how correct a caching proxy is
 Assay sends a proxy a known stream of requests, checks every byte of every
 response, counts the traffic on both sides, and reports the results.
EOF
(cd "$root" && find usr -type f | sort | xargs md5sum) >"$root/DEBIAN/md5sums"
find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zxz --build "$root" "$out/assay_${version}_$architecture.deb" >/dev/null
