#!/bin/sh
# Lays out the files of an installation below ROOT, as all packages have them.
#
# usage: stage.sh BINARY TOOL ROOT
set -eu
binary=$1 tool=$2 root=$3
top=$(cd "$(dirname "$0")/../.." && pwd)
share=$root/usr/share
doc=$share/doc/assay

install -D -m 755 "$binary" "$root/usr/bin/assay"
"$tool" man --dir "$share/man/man1" >/dev/null
gzip -9n "$share"/man/man1/*.1

complete() {
    mkdir -p "$(dirname "$2")"
    "$tool" completions "$1" >"$2"
}
complete bash "$share/bash-completion/completions/assay"
complete zsh "$share/zsh/site-functions/_assay"
complete fish "$share/fish/vendor_completions.d/assay.fish"

install -D -m 644 -t "$root/usr/lib/systemd/system" "$top"/contrib/systemd/*.service
install -D -m 644 -t "$doc" "$top/README.md" "$top/CHANGELOG.md" "$top/LICENSE-MIT" "$top/LICENSE-APACHE"
for examples in workloads proxies experiments clusters; do
    install -D -m 644 -t "$doc/examples/$examples" "$top/$examples"/*
done
