#!/bin/sh
# Checks Assay by means that are not its own (scripts/verify says what and how), with the Python of scripts/test-setup.sh.
set -eu
cd "$(dirname "$0")/.."
python="${ASSAY_PYTHON:-${XDG_CACHE_HOME:-$HOME/.cache}/assay/python/bin/python}"
if [ ! -x "$python" ]; then
    echo "there is no Python with pandas at $python: scripts/test-setup.sh makes one" >&2
    exit 2
fi
exec "$python" -B scripts/verify "$@"
