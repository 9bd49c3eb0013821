#!/bin/sh
# Builds the site in target/site and checks it (scripts/site/book.py). The gallery has what `scripts/gallery.sh` has made.
set -eu
cd "$(dirname "$0")/.."
for tool in python3 mdbook; do
    command -v "$tool" >/dev/null || { echo "the site needs $tool (mdbook: cargo install mdbook)" >&2; exit 2; }
done
exec python3 -B scripts/site/book.py "$@"
