#!/bin/sh
# Writes what installs a published tarball by a package manager: a Homebrew formula (assay.rb) and an AUR package (PKGBUILD). Both name
# the tarball of this version where the project publishes it, with its checksum. The Nix flake is not written: it reads Cargo.toml itself.
#
# usage: recipes.sh TARBALL OUT
set -eu
tarball=$1 out=$2
top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/scripts/dist/about.sh"

file=${tarball##*/}
directory=${file%.tar.gz}
machine=${directory#"assay-$version-"}
machine=${machine%-linux}
checksum=$(sha256sum "$tarball" | cut -d ' ' -f 1)
url=$homepage/releases/download/v$version/$file
case $machine in aarch64) processor=arm64 ;; *) processor=$machine ;; esac
# Homebrew's style asks for a description that does not begin with a capital verb form of the third person, nor end with a stop.
short=$(echo "$summary" | sed 's/^Measures/Measure/')
# "MIT OR Apache-2.0" is any_of: ["MIT", "Apache-2.0"] there.
ruby_licence="any_of: [\"$(echo "$licence" | sed 's/ OR /", "/g')\"]"

cat >"$out/assay.rb" <<END
class Assay < Formula
  desc "$short"
  homepage "$homepage"
  url "$url"
  version "$version"
  sha256 "$checksum"
  license $ruby_licence

  depends_on arch: :$processor
  depends_on :linux

  def install
    # Units name the program where packages of distributions put it.
    inreplace Dir["lib/systemd/system/assay-*.service"], "/usr/bin/assay", opt_bin/"assay"
    bin.install "bin/assay"
    man1.install Dir["share/man/man1/*"]
    bash_completion.install "share/bash-completion/completions/assay"
    zsh_completion.install "share/zsh/site-functions/_assay"
    fish_completion.install "share/fish/vendor_completions.d/assay.fish"
    doc.install Dir["share/doc/assay/*"]
    (lib/"systemd/system").install Dir["lib/systemd/system/*"]
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/assay --version")
    system bin/"assay", "check", "demo"
  end
end
END

cat >"$out/PKGBUILD" <<END
# Maintainer: $maintainer
pkgname=assay-bin
pkgver=$version
pkgrel=1
pkgdesc='$summary'
arch=('$machine')
url='$homepage'
license=('$licence')
provides=('assay')
conflicts=('assay')
optdepends=('varnish: as a proxy under test' 'nginx: as a proxy under test' 'squid: as a proxy under test'
            'haproxy: as a proxy under test' 'apache: as a proxy under test' 'nats-server: runs on several machines')
options=('!strip')
source=('$url')
sha256sums=('$checksum')

package() {
    cd '$directory'
    install -d "\$pkgdir/usr"
    cp -r --no-preserve=ownership bin lib share "\$pkgdir/usr"
    install -d "\$pkgdir/usr/share/licenses/\$pkgname"
    mv "\$pkgdir"/usr/share/doc/assay/LICENSE-* "\$pkgdir/usr/share/licenses/\$pkgname"
}
END
