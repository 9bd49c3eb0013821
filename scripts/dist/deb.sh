#!/bin/sh
# A package for Debian and its relatives from a staged installation.
#
# usage: deb.sh ROOT MACHINE OUT
set -eu
staged=$1 machine=$2 out=$3
top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/scripts/dist/about.sh"
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
{
    echo "Assay comes from $homepage. It may be used under either of two licences, MIT or Apache-2.0."
    echo "The text of the second is in /usr/share/common-licenses/Apache-2.0. That of the first:"
    echo
    cat "$root/usr/share/doc/assay/LICENSE-MIT"
} >"$root/usr/share/doc/assay/copyright"
rm "$root"/usr/share/doc/assay/LICENSE-*

# A static program needs nothing; another needs the C library of the version whose symbols it uses, or a later one.
depends=''
if readelf --program-headers "$root/usr/bin/assay" | grep -q INTERP; then
    libc=$(objdump --dynamic-syms "$root/usr/bin/assay" | grep -o 'GLIBC_[0-9.]*' | cut -d _ -f 2 | sort -Vu | tail -n 1)
    depends="Depends: libc6 (>= $libc), libgcc-s1"
fi
mkdir "$root/DEBIAN"
sed '/^$/d' >"$root/DEBIAN/control" <<EOF
Package: assay
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -sk --apparent-size "$root/usr" | cut -f 1)
$depends
Suggests: varnish, nginx, squid, trafficserver, haproxy, apache2
Section: web
Priority: optional
Homepage: $homepage
Description: $(echo "$summary" | sed 's/^M/m/')
$(echo "$description" | sed 's/^/ /')
EOF
(cd "$root" && find usr -type f | sort | xargs md5sum) >"$root/DEBIAN/md5sums"
find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zxz --build "$root" "$out/assay_${version}_$architecture.deb" >/dev/null
