#!/bin/sh
# Do two builds of Assay say the same, field by field? (scripts/same_documents says what is compared, and how.)
set -eu
command -v python3 >/dev/null || { echo "same-documents needs python3" >&2; exit 2; }
exec python3 -B "$(dirname "$0")/same_documents" "$@"
