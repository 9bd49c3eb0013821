#!/bin/sh
# Points a list of sources to Debian's archive of snapshots, which images of Debian name in comments there, at a time like
# 20261125T000000Z.
#
# usage: snapshot.sh SOURCES TIME
set -eu
sources=$1 at=$2
awk -v at="$at" '
    /^# .*\/archive\/.*\/[0-9]+T[0-9]+Z$/ { sub(/[0-9]+T[0-9]+Z$/, at); url = $2; next }
    /^URIs:/ && url { print "URIs: " url; print "Check-Valid-Until: no"; url = ""; changed = 1; next }
    { print }
    END { exit !changed }' "$sources" >"$sources.new" || {
    rm -f "$sources.new"
    echo "snapshot.sh: $sources does not name an archive of snapshots, so SNAPSHOT cannot be followed" >&2
    exit 1
}
mv "$sources.new" "$sources"
