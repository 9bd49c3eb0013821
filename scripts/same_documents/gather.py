"""What a build of Assay says: each of its documents, made from the same inputs and seeds. Loopback only."""

import contextlib
import http.client
import http.server
import json
import random
import re
import threading
import time

import parquet
from compare import EVERYTHING, Document

PATIENCE_S = 120
BODY_BYTES = 3000
WORDS_OF_FIELDS = ("*.description", "description")
"""In a schema, these explain; they may be written anew."""


def documents(build):
    """All of them, one after the other."""
    for make in (said, run, runs_compared, experiment, evaluation, simulation, logs, replay, peak, switch):
        yield from make(build)


def parsed(build, *arguments, **options):
    return json.loads(build.run(*arguments, **options))


def said(build):
    """What depends on nothing but the build."""
    check = parsed(build, "check", "demo", "--rehearse", "10s", "--seed", 7, "--threads", 1, "--json", codes=(0,))
    yield Document("check", check, EVERYTHING, ("machine*",))
    listed = build.run("workloads", codes=(0,)).splitlines()
    yield Document("workloads", {"lines": listed}, EVERYTHING)
    yield Document("proxies", parsed(build, "proxies", "--json", codes=(0,)), EVERYTHING, ("*about", "*missing"))
    for name, *command in (
        ("summary", "report", "--schema"),
        ("comparison", "report", "--comparison-schema"),
        ("logs", "logs", "--schema"),
        ("replay", "replay", "--schema"),
        ("spe", "spe", "report", "--schema"),
    ):
        yield Document(f"schema-{name}", parsed(build, *command, codes=(0,)), EVERYTHING, WORDS_OF_FIELDS)


PHASES = tuple(f"phases[].{name}" for name in ("name", "start_ms", "end_ms", "goal", "load*", "recurrence*"))
HEAD = ("schema", "seed", "*digest*", "target.name", "target.mode", "target.memory_bytes", *PHASES)
SUMMARY = (*HEAD, "phases[].due", "phases[].duration_s", "total.due", "*offered*")
"""What follows from workload, seed and schedule alone."""
COMPARED = ("schema", "subjects[].label", "runs[].seed", "runs[].workload")
REPLAYED = ("requests", "body_bytes", "statuses*", "read*", "cache.urls", "cache.ideal*")
EVALUATED = ("schema", "seed", "requests", "turns", "when", "collector.m*", "targets[].verdicts*", "totals.origin_requests")


def run(build):
    """A run that is watched: its document, its directory, its metrics."""
    flags = ["--proxy", "builtin", "--memory", "64MB", "--seed", "7", "--rehearse", "8s", "--no-pin", "--no-live"]
    flags += ["--xact-log", "--run-dir", "runs/plain", "--serve", "127.0.0.1:0", "--keep-serving", "--json"]
    child = build.start("run", "demo", *flags, "-o", "plain.json")
    watching = re.compile(r"http://([0-9.]+:[0-9]+)")
    address = next(found[1] for found in map(watching.search, child.stderr) if found)
    threading.Thread(target=child.stderr.read, daemon=True).start()
    until(lambda: 'assay_run_stage{stage="finished"} 1' in get(address, "/metrics"))
    until(lambda: (build.directory / "plain.json").exists())
    for name, accept in (("text", "text/plain"), ("openmetrics", "application/openmetrics-text")):
        yield Document(f"run-metrics-{name}", metrics(get(address, "/metrics", accept)), ("*type",))
    yield Document("run-served", json.loads(get(address, "/summary.json")), SUMMARY)
    build.interrupt(child, "run")
    yield Document("run", json.loads((build.directory / "plain.json").read_text()), SUMMARY)
    exact = {"run.json": (*HEAD, "phases[].expected_requests"), "summary.json": SUMMARY, "workload.json": EVERYTHING}
    yield from directory(build.directory / "runs/plain", "run", exact)
    report = parsed(build, "report", "runs/plain", "--json", "--no-report")
    yield Document("run-report", report, SUMMARY)


def directory(path, name, exact):
    """What lies in a directory: names of files, JSON documents (with what is exact in them), columns of tables."""
    files = sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())
    known = [file for file in files if file.endswith((".json", ".parquet", ".html", ".csv"))]
    yield Document(f"{name}-files", dict.fromkeys(known, 1), EVERYTHING)
    for file in known:
        if file.endswith(".json"):
            yield Document(f"{name}-{file}", json.loads((path / file).read_text()), exact.get(file, ()))
        elif file.endswith(".parquet"):
            yield Document(f"{name}-{file}", parquet.columns(path / file), EVERYTHING)


def runs_compared(build):
    flags = ["--direct", "--seed", "7", "--rehearse", "5s", "--no-pin", "--no-live", "--no-report"]
    build.run("run", "demo", *flags, "--run-dir", "runs/direct")
    both = parsed(build, "compare", "runs/plain", "runs/direct", "--json")
    yield Document("compare", both, (*COMPARED, "runs[].stream_digest"))


EXPERIMENT = """
title = "The same documents"
workloads = ["demo"]
rehearse = "4s"
repetitions = 2
seed = 7
retries = 0
cool-down = "1s"

[[proxy]]
name = "builtin"
memory = "64MB"

[[proxy]]
name = "direct"
"""


def experiment(build):
    (build.directory / "experiment.toml").write_text(EXPERIMENT)
    out = build.run("lab", "experiment.toml", "--dir", "lab", "--json", "--no-live", "--keep-page-cache", limit_s=300)
    yield Document("lab", json.loads(out), COMPARED)
    exact = {"comparison.json": COMPARED}
    found = {document.name: document for document in directory(build.directory / "lab", "lab", exact)}
    for name in ("lab-experiment.json", "lab-comparison.json"):
        yield found[name]


def evaluation(build):
    with origin() as (address, _):
        listen = f"127.0.0.1:{free_port()}"
        who = ["--listen", listen, "--origin", address, "--proxy", "one=builtin", "--proxy", "two=builtin"]
        child = build.start("spe", *who, "--memory", "16MB", "--seed", "7", "--dir", "spe", "--fixed-order")
        until(lambda: get(listen, "/0"))
        for number in range(40):
            get(listen, f"/{number % 12}")
        time.sleep(2)
        build.interrupt(child, "spe")
    yield Document("spe", parsed(build, "spe", "report", "spe", "--json"), EVALUATED)
    yield from directory(build.directory / "spe", "spe", {"summary.json": EVALUATED})


def simulation(build):
    short = ["--measure", "5s", "--repetitions", "2", "--seed", "7"]
    text = build.run("simulate", "figure-8", *short, "--json", codes=(0,))
    yield Document("simulate", json.loads(text), EVERYTHING, ("*took*",))
    (build.directory / "simulated.json").write_text(text)
    live = ["--run", "--policy", "rand", "--clients", "2", "--repetitions", "1", "--warm-up", "1s", "--measure", "2s"]
    measured = parsed(build, "cluster", "figure-8", *live, "--against", "simulated.json", "--json", "--seed", 7)
    yield Document("cluster", measured, ("schema", "title"))


RESULTS = ("TCP_MISS/200", "TCP_HIT/200", "TCP_MEM_HIT/200", "TCP_MISS/404", "TCP_REFRESH_UNMODIFIED/200")


def access_log():
    """Lines of a Squid, as of 600 requests for 80 objects."""
    chance, lines = random.Random(7), []
    for number in range(600):
        thing = min(int(chance.expovariate(0.06)), 79)
        result = chance.choice(RESULTS)
        way = "HIER_NONE/-" if "HIT" in result else "HIER_DIRECT/192.0.2.1"
        lines.append(
            f"{1700000000 + number * 0.01:.3f} {5 + thing % 7:6} 10.0.0.{number % 9} {result} {900 + 37 * thing} "
            f"GET http://{'ab'[thing % 2]}.example/{thing}.html - {way} text/html"
        )
    return "".join(f"{line}\n" for line in lines)


def logs(build):
    (build.directory / "access.log").write_text(access_log())
    asked = ["logs", "access.log", "--cache", "16KB", "--every", "1s", "--parquet", "logs.parquet", "--json"]
    yield Document("logs", parsed(build, *asked, codes=(0,)), EVERYTHING)
    yield Document("logs-parquet", parquet.columns(build.directory / "logs.parquet"), EVERYTHING)


def replay(build):
    way = ["--proxy", "builtin", "--memory", "16MB", "--dir", "replayed", "--quiet", "--json"]
    yield Document("replay", parsed(build, "replay", "access.log", *way, codes=(0,)), REPLAYED)
    yield from directory(build.directory / "replayed", "replay", {"replay.json": REPLAYED})


def peak(build):
    promise = ["--find-peak", "p99 < 200ms", "--peak-warm", "1s", "--peak-step", "1s", "--rehearse", "15s"]
    flags = ["--proxy", "builtin", "--memory", "64MB", "--seed", "7", "--no-pin", "--no-live", "--run-dir", "runs/peak"]
    found = parsed(build, "run", "demo", *flags, *promise, "--json", codes=(0, 1, 96, 99))
    yield Document("peak", found, ("schema", "promise*"))
    stored = json.loads((build.directory / "runs/peak/peak.json").read_text())
    yield Document("peak-stored", stored, ("schema", "promise*"))


SWITCH = """
listen = "127.0.0.1:0"
metrics = "127.0.0.1:0"
policy = "rr"

[[server]]
name = "a"
address = "ADDRESS"

[[server]]
name = "b"
address = "ADDRESS"
weight = 0.5

[[class]]
name = "pages"
suffix = ".html"
"""


def switch(build):
    with origin() as (address, _):
        (build.directory / "switch.toml").write_text(SWITCH.replace("ADDRESS", address))
        child = build.start("switch", "switch.toml", "--json")
        events = map(json.loads, child.stdout)
        begun = next(events)
        at, counters = begun["listen"][0], re.search(r"http://([^/]+)/", begun["metrics"])[1]
        for number in range(40):
            get(at, f"/{number % 9}.{'html' if number % 2 else 'cgi'}")
        shown = metrics(get(counters, "/metrics"))
        second = next(event for event in events if event["event"] == "second")
        build.interrupt(child, "switch", codes=(0, 105))
    yield Document("switch-begun", begun)
    yield Document("switch-second", second)
    families = ("requests_total", "bytes_total", "failed_total", "server_up", "server_weight")
    counted = ("*type", *(f"assay_switch_{family}.series*" for family in families))
    yield Document("switch-metrics", shown, counted)


def metrics(text):
    """{family: {"type", "help", "unit", "series": {labels: value}}} of what Prometheus reads; bounds are labels."""
    families = {}
    for line in filter(None, text.splitlines()):
        if line.startswith("# ") and line != "# EOF":
            _, what, name, words = line.split(" ", 3)
            families.setdefault(name, {"series": {}})[what.lower()] = words
        elif not line.startswith("#"):
            name, labels, value = re.fullmatch(r"([a-z_0-9]+)(?:\{(.*)\})? (\S+)", line).groups()
            short = (name.removesuffix(end) for end in ("", "_total", "_bucket", "_sum", "_count"))
            family = next(families[known] for known in short if known in families)
            series = family["series"].setdefault(name, {})
            series[labels or "-"] = float(value)
    return families


class Pages(http.server.BaseHTTPRequestHandler):
    """Any path has a body of its own, which may be stored."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = (self.path * BODY_BYTES)[:BODY_BYTES].encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "public, max-age=1000")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def origin():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}", server
    finally:
        server.shutdown()
        server.server_close()


def free_port():
    with http.server.HTTPServer(("127.0.0.1", 0), Pages) as server:
        return server.server_port


def get(address, path, accept="text/plain"):
    connection = http.client.HTTPConnection(address, timeout=10)
    try:
        connection.request("GET", path, headers={"Accept": accept})
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def until(is_so):
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with contextlib.suppress(OSError):
            if is_so():
                return
        if time.monotonic() > deadline:
            raise TimeoutError("it did not come")
        time.sleep(0.1)
