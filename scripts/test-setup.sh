#!/bin/sh
# Installs what the tests can use beyond a Rust toolchain: six caching proxies, and a browser.
#
# Only where that is possible without asking: as root, on Debian and its relatives. Elsewhere it says what is
# missing, and the tests that need it say that they were skipped. Nothing that is already there is touched, and
# no service is started.
set -eu

# Debian keeps servers in /usr/sbin, which is not on everybody's PATH.
PATH="$PATH:/usr/sbin:/sbin"

missing=""
for pair in varnishd:varnish nginx:nginx squid:squid traffic_server:trafficserver haproxy:haproxy \
    apache2:apache2 chromium:chromium; do
    command -v "${pair%%:*}" >/dev/null || missing="$missing ${pair##*:}"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "not installed:$missing. Tests that need them are skipped; as root on Debian they would be installed." >&2
    exit 0
fi

# Packages start their services when they are installed, unless this file says no (101: not allowed).
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
    trap 'rm -f "$policy"' EXIT INT TERM
fi

export DEBIAN_FRONTEND=noninteractive
if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing >/dev/null; }; then
    echo "could not install:$missing. Tests that need them are skipped." >&2
fi
