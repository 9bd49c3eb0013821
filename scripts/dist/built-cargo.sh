#!/bin/sh
# Stands in for cargo where maturin is to make a wheel of a program that is built already ($ASSAY_BUILT): a build says that it has made
# that file, and everything else is done by cargo itself ($ASSAY_CARGO).
set -eu
for word in "$@"; do
    case $word in
        rustc | build)
            directory=$(cd "$(dirname "$0")/../../crates/bin/assay" && pwd)
            version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$directory/../../../Cargo.toml" | head -n 1)
            printf '{"reason":"compiler-artifact","package_id":"path+file://%s#%s","manifest_path":"%s/Cargo.toml",' \
                "$directory" "$version" "$directory"
            printf '"target":{"kind":["bin"],"crate_types":["bin"],"name":"assay","src_path":"%s/src/main.rs","edition":"2024",' "$directory"
            printf '"doc":true,"doctest":false,"test":true},"profile":{"opt_level":"3","debuginfo":0,"debug_assertions":false,'
            printf '"overflow_checks":false,"test":false},"features":[],"filenames":["%s"],"executable":"%s","fresh":true}\n' \
                "$ASSAY_BUILT" "$ASSAY_BUILT"
            printf '{"reason":"build-finished","success":true}\n'
            exit
            ;;
        # Crates for other systems do not have to be there.
        metadata) set -- "$@" --filter-platform "${TARGET:-$(uname -m)-unknown-linux-gnu}" && break ;;
        --version | -vV) break ;;
    esac
done
exec "$ASSAY_CARGO" "$@"
