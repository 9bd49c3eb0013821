"""The commands that faults are injected into: what is typed, what must be there before, and who talks to them."""

import http.client
import http.server
import threading

PROXIES = ["builtin", "varnish", "nginx", "squid", "haproxy", "httpd"]
EXPERIMENT = """title = "torture"
workloads = ["demo"]
repetitions = 1
rehearse = "2s"
[[proxy]]
name = "builtin"
[[proxy]]
name = "nginx"
"""


class Command:
    """One command. `record` is the directory that it writes, if `assay report` reads it."""

    def __init__(self, name, takes_s, prepare, clients=None, record=None):
        self.name, self.takes_s, self.prepare, self.record = name, takes_s, prepare, record
        self.clients = clients or (lambda: lambda: None)


def run(assay, chance):
    proxy = chance.choice(PROXIES)
    typed = [assay, "run", "demo", "--proxy", proxy, "--rehearse", "3s", "--memory", "32MB", "--disk", "32MB", "--run-dir", "kept"]
    return typed + (["--xact-log"] if chance.random() < 0.5 else [])


def lab(assay, _):
    with open("e.toml", "w") as file:
        file.write(EXPERIMENT)
    return [assay, "lab", "e.toml", "--dir", "kept"]


def replay(assay, chance):
    with open("made.log", "w") as file:
        for n in range(2000):
            second = n // 100
            file.write(
                f'10.0.0.{n % 200} - - [01/Jun/2026:12:00:{second:02} +0000] "GET /o/{chance.randrange(300)} HTTP/1.1" 200 {500 + n % 900} "-" "-"\n'
            )
    proxy = chance.choice(["builtin", "nginx", "squid", "varnish"])
    return [assay, "replay", "made.log", "--proxy", proxy, "--memory", "32MB", "--disk", "32MB", "--speed", "6", "--dir", "kept"]


def conform(assay, chance):
    return [assay, "conform", chance.choice(PROXIES), "--case", chance.choice(["vary", "storing", "freshness"]), "--report-only"]


def spe(assay, chance):
    class Page(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            body = self.path.encode() * 50
            self.send_response(200)
            self.send_header("Cache-Control", "max-age=60")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 9100), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    proxies = chance.sample(["builtin", "nginx", "varnish"], 2)
    typed = [assay, "spe", "--listen", "127.0.0.1:8100", "--origin", "127.0.0.1:9100", "--duration", "3s", "--memory", "32MB", "--disk", "32MB"]
    return typed + ["--dir", "kept"] + [word for proxy in proxies for word in ("--proxy", proxy)]


def browsing():
    """A client that requests a page again and again. The function that it returns ends it."""
    ended = threading.Event()

    def client():
        while not ended.is_set():
            try:
                there = http.client.HTTPConnection("127.0.0.1", 8100, timeout=2)
                for n in range(20):
                    there.request("GET", f"/p{n}")
                    there.getresponse().read()
            except (OSError, http.client.HTTPException):
                ended.wait(0.1)

    threading.Thread(target=client, daemon=True).start()
    return ended.set


def size(assay, _):
    return [assay, "size", "site", "--rehearse", "60s", "--policy", "lru,s3-fifo,gdsf", "--json", "-o", "curve.json"]


COMMANDS = [
    Command("run", 6.0, run, record="kept"),
    Command("run", 6.0, run, record="kept"),
    Command("lab", 9.0, lab, record="kept"),
    Command("replay", 6.0, replay),
    Command("conform", 6.0, conform),
    Command("spe", 6.0, spe, clients=browsing),
    Command("size", 1.5, size),
]
