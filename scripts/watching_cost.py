"""What does it cost a run that somebody watches it? Processor time of robots and origins per request, with and without.

The same steady workload runs in turns: with nobody watching, and with `--serve` while Prometheus' part is played by a client
that scrapes /metrics once a second (protocol buffers, gzip) and another one that has the live page open and fetches it every
two seconds. The figure is the ratio of the processor time of robots and origins per request, in pairs of runs that follow each
other; what the watching threads used themselves is said beside it (`assay_watching_cpu_seconds_total`).

    scripts/watching-cost.sh [PAIRS [RATE [SECONDS]]]     ASSAY=path/to/assay: measure that one instead of building it
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import urllib.request

import paired_runs
from paired_runs import HERE

ASSAY = os.environ.get("ASSAY", os.path.join(HERE, "target/release/assay"))
# Exit codes of a run that was measured: fine, or with doubts about this machine, which do not matter here.
MEASURED = (0, 96)
PROTOBUF = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"


class Client(threading.Thread):
    """Fetches a URL every few seconds until it is stopped."""

    def __init__(self, url, every, accept):
        super().__init__(daemon=True)
        self.request = urllib.request.Request(url, headers={"Accept": accept, "Accept-Encoding": "gzip"})
        self.every, self.enough, self.responses = every, threading.Event(), 0
        self.start()

    def run(self):
        while not self.enough.wait(self.every):
            try:
                with urllib.request.urlopen(self.request, timeout=10) as response:
                    response.read()
                self.responses += 1
            except OSError:
                pass  # The run ended meanwhile.

    def stop(self):
        self.enough.set()
        self.join()
        return self.responses


def own_cpu(url):
    """Processor time that watching took so far, in seconds."""
    try:
        with urllib.request.urlopen(url + "metrics", timeout=10) as response:
            return float(re.search(rb"^assay_watching_cpu_seconds_total (\S+)", response.read(), re.M).group(1))
    except (OSError, AttributeError):
        return None


def run(source, watched, seed):
    """Microseconds of robots and of origins per request; and of watching in seconds, with the number of responses."""
    with tempfile.TemporaryDirectory() as directory:
        command = [ASSAY, "run", source, "--direct", "--run-dir", os.path.join(directory, "run"), "--no-live",
                   "--no-report", "--json", "--seed", str(seed)]
        command += ["--serve", "0"] if watched else []
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        clients, used, last = [], None, ""
        for line in process.stderr:
            last = line
            if line.startswith("watch at "):
                url = line.split()[-1]
                clients = [Client(url + "metrics", 1, PROTOBUF), Client(url, 2, "text/html")]
            elif clients and re.match(r"\s*\d+:\d\d ", line):
                used = own_cpu(url) or used
        responses = [client.stop() for client in clients]
        out = process.stdout.read()
        if process.wait() not in MEASURED:
            sys.exit(last)
    summary = json.loads(out)
    cpu = summary["total"]["cpu_us_per_request"]
    return cpu["robots"], cpu["origins"], used, responses


def main():
    pairs, rate, seconds = paired_runs.arguments()
    print(f"{pairs} pairs of {seconds} s at {rate:,} requests a second; processor time of robots and origins per request")
    ratios = []
    with tempfile.TemporaryDirectory() as directory:
        source = paired_runs.steady(directory, rate, seconds)
        for pair in range(pairs):
            both = {}
            # Which one is first changes from pair to pair.
            for watched in (False, True) if pair % 2 == 0 else (True, False):
                both[watched] = run(source, watched, pair + 1)
            plain, seen = (sum(both[watched][:2]) for watched in (False, True))
            ratios.append(seen / plain)
            used, responses = both[True][2:]
            watching = "" if used is None else f"; watching itself {used / seconds:.2%} of a core"
            print(f"  {plain:6.2f} us alone, {seen:6.2f} us watched: {seen / plain - 1:+.2%} "
                  f"({responses[0]} scrapes, {responses[1]} pages{watching})", flush=True)
    print(paired_runs.words(ratios))


if __name__ == "__main__":
    main()
