#!/bin/sh
# Generates the tree-sitter parser of PGL from contrib/tree-sitter-pgl/grammar.js. What is generated is part of the repository, as editors
# compile it; a test holds it against the compiler, and against the grammar that it was generated from.
set -eu
cd "$(dirname "$0")/../contrib/tree-sitter-pgl"
command -v tree-sitter >/dev/null || { echo "needs tree-sitter: cargo install tree-sitter-cli" >&2; exit 2; }
tree-sitter generate
sha256sum grammar.js >src/grammar.sha256
