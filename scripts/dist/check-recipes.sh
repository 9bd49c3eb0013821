#!/bin/sh
# Checks what recipes.sh wrote, with the tools that are installed: the AUR package is built by makepkg, the formula is run against the
# tarball by a stand-in for Homebrew, and the flake is evaluated with a stand-in for nixpkgs. All must agree with Cargo.toml. A tool that
# is not installed is named, and its check is left out. On Debian: apt-get install makepkg pacman-package-manager libarchive-tools
# fakeroot ruby nix-bin.
#
# usage: check-recipes.sh DIST
set -eu
dist=$(cd "$1" && pwd)
top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/scripts/dist/about.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
chmod 755 "$work"
tarball=$(ls "$dist"/*.tar.gz)

has() {
    for tool in "$@"; do
        command -v "$tool" >/dev/null || { echo "not checked: $what (no $tool)"; return 1; }
    done
}
fail() { echo "check-recipes: $*" >&2; exit 1; }
agrees() { grep -qF -- "$2" "$1" || fail "${1##*/} does not have: $2"; }

for recipe in PKGBUILD assay.rb; do
    agrees "$dist/$recipe" "$homepage/releases/download/v$version/${tarball##*/}"
    agrees "$dist/$recipe" "$(sha256sum "$tarball" | cut -d ' ' -f 1)"
done

what=PKGBUILD
bash -n "$dist/PKGBUILD"
if has makepkg pacman bsdtar fakeroot; then
    mkdir "$work/aur"
    cp "$dist/PKGBUILD" "$tarball" "$work/aur"
    build='cd "$1" && HOME=$1 PKGEXT=.pkg.tar makepkg --nodeps'
    # makepkg refuses to run as root.
    if [ "$(id -u)" -eq 0 ]; then
        chown -R nobody "$work/aur"
        setpriv --reuid=nobody --clear-groups sh -euc "$build" sh "$work/aur" >"$work/log" 2>&1 || { cat "$work/log"; fail "makepkg"; }
    else
        sh -euc "$build" sh "$work/aur" >"$work/log" 2>&1 || { cat "$work/log"; fail "makepkg"; }
    fi
    bsdtar -tf "$work/aur/assay-bin-$version-1-$(uname -m).pkg.tar" >"$work/files"
    for file in usr/bin/assay usr/share/man/man1/assay.1.gz usr/share/licenses/assay-bin/LICENSE-MIT; do
        grep -qx "$file" "$work/files" || fail "the AUR package does not have $file"
    done
    ! grep -q install.sh "$work/files" || fail "the AUR package has the install script"
    echo "PKGBUILD: $(wc -l <"$work/files") paths, built by makepkg"
fi

what=assay.rb
if has ruby; then
    mkdir "$work/brew"
    tar -C "$work/brew" -xzf "$tarball"
    ruby "$top/scripts/dist/formula_check.rb" "$dist/assay.rb" "$work"/brew/* "$work/cellar" "$version"
fi

what=flake.nix
if has nix-instantiate; then
    # Neither a store nor a daemon is needed to evaluate.
    NIX_STATE_DIR=$work/nix nix-instantiate --store dummy:// --eval --strict --json --argstr top "$top" "$top/scripts/dist/flake_check.nix" \
        >"$work/flake.json" 2>"$work/log" || { cat "$work/log"; fail "nix-instantiate"; }
    for value in "\"version\":\"$version\"" "\"description\":\"$summary\"" "\"homepage\":\"$homepage\""; do
        agrees "$work/flake.json" "$value"
    done
    echo "flake.nix: evaluates to a package of version $version"
fi
