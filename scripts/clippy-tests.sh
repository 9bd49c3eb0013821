#!/bin/sh
# Compiles a crate of ours for tests: with Clippy, but for the library that other crates are linked with. Clippy reads its code in the unit
# tests as well, and turns off optimisations of the compiler's own: with it, libraries take an eighth longer to build, and more to run.
# Test programs are not optimised, whatever their crate is: that takes longer than they run.
# Usage: RUSTC_WORKSPACE_WRAPPER=scripts/clippy-tests.sh cargo test
case " $* " in
*" --crate-type lib "*) exec "$@" -D warnings ;;
*) exec clippy-driver "$@" -C opt-level=0 ;;
esac
