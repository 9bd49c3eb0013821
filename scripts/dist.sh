#!/bin/sh
# Makes what is published of a version, in target/dist: a tarball with an install script, a .deb, an .rpm (where rpmbuild is
# installed), a Python wheel (where maturin is), symbols apart, a Homebrew formula and an AUR package that install the tarball, checksums,
# and an SPDX list of what the program was made from.
#
# usage: scripts/dist.sh [--binary FILE] [--tool FILE] [--out DIR]
#
# Without --binary, the program is built: static, with the C library of GNU (crt-static). On a machine with a musl toolchain or for
# another processor, name the target, e.g. TARGET=x86_64-unknown-linux-musl or TARGET=aarch64-unknown-linux-gnu (not tried).
# --tool: the program that writes manual pages and completions, where the one that is packaged cannot run here.
#
# The same source gives the same files: dates are that of the last commit (or SOURCE_DATE_EPOCH). scripts/dist-check.sh holds that.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
TARGET=${TARGET:-$(uname -m)-unknown-linux-gnu}
binary='' tool='' out=$top/target/dist
while [ $# -gt 0 ]; do
    case $1 in
        --binary) binary=$2; shift 2 ;;
        --tool) tool=$2; shift 2 ;;
        --out) out=$2; shift 2 ;;
        *) echo "usage: scripts/dist.sh [--binary FILE] [--tool FILE] [--out DIR]" >&2; exit 2 ;;
    esac
done
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$top" log -1 --format=%ct)}
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
umask 022

. "$top/scripts/dist/about.sh"
name=assay-$version-${TARGET%%-*}-linux
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
rm -rf "$out"
mkdir -p "$out"

if [ -z "$binary" ]; then
    # Paths of this machine do not belong into the program; they would also make it differ from one machine to the next.
    flags="-C target-feature=+crt-static --remap-path-prefix=$top=/assay --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
    # Functions that are the same once, and relocations packed: a tenth of the size. Not every linker and C library can do either, so
    # a small program shows whether it links and starts (or only links, for another processor).
    for small in "-C link-arg=-Wl,--icf=all" "-C link-arg=-Wl,-z,pack-relative-relocs"; do
        # shellcheck disable=SC2086 # they are words
        if echo 'fn main() {}' | rustc --target "$TARGET" $flags $small -o "$work/probe" - 2>/dev/null &&
            { [ "${TARGET%%-*}" != "$(uname -m)" ] || "$work/probe"; }; then
            flags="$flags $small"
        else
            echo "left out, as this linker or C library cannot do it: $small" >&2
        fi
    done
    export RUSTFLAGS="$flags"
    (cd "$top" && "${CARGO:-cargo}" build --release --locked --package assay --target "$TARGET")
    binary=${CARGO_TARGET_DIR:-$top/target}/$TARGET/release/assay
fi
tool=${tool:-$binary}

cp "$binary" "$work/assay"
objcopy --only-keep-debug "$work/assay" "$out/$name.debug"
strip --strip-all "$work/assay"

root=$work/root
"$top/scripts/dist/stage.sh" "$work/assay" "$tool" "$root"
find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +

mkdir "$work/$name"
cp -a "$root/usr/." "$work/$name"
cp "$top/scripts/dist/install.sh" "$work/$name/install.sh"
tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C "$work" -cf - "$name" |
    gzip -9n >"$out/$name.tar.gz"
"$top/scripts/dist/deb.sh" "$root" "${TARGET%%-*}" "$out"
if command -v rpmbuild >/dev/null; then
    "$top/scripts/dist/rpm.sh" "$root" "${TARGET%%-*}" "$out"
else
    echo "no .rpm: rpmbuild is not installed" >&2
fi
python3 "$top/scripts/dist/spdx.py" "$top" "$TARGET" >"$out/assay-$version.spdx.json"
if command -v "${MATURIN:-maturin}" >/dev/null; then
    "$top/scripts/dist/wheel.sh" "$root/usr/bin/assay" "$out"
else
    echo "no Python wheel: maturin is not installed" >&2
fi
"$top/scripts/dist/recipes.sh" "$out/$name.tar.gz" "$out"
(cd "$out" && sha256sum -- * >SHA256SUMS)
echo "$out:" && ls -l "$out"
