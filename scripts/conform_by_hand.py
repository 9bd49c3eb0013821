#!/usr/bin/env python3
"""Repeats failures of real proxies by hand: with curl, or bytes on a socket, against bare installations, and without Assay.

Each proxy runs with the shortest configuration that makes it a caching reverse proxy, in front of an origin of a few lines, both on
loopback. A check sends a few requests and says what must be seen of the failure. `--markdown` prints the table of
docs/explanation/conformance-by-hand.md. Exit status 1: something else was seen than the page says. Proxies that are not installed are
left out. Products drop their privileges by themselves, so it runs as root, as in a container.

Usage: conform_by_hand.py [--markdown] [PRODUCT...]
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

MODULES = "/usr/lib/apache2/modules"
CHECKS = []


class Origin:
    """Responds to each path with what a check has put there, and keeps the requests."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.responses, self.requests = {}, []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            connection, _ = self.socket.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        """One request on each connection, with its body as far as it has come."""
        with connection:
            connection.settimeout(5)
            try:
                received = connection.recv(65536)
                while b"\r\n\r\n" not in received:
                    received += connection.recv(65536)
                connection.settimeout(0.2)
                try:
                    while more := connection.recv(65536):
                        received += more
                except TimeoutError:
                    pass
                path = received.split()[1].decode()
                self.requests.append((path, received.decode("latin1")))
                response = self.responses.get(path.split("?")[0], b"Cache-Control: max-age=3600")
                response = response(received) if callable(response) else response
                if response.startswith(b"raw:"):
                    response = response[4:]
                else:
                    body = b"response %d" % len(self.reached(path))
                    date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime()).encode()
                    head = b"HTTP/1.1 200 OK\r\nDate: %s\r\n%s\r\nContent-Length: %d" % (date, response, len(body))
                    response = head + b"\r\n\r\n" + body
                if b"\r\nConnection:" not in response.partition(b"\r\n\r\n")[0]:
                    response = response.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
                connection.sendall(response)
            except (OSError, IndexError):
                pass

    def reached(self, path):
        return [text for target, text in self.requests if target == path]


class Trial:
    """A proxy in front of an origin, what is sent to it, and how that is written for readers."""

    def __init__(self, origin, port):
        self.origin, self.port, self.sent = origin, port, []

    def respond(self, path, response):
        self.origin.responses[path] = response

    def reached(self, path):
        return self.origin.reached(path)

    def curl(self, path, *arguments):
        self.sent.append("curl " + " ".join(f"'{one}'" if " " in one or '"' in one else one for one in (*arguments, path)))
        url = f"http://127.0.0.1:{self.port}{path}"
        command = ["curl", "-sS", "-i", "-m", "5", "-H", "Host: a.example", *arguments, url]
        done = subprocess.run(command, capture_output=True, check=False)
        return done.stdout.decode("latin1") + done.stderr.decode("latin1")

    def raw(self, data, wait=1.5):
        text = data.decode("latin1").encode("unicode_escape").decode()
        self.sent.append(f"printf '{text}'")
        with socket.create_connection(("127.0.0.1", self.port)) as client:
            client.sendall(data)
            client.settimeout(wait)
            received = b""
            try:
                while more := client.recv(65536):
                    received += more
            except TimeoutError:
                pass
            except OSError:
                pass
        return received.decode("latin1")

    def wait(self, seconds):
        self.sent.append(f"sleep {seconds}")
        time.sleep(seconds)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as chosen:
        return chosen.getsockname()[1]


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def varnish(place, port, origin, *arguments):
    return ["varnishd", "-F", "-n", f"{place}/v", "-a", f"127.0.0.1:{port}", "-b", f"127.0.0.1:{origin}", "-s", "malloc,16m", *arguments]


def nginx(place, port, origin):
    paths = " ".join(f"{name}_temp_path {place}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    write(
        f"{place}/conf",
        f"daemon off; pid {place}/pid; events {{}}\n"
        f"http {{ access_log off; {paths} proxy_cache_path {place}/cache keys_zone=c:1m;\n"
        f"server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://127.0.0.1:{origin}; proxy_cache c; }} }} }}\n",
    )
    return ["nginx", "-p", place, "-c", f"{place}/conf", "-e", f"{place}/error"]


def squid(place, port, origin, option=""):
    write(
        f"{place}/conf",
        f"http_port 127.0.0.1:{port} accel vhost\n"
        f"cache_peer 127.0.0.1 parent {origin} 0 no-query no-digest originserver {option}\n"
        f"http_access allow all\ncache_mem 16 MB\ncache_log {place}/log\npid_filename {place}/pid\npinger_enable off\nshutdown_lifetime 0 seconds\n",
    )
    return ["squid", "-n", f"hand{port}", "-f", f"{place}/conf", "-N"]


def haproxy(place, port, origin, bind=""):
    write(
        f"{place}/conf",
        "defaults\n mode http\n timeout connect 5s\n timeout client 30s\n timeout server 30s\n"
        "cache store\n total-max-size 16\n max-age 7200\n process-vary on\n"
        f"frontend in\n bind 127.0.0.1:{port} {bind}\n http-request cache-use store\n http-response cache-store store\n"
        f" default_backend out\nbackend out\n server s 127.0.0.1:{origin}\n",
    )
    return ["haproxy", "-f", f"{place}/conf", "-db"]


def httpd(place, port, origin):
    modules = ["mpm_event", "authz_core", "proxy", "proxy_http", "cache", "cache_disk"]
    os.mkdir(f"{place}/cache")
    os.chmod(f"{place}/cache", 0o777)
    write(
        f"{place}/conf",
        "".join(f"LoadModule {name}_module {MODULES}/mod_{name}.so\n" for name in modules)
        + f"ServerRoot {place}\nServerName hand\nPidFile {place}/pid\nMutex file:{place} default\nErrorLog {place}/error\n"
        + ("User www-data\nGroup www-data\n" if os.getuid() == 0 else "")
        + f"Listen 127.0.0.1:{port}\nCacheRoot {place}/cache\nCacheEnable disk /\nCacheIgnoreNoLastMod On\n"
        + f"ProxyPass / http://127.0.0.1:{origin}/\nProxyPreserveHost On\n",
    )
    return ["apache2", "-f", f"{place}/conf", "-DFOREGROUND"]


def trafficserver(place, port, origin, option=""):
    for name in ("log", "run", "cache", "etc"):
        os.mkdir(f"{place}/{name}")
        os.chmod(f"{place}/{name}", 0o777)
    write(
        f"{place}/runroot.yaml",
        f"prefix: {place}\nexec_prefix: {place}\nbindir: /usr/bin\nsbindir: /usr/bin\nsysconfdir: {place}/etc\ndatadir: {place}/cache\n"
        f"includedir: /usr/include\nlibdir: /usr/lib/trafficserver\nlibexecdir: /usr/lib/trafficserver/modules\n"
        f"localstatedir: {place}/run\nruntimedir: {place}/run\nlogdir: {place}/log\ncachedir: {place}/cache\n",
    )
    write(
        f"{place}/etc/records.config",
        f"CONFIG proxy.config.http.server_ports STRING {port}:ip-in=127.0.0.1\n"
        "CONFIG proxy.config.url_remap.pristine_host_hdr INT 1\nCONFIG proxy.config.http.wait_for_cache INT 2\n"
        "CONFIG proxy.config.admin.user_id STRING trafficserver\n"
        f"CONFIG proxy.config.crash_log_helper STRING NULL\n{option}\n",
    )
    write(f"{place}/etc/remap.config", f"map / http://127.0.0.1:{origin}/\n")
    write(f"{place}/etc/storage.config", f"{place}/cache 64M\n")
    write(f"{place}/etc/ip_allow.yaml", "ip_allow:\n  - apply: in\n    ip_addrs: [0/0]\n    action: allow\n    methods: ALL\n")
    return ["traffic_server", f"--run-root={place}"]


def check(product, case, says, *options):
    """A check of a product: a function that tells whether the failure was seen, and what the page says of it."""

    def added(function):
        CHECKS.append((product, case, says, options, function))
        return function

    return added


def stored(trial, path, first=(), second=()):
    """Two requests; true if the second one did not reach the origin."""
    trial.curl(path, *first)
    time.sleep(1)
    trial.curl(path, *second)
    return len(trial.reached(path)) == 1


CHUNKED_1_0 = (
    b"POST /a HTTP/1.0\r\nHost: a.example\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5\r\nhello\r\n0\r\n\r\nGET /next HTTP/1.1\r\nHost: a.example\r\n\r\n"
)


@check("varnish", "chunked-in-http10", "The origin gets the POST with its body hello, and then GET /next: the connection goes on")
@check("squid", "chunked-in-http10", "The origin gets the POST with its body hello, and then GET /next: the connection goes on")
@check("httpd", "chunked-in-http10", "The origin gets the POST with its body hello, and then GET /next: the connection goes on")
def _(trial):
    trial.raw(CHUNKED_1_0, 2)
    return "hello" in "".join(trial.reached("/a")) and trial.reached("/next")


@check("squid", "gateway-error", "The origin sends `this is not HTTP`; the client gets it with status 200")
@check("httpd", "gateway-error", "The origin sends `this is not HTTP`; the client gets it with status 200")
def _(trial):
    trial.respond("/a", b"raw:this is not HTTP\r\n\r\n")
    response = trial.curl("/a")
    return response.startswith("HTTP/1.1 200") and "this is not HTTP" in response


@check("nginx", "gateway-error", "The origin sends `this is not HTTP`; the client gets these bytes, without a status line")
def _(trial):
    trial.respond("/a", b"raw:this is not HTTP\r\n\r\n")
    return trial.curl("/a", "--http0.9").startswith("this is not HTTP")


@check("varnish", "interim", "The origin sends 103 and then 200; the client gets 503")
def _(trial):
    trial.respond("/a", b"raw:HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    return trial.curl("/a").startswith("HTTP/1.1 503")


@check("varnish", "chunked-request/extension", "The client gets 503: the body with a chunk extension cannot be read")
def _(trial):
    request = b"POST /a HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\n\r\n"
    return trial.raw(request).startswith("HTTP/1.1 503")


@check("varnish", "response-bad-length", "The origin sends `Content-Length: 5` and `Content-Length: 3`; the client gets both")
def _(trial):
    trial.respond("/a", b"raw:HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 3\r\n\r\nhello")
    response = trial.raw(b"GET /a HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n")
    return "Content-Length: 5" in response and "Content-Length: 3" in response


@check("httpd", "response-bad-length", "The origin sends `Content-Length: 5` and `Content-Length: 3`; the client gets status 200 and the first")
def _(trial):
    trial.respond("/a", b"raw:HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 3\r\n\r\nhello")
    response = trial.curl("/a")
    return response.startswith("HTTP/1.1 200") and "Content-Length: 5" in response


@check("varnish", "invalid-expires", "The origin sends `Expires: 0`; the second response comes from the store")
def _(trial):
    trial.respond("/a", b"Expires: 0")
    return stored(trial, "/a")


@check("varnish", "vary-star", "The origin sends `Vary: *, X-Kind`; the second response comes from the store")
def _(trial):
    trial.respond("/a", b"Cache-Control: max-age=3600\r\nVary: *, X-Kind")
    return stored(trial, "/a")


@check("varnish", "range-only-for-get", "The HEAD gets 206")
@check("httpd", "range-only-for-get", "The HEAD gets 206")
@check("squid", "range-only-for-get", "The HEAD gets 206")
def _(trial):
    trial.curl("/a")
    time.sleep(1)
    return trial.curl("/a", "-I", "-H", "Range: bytes=0-3").startswith("HTTP/1.1 206")


def keeps_after(method):
    def kept(trial):
        trial.curl("/a")
        time.sleep(1)
        trial.curl("/a", "-X", method, "-d", "x")
        trial.curl("/a")
        return [text.split()[0] for text in trial.reached("/a")] == ["GET", method]

    return kept


check("varnish", "invalidates", "Two requests reach the origin, GET and POST; the last GET is served from the store")(keeps_after("POST"))
check("nginx", "invalidates", "Two requests reach the origin, GET and POST; the last GET is served from the store")(keeps_after("POST"))
check("httpd", "invalidates-patch", "Two requests reach the origin, GET and PATCH; the last GET is served from the store")(keeps_after("PATCH"))


@check("nginx", "age-sent", "The second response comes from the store, without `Age`")
def _(trial):
    trial.curl("/a")
    time.sleep(1)
    return "\r\nage:" not in trial.curl("/a").lower() and len(trial.reached("/a")) == 1


@check("nginx", "age-of-origin-counts", "The origin sends `Age: 7200` and `max-age=3600`; the second response comes from the store")
def _(trial):
    trial.respond("/a", b"Cache-Control: max-age=3600\r\nAge: 7200")
    return stored(trial, "/a")


@check("nginx", "max-age-as-part-of-a-name", "The origin sends `x-max-age=3600, max-age=0`; the second response comes from the store")
def _(trial):
    trial.respond("/a", b"Cache-Control: x-max-age=3600, max-age=0")
    return stored(trial, "/a")


@check("nginx", "authorization", "The second response, without credentials, comes from the store")
@check("trafficserver", "authorization", "The second response, without credentials, comes from the store")
def _(trial):
    return stored(trial, "/a", ("-H", "Authorization: Basic dXNlcjpwYXNz"))


@check("nginx", "connection-not-forwarded", "`X-Hop: secret` reaches the origin")
@check("haproxy", "connection-not-forwarded", "`X-Hop: secret` reaches the origin")
@check("trafficserver", "connection-not-forwarded", "`X-Hop: secret` reaches the origin")
def _(trial):
    trial.curl("/a", "-H", "Connection: X-Hop", "-H", "X-Hop: secret")
    return "secret" in trial.reached("/a")[0]


@check("nginx", "response-bad-length", "The origin sends `Content-Length: abc`; the client gets status 200 and a body of unknown length")
def _(trial):
    trial.respond("/a", b"raw:HTTP/1.1 200 OK\r\nContent-Length: abc\r\n\r\nhello")
    response = trial.curl("/a")
    return response.startswith("HTTP/1.1 200") and "Content-Length" not in response


@check("squid", "no-store-response/upper-case", "The origin sends `NO-STORE, max-age=3600`; the second response comes from the store")
def _(trial):
    trial.respond("/a", b"Cache-Control: NO-STORE, max-age=3600")
    return stored(trial, "/a")


@check("squid", "host-twice", "The request reaches the origin, with the first Host")
def _(trial):
    trial.raw(b"GET /a HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n")
    return "Host: a.example" in trial.reached("/a")[0]


@check("squid", "304-from-store-has", "The 304 from the store has no `ETag`")
def _(trial):
    trial.respond("/a", b'Cache-Control: max-age=3600\r\nETag: "v1"')
    trial.curl("/a")
    time.sleep(1)
    response = trial.curl("/a", "-H", 'If-None-Match: "v1"')
    return response.startswith("HTTP/1.1 304") and "etag" not in response.lower()


def weak_tag(trial):
    trial.respond("/a", b'Cache-Control: max-age=1\r\nETag: W/"v1"')
    trial.curl("/a")
    trial.wait(3)
    trial.curl("/a")
    return trial.reached("/a")[1]


@check("squid", "validation-keeps-the-tag", 'The origin sends `ETag: W/"v1"`; the second request that it gets has no `If-None-Match`')
def _(trial):
    return "If-None-Match" not in weak_tag(trial)


@check("trafficserver", "validation-keeps-the-tag", 'The origin sends `ETag: W/"v1"`; the second request that it gets has `If-None-Match: "v1"`')
def _(trial):
    return 'If-None-Match: "v1"' in weak_tag(trial)


@check("haproxy", "host-missing", "The request reaches the origin, without Host")
def _(trial):
    trial.raw(b"GET /a HTTP/1.1\r\nX-A: b\r\n\r\n")
    return "host:" not in trial.reached("/a")[0].lower()


@check("trafficserver", "host-missing", "The request reaches the origin")
def _(trial):
    trial.raw(b"GET /a HTTP/1.1\r\nX-A: b\r\n\r\n")
    return trial.reached("/a")


@check("haproxy", "control-in-value/nul", "The NUL reaches the origin")
def _(trial):
    trial.raw(b"GET /a HTTP/1.1\r\nHost: a.example\r\nX-Odd: a\0b\r\n\r\n")
    return "a\0b" in trial.reached("/a")[0]


@check("haproxy", "age-of-origin-counts", "The origin sends `max-age=3602` and `Age: 3601`; the second response comes from the store with `Age: 3604`")
def _(trial):
    trial.respond("/a", b"Cache-Control: max-age=3602\r\nAge: 3601")
    trial.curl("/a")
    trial.wait(3)
    return "age: 3604" in trial.curl("/a") and len(trial.reached("/a")) == 1


@check("haproxy", "http10-client", "The origin sends a chunked body; the client of HTTP/1.0 gets it chunked")
def _(trial):
    trial.respond("/a", b"raw:HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
    return "5\r\nhello" in trial.raw(b"GET /a HTTP/1.0\r\nHost: a.example\r\n\r\n")


@check("haproxy", "private-field-is-not-shared", 'The origin sends `private="X-Own"` and `X-Own: first`; the second response has it, from the store')
def _(trial):
    trial.respond("/a", b'Cache-Control: private="X-Own", max-age=3600\r\nX-Own: first')
    trial.curl("/a")
    time.sleep(1)
    return "x-own: first" in trial.curl("/a").lower() and len(trial.reached("/a")) == 1


def frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


@check("haproxy", "http2-body-reaches-origin", "A POST over HTTP/2 whose last DATA has three bytes of padding; behind the response comes GOAWAY with PROTOCOL_ERROR", "proto h2")
def _(trial):
    fields = [(b":method", b"POST"), (b":scheme", b"http"), (b":authority", b"a.example"), (b":path", b"/a")]
    block = b"".join(b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value for name, value in fields)
    received = trial.raw(
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        + frame(4, 0, 0, b"")
        + frame(1, 4, 1, block)
        + frame(0, 9, 1, b"\x03world\0\0\0")
        + frame(6, 0, 0, b"12345678")
    )
    trial.sent = ["HEADERS, DATA (PADDED, END_STREAM), PING"]
    return "\x07\0" + "\0\0\0\0" + "\0\0\0\x01" + "\0\0\0\x01" in received


@check("httpd", "key-not-normalised-differently", "The second response comes from the store, although the origin got the target /a?")
def _(trial):
    trial.curl("/a?")
    time.sleep(1)
    trial.curl("/a")
    return [path for path, _ in trial.origin.requests] == ["/a?"]


@check("httpd", "age-overflow", "The origin sends an `Age` of 20 digits; the second response comes from the store with `Age: 0` or a little more")
def _(trial):
    trial.respond("/a", b"Cache-Control: max-age=3600\r\nAge: 99999999999999999999")
    return stored(trial, "/a")


@check("httpd", "via-to-origin", "The request that the origin gets has no `Via`")
def _(trial):
    trial.curl("/a")
    return "Via:" not in trial.reached("/a")[0]


@check("trafficserver", "stale-while-reachable", "The origin sends `s-maxage=1`; the second response comes from the store")
def _(trial):
    trial.respond("/a", b"Cache-Control: s-maxage=1")
    trial.curl("/a")
    trial.wait(3)
    trial.curl("/a", "-H", "Cache-Control: max-stale=3600")
    return len(trial.reached("/a")) == 1


@check("trafficserver", "vary-two-lines", "The origin sends `Vary: X-Kind` and `Vary: X-Sort`; the second response comes from the store")
def _(trial):
    trial.respond("/a", b"Cache-Control: max-age=3600\r\nVary: X-Kind\r\nVary: X-Sort")
    return stored(trial, "/a", ("-H", "X-Kind: a", "-H", "X-Sort: 1"), ("-H", "X-Kind: a", "-H", "X-Sort: 2"))


def encodings(trial):
    trial.respond("/a", b"Cache-Control: max-age=3600\r\nVary: Accept-Encoding")
    return stored(trial, "/a", ("-H", "Accept-Encoding: gzip"), ("-H", "Accept-Encoding: br"))


STRICT = "CONFIG proxy.config.http.cache.ignore_accept_encoding_mismatch INT 0"
check("trafficserver", "vary-differs", "The origin sends `Vary: Accept-Encoding`; the second response comes from the store")(encodings)
check("trafficserver", "vary-differs", "The same with `ignore_accept_encoding_mismatch` 0: the second request reaches the origin", STRICT)(
    lambda trial: not encodings(trial)
)
LENGTH_AND_CODING = (
    b"POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"0\r\n\r\nGET /next HTTP/1.1\r\nHost: a.example\r\n\r\n"
)


@check("squid", "length-and-coding-closes", "The origin gets the POST, and then GET /next: the connection goes on")
@check("trafficserver", "length-and-coding-closes", "The origin gets the POST, and then GET /next: the connection goes on")
def _(trial):
    trial.raw(LENGTH_AND_CODING, 2)
    return trial.reached("/next")


@check("squid", "authorization-forwarded", "Without `login=PASSTHRU`, the request that the origin gets has no `Authorization` (Assay's description has it)")
def _(trial):
    trial.curl("/a", "-H", "Authorization: Basic dXNlcjpwYXNz")
    return "Authorization" not in trial.reached("/a")[0]


PRODUCTS = {
    "varnish": (varnish, "varnishd"),
    "nginx": (nginx, "nginx"),
    "squid": (squid, "squid"),
    "haproxy": (haproxy, "haproxy"),
    "httpd": (httpd, "apache2"),
    "trafficserver": (trafficserver, "traffic_server"),
}


def tried(product, options, function):
    """Starts the product, runs the check, and stops what was started; whether the failure was seen, and what was sent."""
    place = tempfile.mkdtemp(prefix=f"by-hand-{product}-")
    os.chmod(place, 0o777)
    origin, port = Origin(), free_port()
    command = PRODUCTS[product][0](place, port, origin.port, *options)
    with open(f"{place}/output", "wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        until = time.monotonic() + 60
        trial = Trial(origin, port)
        # Until it responds: some products listen before they serve.
        protocol = ("--http2-prior-knowledge",) if "proto h2" in options else ()
        while not trial.curl("/ready", "-m", "1", *protocol).startswith("HTTP/"):
            if process.poll() is not None or time.monotonic() > until:
                with open(f"{place}/output", encoding="utf-8", errors="replace") as output:
                    sys.exit(f"{product} did not start: {output.read()[-2000:]}")
            time.sleep(0.2)
        trial.sent.clear()
        origin.requests.clear()
        return bool(function(trial)), trial.sent
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(place, ignore_errors=True)


def main(arguments):
    markdown = "--markdown" in arguments
    chosen = [one for one in arguments if not one.startswith("--")] or list(PRODUCTS)
    wrong = 0
    if markdown:
        print("| product | case | sent | seen |\n|---|---|---|---|")
    for product in chosen:
        if shutil.which(PRODUCTS[product][1]) is None:
            print(f"{product} is not installed: left out", file=sys.stderr)
            continue
        for own, case, says, options, function in CHECKS:
            if own != product:
                continue
            seen, sent = tried(product, options, function)
            wrong += not seen
            if markdown:
                commands = "<br>".join("`" + one.replace("|", "\\|") + "`" for one in sent)
                print(f"| {product} | `{case}` | {commands} | {says if seen else '**not seen**'} |", flush=True)
            else:
                print(f"{'seen    ' if seen else 'NOT SEEN'} {product} {case}: {says}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
