"""What does it cost that workers watch themselves? Instructions per request, counted by callgrind, with and without.

Each role is run by itself under callgrind at a steady rate, the other one plainly: a short run and a long one, whose
difference leaves out what is done once. Requests come at the same instants with and without. How much a request costs
depends on how many are found at once when a worker wakes up, so both roles must be left alone: they have real-time
priority when this is run as root, and the middle one of three runs counts. The rate is one that callgrind can follow; as
half of the watching goes by the second and not by the request, it costs less than that at higher ones.

    scripts/watch-cost.sh [RATE]      1,000 requests a second unless told otherwise
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RELEASE = os.environ.get("ASSAY_RELEASE", os.path.join(HERE, "target/release"))
ASSAY = os.path.join(RELEASE, "assay")
SHORT_S, LONG_S = 2, 12
RUNS = 3
CONNECTIONS = 50
LEAD_S = 3


def workload(rate, seconds, directory):
    with open(os.path.join(HERE, "bench/pacing/poisson.pg")) as file:
        text = file.read()
    for name, value in (("RATE", rate), ("ROBOTS", CONNECTIONS), ("SECONDS", seconds)):
        text = text.replace(name, str(value))
    source, out = os.path.join(directory, "steady.pg"), os.path.join(directory, "workload.json")
    with open(source, "w") as file:
        file.write(text)
    compiled = subprocess.run([ASSAY, "check", "--json", source], capture_output=True, text=True)
    if compiled.returncode != 0:
        sys.exit(compiled.stderr)
    with open(out, "w") as file:
        json.dump(json.loads(compiled.stdout)["compiled"], file)
    return {"workload": out, "seed": 1, "world": 1, "private_as_public": False}


def undisturbed(counted):
    """What to start a role with so that others keep neither it nor its peer waiting, where that is allowed."""
    cpus = sorted(os.sched_getaffinity(0))
    pin = ["taskset", "-c", str(cpus[0] if counted else cpus[-1])]
    chrt = ["chrt", "--fifo", "5"]
    allowed = subprocess.run(chrt + ["true"], stderr=subprocess.DEVNULL).returncode == 0
    return pin + (chrt if allowed else [])


class Role:
    def __init__(self, name, spec, directory, counted):
        path = os.path.join(directory, f"{name}.json")
        with open(path, "w") as file:
            json.dump(spec, file)
        self.counts = os.path.join(directory, f"{name}.callgrind")
        under = ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={self.counts}"] if counted else []
        self.process = subprocess.Popen(undisturbed(counted) + under + [os.path.join(RELEASE, "examples", name), path], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.listening = self.until("ready")[-1].get("listening")

    def tell(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def until(self, last):
        events = []
        for line in self.process.stdout:
            events.append(json.loads(line))
            if events[-1]["event"] == last:
                return events
        sys.exit("a role ended early")

    def end(self):
        events = self.until("done")
        self.process.stdin.close()
        if self.process.wait() != 0:
            sys.exit("a role failed")
        return events

    def instructions(self):
        with open(self.counts) as file:
            return int(re.search(r"^(?:totals|summary): (\d+)", file.read(), re.M).group(1))


def count(role, rate, seconds, unwatched):
    """Instructions of one run, and its requests."""
    with tempfile.TemporaryDirectory() as directory:
        spec = {"universe": workload(rate, seconds, directory), "threads": 1, "cpus": [],
                "timing": {"unwatched": unwatched}}
        origins = Role("origins", spec | {"listen": ["127.83.2.1:0"]}, directory, role == "origins")
        robots = Role("robots", spec | {"target": {"kind": "direct", "origins": origins.listening}, "sources": [],
                                        "behaviour": {"caches": False}, "timeout_ms": 30000, "xact_log": None},
                      directory, role == "robots")
        begin_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC) + LEAD_S * 1_000_000_000
        for each in (origins, robots):
            each.tell(command="start", at_monotonic_ns=begin_ns, at_unix_s=int(time.time()))
        events = robots.end()
        origins.tell(command="stop")
        origins.end()
        requests = sum(event["robots"]["counts"]["completed"] for event in events if "robots" in event)
        return (origins if role == "origins" else robots).instructions(), requests


def per_request(role, rate, unwatched):
    (short, few), (long, many) = (
        map(statistics.median, zip(*(count(role, rate, seconds, unwatched) for _ in range(RUNS))))
        for seconds in (SHORT_S, LONG_S)
    )
    return (long - short) / (many - few)


def main():
    rate = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(f"instructions per request at {rate:,} requests a second")
    sums = [0, 0]
    for role in ("robots", "origins"):
        both = [per_request(role, rate, unwatched) for unwatched in (True, False)]
        sums = [sum(pair) for pair in zip(sums, both)]
        show(role, both)
    show("together", sums)


def show(name, both):
    without, watched = both
    print(f"{name:8} {without:6.0f} without watching, {watched:6.0f} with it: {watched / without - 1:+.2%}", flush=True)


if __name__ == "__main__":
    main()
