"""The commands that faults are injected into: what is typed, what must be there before, and who talks to them."""

import http.client
import http.server
import os
import random
import signal
import subprocess
import threading
import time

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
    """One command. `record` is the directory that it writes, if `assay report` reads it. `beside` starts what it needs or is used by, and
    gives a function that ends this, and the command too if it is `endless`: it gets the process, and says what was not as it must be."""

    def __init__(self, name, takes_s, prepare, beside=None, record=None, endless=False):
        self.name, self.takes_s, self.prepare, self.record, self.endless = name, takes_s, prepare, record, endless
        self.beside = beside or (lambda _: lambda _: [])


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


def body(path):
    return path.encode() * 50


class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Cache-Control", "max-age=60")
        self.send_header("Content-Length", str(len(body(self.path))))
        self.end_headers()
        self.wfile.write(body(self.path))

    def log_message(self, *_):
        pass


def pages(*ports):
    """Servers of pages, in this process, which no fault is injected into."""
    for port in ports:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Page)
        threading.Thread(target=server.serve_forever, daemon=True).start()


def spe(assay, chance):
    pages(9100)
    proxies = chance.sample(["builtin", "nginx", "varnish"], 2)
    typed = [assay, "spe", "--listen", "127.0.0.1:8100", "--origin", "127.0.0.1:9100", "--duration", "3s", "--memory", "32MB", "--disk", "32MB"]
    return typed + ["--dir", "kept"] + [word for proxy in proxies for word in ("--proxy", proxy)]


class Browsing:
    """A client that requests a page again and again, each once in a while over a new connection."""

    def __init__(self):
        self.ended, self.right, self.wrong = threading.Event(), 0, []
        threading.Thread(target=self.browse, daemon=True).start()

    def browse(self):
        while not self.ended.is_set():
            try:
                there = http.client.HTTPConnection("127.0.0.1", 8100, timeout=2)
                for n in range(20):
                    there.request("GET", f"/p{n}")
                    response = there.getresponse()
                    got = response.read()
                    if response.status == 200 and got != body(f"/p{n}"):
                        self.wrong.append(f"a wrong body for /p{n}")
                    self.right += response.status == 200
            except (OSError, http.client.HTTPException):
                self.ended.wait(0.1)


def browsing(_):
    client = Browsing()

    def ended(_):
        client.ended.set()
        return client.wrong

    return ended


SWITCH = """listen = "127.0.0.1:8100"
policy = "{policy}"
workers = {workers}
access-log = "access.log"
[health]
path = "/health"
interval = "300ms"
[passive]
"""
# From when a fault is over until the switch must serve requests again, and until it has ended once it is told to.
AGAIN_S, STOP_S = 15, 40


def switch(assay, chance):
    pages(9101, 9102)
    with open("front.toml", "w") as file:
        file.write(SWITCH.format(policy=chance.choice(["lc", "rr", "p2c", "lard"]), workers=chance.choice([1, 2])))
        file.writelines(f'[[server]]\nname = "s{port}"\naddress = "127.0.0.1:{port}"\n' for port in (9101, 9102))
    return [assay, "switch", "front.toml", *chance.choice([["--quiet"], ["--json"], ["--watch"]])]


def switched(_):
    """Its client; it must be served again after the fault, and the switch end when it is told to."""
    client = Browsing()

    def ended(going):
        before, deadline = client.right, time.monotonic() + AGAIN_S
        while going.poll() is None and client.right == before and time.monotonic() < deadline:
            time.sleep(0.05)
        problems = client.wrong
        if going.poll() is None and client.right == before:
            problems.append(f"no request was served in {AGAIN_S} s after the fault")
        client.ended.set()
        if going.poll() is None:
            going.terminate()
        return problems

    return ended


AGENTS = {"m1": "robots", "m2": "proxy", "m3": "origins"}
URL = "nats://127.0.0.1:4222"
# By when agents have ended what they ran, and removed its files, however it ended: one that hears nothing of its coordinator waits for 15 s.
IDLE_S = 40


def fleet(assay, chance):
    with open("nats.conf", "w") as file:
        file.write('listen: "127.0.0.1:4222"\njetstream { store_dir: "jetstream" }\n')
    proxy = chance.choice(["builtin", "nginx", "varnish"])
    typed = [assay, "run", "demo", "--fleet", URL, "--robots-on", "robots", "--proxy-on", "proxy", "--origins-on", "origins", "--proxy", proxy]
    return typed + ["--rehearse", "4s", "--memory", "32MB", "--disk", "32MB", "--run-dir", "kept", "--no-live"]


def agents(assay):
    """A server and three agents; into these, faults are injected as well."""
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    with open("/mnt/agents.log", "wb") as log:
        server = subprocess.Popen(["nats-server", "-c", "nats.conf"], stderr=log, **quiet)
        while subprocess.run([assay, "fleet", "--nats", URL], capture_output=True).returncode != 0:
            time.sleep(0.05)
        started = {
            name: subprocess.Popen([assay, "agent", "--nats", URL, "--name", name, "--label", label, "--dir", f"agents/{name}"], stderr=log, **quiet)
            for name, label in AGENTS.items()
        }
        listed = lambda: subprocess.run([assay, "fleet", "--nats", URL], capture_output=True, text=True).stdout.count("idle")
        while listed() < len(AGENTS):
            time.sleep(0.05)

    def below(process):
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
            return file.read().split()

    def busy():
        """What agents have that live; what a killed one left is its next start's to remove."""
        alive = {name: agent for name, agent in started.items() if agent.poll() is None}
        return [f"{name} has {what}" for name, agent in alive.items() for what in (below(agent), os.listdir(f"agents/{name}")) if what]

    def ended(_):
        deadline = time.monotonic() + IDLE_S
        while busy() and time.monotonic() < deadline:
            time.sleep(0.1)
        problems = [f"agent {what} after {IDLE_S} s" for what in busy()]
        for process in started.values():
            process.send_signal(signal.SIGINT)
        for name, process in started.items():
            try:
                code = process.wait(STOP_S)
                # By a fault's signal, by ours, or for want of its server or of memory; the log says why.
                if code not in (0, 1, 105, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, -signal.SIGABRT):
                    problems.append(f"agent {name} ended with {code}")
            except subprocess.TimeoutExpired:
                problems.append(f"agent {name} did not end in {STOP_S} s")
                process.kill()
        server.kill()
        server.wait()
        with open("/mnt/agents.log", errors="replace") as file:
            problems += [f"agent: {line.strip()[:200]}" for line in file if "panicked at" in line]
        return problems

    return ended


CLUSTER = """title = "torture"
policies = ["lc", "rand"]
clients = [4]
repetitions = 2
warm-up = "0.3s"
measure = "1s"
[[cluster]]
nodes = 3
[[service]]
name = "file5k"
processor = "1ms"
[[mix]]
label = "all"
weights = { file5k = 1 }
"""


def cluster(assay, chance):
    with open("c.toml", "w") as file:
        file.write(CLUSTER)
    return [assay, "cluster", "c.toml", "--run", "--json", "-o", "result.json", *chance.choice([[], ["--without-switch"], ["--real", "nodes"]])]


def webstone(assay, _):
    pages(9100)
    with open("filelist", "w") as file:
        file.writelines(f"/w{n} {10 - n} #{len(body(f'/w{n}'))}\n" for n in range(5))
    return [assay, "webstone", "filelist", "--to", "127.0.0.1:9100", "--clients", "2,4", "--iterations", "2", "--time", "1s", "--json", "-o", "result.json"]


def size(assay, _):
    return [assay, "size", "site", "--rehearse", "60s", "--policy", "lru,s3-fifo,gdsf", "--json", "-o", "curve.json"]


COMMANDS = [
    Command("run", 6.0, run, record="kept"),
    Command("run", 6.0, run, record="kept"),
    Command("lab", 9.0, lab, record="kept"),
    Command("replay", 6.0, replay),
    Command("conform", 6.0, conform),
    Command("spe", 6.0, spe, beside=browsing, record="kept"),
    Command("size", 1.5, size),
    Command("switch", 4.0, switch, beside=switched, endless=True),
    Command("switch", 4.0, switch, beside=switched, endless=True),
    Command("agent", 9.0, fleet, beside=agents, record="kept"),
    Command("agent", 9.0, fleet, beside=agents, record="kept"),
    Command("cluster", 6.0, cluster),
    Command("webstone", 6.0, webstone),
]


def chance_of(seed, number):
    """All that is left to chance for this fault; the first thing drawn is the command."""
    return random.Random(seed * 1_000_003 + number)


def chosen(chance):
    return chance.choice(COMMANDS)
