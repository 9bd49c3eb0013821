#!/bin/sh
# Installs the proxies of `versions` in an image of Debian, and makes the user that Assay runs as.
#
# Debian's mirrors have the latest version of a package only. When one of these is no longer there, set SNAPSHOT to a time at which it was
# (20261125T000000Z): then packages come from the archive of snapshots, which images of Debian name in comments of their lists of sources.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
export DEBIAN_FRONTEND=noninteractive

if [ -n "${SNAPSHOT:-}" ]; then "$here/snapshot.sh" /etc/apt/sources.list.d/debian.sources "$SNAPSHOT"; fi

# No service is started.
if [ ! -e /usr/sbin/policy-rc.d ]; then
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
    chmod 755 /usr/sbin/policy-rc.d
fi
apt-get update -qq
# shellcheck disable=SC2046 # they are words
apt-get install -y -qq --no-install-recommends $(cat "$here/versions") >/dev/null || {
    echo "install.sh: cannot install the versions that $here/versions names; if they are not to be had any more, set SNAPSHOT to a time at" \
        "which they were, or renew them" >&2
    exit 1
}
rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb
useradd --uid 65532 --user-group --home-dir /work --create-home --shell /usr/sbin/nologin assay
# Another user may be named when the image is run.
chmod 1777 /work
