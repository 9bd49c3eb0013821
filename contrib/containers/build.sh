#!/bin/sh
# Builds the images: assay, and assay:proxies with the six proxies.
#
# usage: build.sh --binary FILE [--engine docker|podman|buildah] [--context DIR] [assay] [proxies]
#
#   --binary FILE   the program; static, as `make dist` builds it
#   --engine NAME   what builds [default: the first that is installed]
#   --context DIR   keep the context there
#
# SNAPSHOT=20261125T000000Z takes Debian's packages as they were then; BASE names another image of Debian.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
usage() { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
binary='' engine='' context='' wanted=''
while [ $# -gt 0 ]; do
    case $1 in
        --binary) binary=${2:?--binary needs a file}; shift 2 ;;
        --engine) engine=${2:?--engine needs a name}; shift 2 ;;
        --context) context=${2:?--context needs a directory}; shift 2 ;;
        assay | proxies) wanted="$wanted $1"; shift ;;
        *) usage ;;
    esac
done
[ -n "$binary" ] || usage
if [ -z "$engine" ]; then
    for engine in docker podman buildah none; do
        command -v "$engine" >/dev/null && break
    done
    [ "$engine" != none ] || { echo "build.sh: none of docker, podman and buildah is installed" >&2; exit 1; }
fi
if [ -z "$context" ]; then
    context=$(mktemp -d)
    trap 'rm -rf "$context"' EXIT
    trap 'exit 130' INT TERM
fi
"$here/context.sh" "$binary" "$context"
for image in ${wanted:-assay proxies}; do
    case $image in
        assay) "$engine" build --tag assay --file "$context/Containerfile" "$context" ;;
        proxies)
            "$engine" build --tag assay:proxies --file "$context/Containerfile.proxies" --build-arg SNAPSHOT="${SNAPSHOT:-}" \
                ${BASE:+--build-arg BASE="$BASE"} "$context"
            ;;
    esac
done
