#!/bin/sh
# Installs what the tests can use beyond a Rust toolchain: six caching proxies (and hitch, for TLS to one of them), a NATS server, a browser, curl, Prometheus, valgrind, shells and
# man for completion and manual pages, rpm, h2spec (built with Go, if that is there), and a Python with pandas, polars and DuckDB in a virtual environment of its own (in the user's
# cache directory).
#
# Only where that is possible without asking: as root, on Debian and its relatives. Elsewhere it says what is
# missing, and the tests that need it say that they were skipped. Nothing that is already there is touched, and
# no service is started.
set -eu

# Debian keeps servers in /usr/sbin, which is not on everybody's PATH.
PATH="$PATH:/usr/sbin:/sbin"

# Where it cannot be built (without a network, say), its tests are skipped.
. "$(dirname "$0")/tools.sh"
go_tool h2spec github.com/summerwind/h2spec v2.2.1+incompatible github.com/summerwind/h2spec/cmd/h2spec

missing=""
for pair in varnishd:varnish hitch:hitch nginx:nginx squid:squid traffic_server:trafficserver haproxy:haproxy \
    apache2:apache2 chromium:chromium nats-server:nats-server prometheus:prometheus valgrind:valgrind curl:curl zsh:zsh fish:fish man:man-db \
    objcopy:binutils rpmbuild:rpm ip:iproute2 iptables:iptables unshare:util-linux; do
    command -v "${pair%%:*}" >/dev/null || missing="$missing ${pair##*:}"
done
# Readers of Parquet and of HdrHistogram's logs that share no code with us; what tests, checks and builds the package for Python.
python="${XDG_CACHE_HOME:-$HOME/.cache}/assay/python"
packages="duckdb==2.0.0 pandas==3.1.1 pyarrow==26.0.1 numpy==2.4.6 hdrhistogram==0.10.8 polars==2.1.0 pytest==9.2.0 mypy==2.4.1 maturin==1.16.0"
make_python() {
    [ "$(cat "$python/packages" 2>/dev/null)" = "$packages" ] && return 0
    # shellcheck disable=SC2086 # they are words
    if python3 -m venv --clear "$python" && "$python/bin/pip" install -q --disable-pip-version-check $packages; then
        echo "$packages" >"$python/packages"
    else
        rm -rf "$python"
        echo "no Python with pandas and DuckDB. Tests that need it are skipped." >&2
    fi
}
if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
    missing="$missing python3-venv"
fi

[ -n "$missing" ] || { make_python; exit 0; }

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "not installed:$missing. Tests that need them are skipped; as root on Debian they would be installed." >&2
    make_python
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
make_python
