"""How many instructions does a request take on each hot path? Counted by callgrind, which counts the same every time.

Each path is run twice with different numbers of requests; the difference of both counts over the difference of both numbers
is what one request takes, so start and end fall out. Processes are stopped while their sockets are filled, and find 32
requests at once (counted.py says how), so counts do not depend on how busy the machine is. What the kernel does for a request
is not in it.

    scripts/instructions.sh                 counts, and shows the counts kept in bench/instructions.json beside it
    scripts/instructions.sh --check         fails where a path takes more, or fewer, than kept by more than the tolerance
    scripts/instructions.sh --update        keeps the counts
    scripts/instructions.sh robot proxy     only paths whose names begin so; --list says which there are
    scripts/instructions.sh --keep DIR      leaves callgrind's files there, for callgrind_annotate
    ASSAY=path/to/assay                     that binary; target/release/assay is built where it is not given

The counts are kept for a profile of the build (dev, release), a version of Rust and a processor's instruction set; those
of another version or processor are shown and not judged. The first thread of robots and origins is not in them: it reports
once a second, and feeds the ideal cache.
"""

import argparse
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

from counted import PATIENCE_S, Clients, Counted, Server, room
from machine import ASSAY, HERE, leave_nothing_running, soon
from ours import at, universe, workload

KEPT = os.path.join(HERE, "bench/instructions.json")
TOLERANCE_PERCENT = 5
# How often a path is counted before it is said to take more than is kept.
TRIES = 3
# What keeps the counts of a profile.
UPDATE = {"dev": "make instructions-dev", "release": "make instructions"}
# So many requests are found at once, as on a busy machine.
AT_ONCE = 32
# Addresses of this process alone, so that several of them can count at a time.
NET = f"127.{80 + os.getpid() % 100}.{os.getpid() // 100 % 250}"
ORIGIN, PEER, COUNTED = (f"{NET}.1", 9066), (f"{NET}.2", 9066), (f"{NET}.3", 8066)
SOURCES = [(f"{NET}.{4 + n}", 9066) for n in range(4)]


class Bench:
    """What all paths need: a universe, an origin that is not counted, and its responses."""

    def __init__(self, directory, requests, keep=None, size="1KB", cachable=100, connection=1_000_000_000):
        self.directory, self.requests, self.keep = directory, requests, keep
        self.workload = workload(directory, "counted.pg", SIZE=size, ROBOTS=AT_ONCE, CACHABLE=cachable, CONNECTION=connection)
        self.begin, self.unix_s = soon(), int(time.time())
        self.origin = None

    def origins(self, counted=False):
        spec = {"universe": universe(self.workload), "threads": 1, "cpus": [], "listen": [at(COUNTED if counted else ORIGIN)],
                "timing": {"unwatched": True}}
        role = Counted.role("origins", spec, self.directory, counted, self.keep)
        role.start(self.begin, self.unix_s)
        return role

    def source(self):
        """Fetches a path from the origin that is not counted; gives the whole response."""
        self.origin = self.origins()
        clients = Clients(ORIGIN, 1)

        def fetch(path):
            response = clients.fetch(b"GET " + path + b" HTTP/1.1\r\nHost: 10.0.0.1:9000\r\n\r\n")
            # Robots begin later than this origin: to them, it was made when they began.
            return re.sub(rb"(X-Assay: \d+-\d+-\d+-[0-9a-f]+-\d+)-\d+-", rb"\1-0-", response, count=1, flags=re.IGNORECASE)

        return fetch

    def robots(self, server, counted=True, log=None):
        """Runs robots against a server until they have had so many responses; gives their instructions, and the number."""
        role = Counted.role("robots", {
            "universe": universe(self.workload), "threads": 1, "cpus": [], "sources": [], "timeout_ms": 300_000,
            "target": {"kind": "reverse", "proxy": at(PEER)}, "behaviour": {"caches": True}, "xact_log": log,
            "timing": {"unwatched": True},
        }, self.directory, counted, self.keep)
        failed, completed, done = set(), [], threading.Event()

        def listen():
            for line in role.process.stdout:
                event = json.loads(line)
                if "robots" in event:
                    failed.update(event["robots"]["counts"]["errors"])
                    completed.append(event["robots"]["counts"]["completed"])
                elif "example" in event and counted:
                    print(line.decode(), file=sys.stderr)
                elif event["event"] == "done":
                    break
            done.set()

        listener = threading.Thread(target=listen, daemon=True)
        listener.start()
        role.start(soon(), self.unix_s)
        responses = 0
        while not done.is_set():
            found = server.gather(AT_ONCE, PATIENCE_S if responses < self.requests else 0.3)
            if found:
                with role.stopped():
                    server.respond(found)
            if responses < self.requests <= responses + len(found):
                role.say(command="stop")
            responses += len(found)
        listener.join()
        # Robots that are not counted only show what they request.
        if counted and (failed or sum(completed) < self.requests) or responses < self.requests:
            sys.exit(f"robots got {responses} responses, completed {sum(completed)} requests, and saw errors: "
                     f"{', '.join(sorted(failed)) or 'none'}")
        return role.end(), responses

    def end(self):
        if self.origin:
            self.origin.end()


def robots(**how):
    """Robots against responses that lie ready."""
    log = how.pop("log", False)

    def count(requests, directory, keep):
        bench = Bench(directory, requests, keep, **how)
        server = Server([PEER], bench.source())
        try:
            return bench.robots(server, log=os.path.join(directory, "xacts.parquet") if log else None)
        finally:
            server.close()
            bench.end()

    return count


def requests_of_robots(bench):
    """What robots request, each object once, and the response to each; not counted."""
    server = Server([PEER], bench.source())
    bench.robots(server, counted=False)
    server.close()
    requested = list(server.requested.values())
    return [requested[n % len(requested)] for n in range(AT_ONCE)], server.responses


def origin(**how):
    """The origin, with the requests of robots."""
    def count(requests, directory, keep):
        bench = Bench(directory, 4 * AT_ONCE, keep, **how)
        requested, _ = requests_of_robots(bench)
        counted = bench.origins(counted=True)
        done = send_again(counted, requested, requests)
        bench.end()
        return counted.end(), done

    return count


def send_again(counted, requested, requests, serve=None):
    clients = Clients(COUNTED, AT_ONCE)
    for _ in range(requests // AT_ONCE):
        clients.send(counted, requested, serve)
    clients.close()
    return requests // AT_ONCE * AT_ONCE


def proxy(cachable):
    """The built-in proxy; where nothing is stored, each request goes on to an origin."""
    def count(requests, directory, keep):
        bench = Bench(directory, 4 * AT_ONCE, keep, cachable=cachable)
        requested, responses = requests_of_robots(bench)
        server = Server([PEER], lambda path: responses[path])
        counted = Counted.role("proxy", {
            "listen": at(COUNTED), "threads": 1, "cpus": [], "memory_bytes": 100_000_000,
            "origins": [{"authority": at(COUNTED), "address": at(PEER)}],
        }, directory, keep=keep, first_thread=True)
        counted.start(bench.begin, bench.unix_s)
        serve = lambda number: server.serve(counted, number)
        if cachable:
            # What is stored already is requested.
            clients = Clients(COUNTED, len(set(requested)))
            clients.send(counted, list(dict.fromkeys(requested)), serve)
            clients.close()
        done = send_again(counted, requested, requests, None if cachable else serve)
        bench.end()
        server.close()
        return counted.end(), done

    return count


def switch(policy):
    """The switch before four servers, each request on a connection that is kept."""
    def count(requests, directory, keep):
        bench = Bench(directory, 4 * AT_ONCE, keep)
        requested, responses = requests_of_robots(bench)
        server = Server(SOURCES, lambda path: responses[path])
        servers = "".join(f'[[server]]\nname = "n{n}"\naddress = "{at(address)}"\n\n' for n, address in enumerate(SOURCES))
        path = os.path.join(directory, "switch.toml")
        with open(path, "w") as file:
            file.write(f'listen = ["{at(COUNTED)}"]\nworkers = 1\npolicy = "{policy}"\n\n{servers}')
        counted = Counted(["switch", "--quiet", path], directory, keep=keep)
        done = send_again(counted, requested, requests, lambda number: server.serve(counted, number))
        bench.end()
        server.close()
        return counted.end(signal.SIGTERM), done

    return count


# Name, requests of both runs, and how it is counted.
PATHS = {
    "robot, connection kept open": (640, 6400, robots()),
    "robot, a connection for each request": (640, 6400, robots(connection=1)),
    "robot, body of 49 KB": (640, 3200, robots(size="49KB")),
    "robot, with the log of all xacts": (640, 6400, robots(log=True)),
    "origin, 1 KB": (640, 3200, origin()),
    "origin, 13 KB": (640, 3200, origin(size="13KB")),
    "proxy, passed on and not stored": (640, 3200, proxy(0)),
    "proxy, hit": (640, 3200, proxy(100)),
    "switch, RAND": (640, 3200, switch("rand")),
    "switch, CAP": (640, 3200, switch("cap")),
}
# What follows from two of them: the path, the one to take away, and by how much to divide.
PARTS = {
    "a KB of body, checked": ("robot, body of 49 KB", "robot, connection kept open", 48),
    "a row of the log of all xacts": ("robot, with the log of all xacts", "robot, connection kept open", 1),
}


def per_request(name, keep=None):
    """Instructions of one request."""
    few, many, count = PATHS[name]
    taken = []
    for requests in (few, many):
        place = None
        if keep:
            place = os.path.join(keep, re.sub(r"\W+", "-", name), str(requests))
            os.makedirs(place, exist_ok=True)
        with room() as directory:
            taken.append(count(requests, directory, place))
    (least, fewest), (most, all_of_them) = taken
    return (most - least) / (all_of_them - fewest)


def valid_for():
    """What counts depend on beside the code."""
    said = subprocess.run(["rustc", "--version"], capture_output=True, text=True, cwd=HERE).stdout
    with open("/proc/cpuinfo") as file:
        vectors = "avx2" if re.search(r"\bavx2\b", file.read()) else "no avx2"
    return {"rust": said.split()[1] if said else "unknown", "processor": f"{platform.machine()}, {vectors}"}


def profile():
    """Of which profile the binary is, by where it lies; none: it lies elsewhere."""
    known = {"debug": "dev", "release": "release"}
    return known.get(os.path.basename(os.path.dirname(ASSAY)))


def read_kept():
    if not os.path.exists(KEPT):
        return {}
    with open(KEPT) as file:
        return json.load(file)


def show(name, counted, kept):
    beside = f"{kept:>11,.0f} {counted / kept - 1:>+8.2%}" if kept else ""
    print(f"{name:<40}{counted:>11,.0f}{beside}", flush=True)


def judge(counts, kept):
    """Says which paths are beyond the tolerance; gives how many."""
    wrong = 0
    for name, counted in counts.items():
        if name not in kept:
            print(f"{name}: nothing is kept", file=sys.stderr)
            wrong += 1
        elif abs(counted / kept[name] - 1) * 100 > TOLERANCE_PERCENT:
            print(f"{name}: {counted:,.0f} instructions for each request, {kept[name]:,.0f} are kept: {counted / kept[name] - 1:+.2%}, "
                  f"and {TOLERANCE_PERCENT} % are tolerated", file=sys.stderr)
            wrong += 1
    if wrong:
        print(f"If that is as it should be: {UPDATE[profile()]}", file=sys.stderr)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*")
    parser.add_argument("--check", action="store_true", help="fail where a count is not what is kept")
    parser.add_argument("--update", action="store_true", help="keep the counts")
    parser.add_argument("--list", action="store_true", help="name the paths")
    parser.add_argument("--keep", metavar="DIR", help="leave callgrind's files there")
    parser.add_argument("--json", metavar="FILE", help="where to write the counts")
    args = parser.parse_args()
    names = [name for name in PATHS if not args.what or any(name.startswith(what) for what in args.what)]
    if args.list:
        print("\n".join(names))
        return
    if not shutil.which("valgrind"):
        print("SKIPPED: counts of instructions need valgrind", flush=True)
        return
    # Ends by itself whatever happens.
    signal.signal(signal.SIGALRM, lambda *_: sys.exit("counting took longer than half an hour"))
    signal.alarm(1800)
    kept, here = read_kept().get(profile(), {}), valid_for()
    comparable = {key: kept.get(key) for key in here} == here
    print(f"instructions for each request, {ASSAY}", flush=True)
    counts = {}
    for name in names:
        mine = kept.get("instructions", {}).get(name)
        counts[name] = round(per_request(name, args.keep))
        # What arrives in two parts takes another look: a count that is too high by chance is lower the next time.
        for _ in range(TRIES - 1 if args.check and comparable else 0):
            if mine and (counts[name] / mine - 1) * 100 > TOLERANCE_PERCENT:
                counts[name] = min(counts[name], round(per_request(name, args.keep)))
        show(name, counts[name], mine)
    for name, (whole, without, by) in PARTS.items():
        if whole in counts and without in counts:
            show(name, (counts[whole] - counts[without]) / by, None)
    leave_nothing_running()
    if args.json:
        with open(args.json, "w") as file:
            json.dump(counts, file, indent=1)
    if args.update:
        update(counts, here)
    elif args.check and not comparable:
        told = ", ".join(f"{key} {kept.get(key, 'unknown')}" for key in here)
        print(f"NOT COMPARED: what is kept in {os.path.relpath(KEPT, HERE)} is for {told}")
    elif args.check:
        sys.exit(1 if judge(counts, kept["instructions"]) else 0)


def update(counts, here):
    if profile() is None:
        sys.exit("only counts of target/debug and target/release are kept")
    everything = read_kept()
    before = everything.get(profile(), {})
    merged = {**(before.get("instructions", {}) if {key: before.get(key) for key in here} == here else {}), **counts}
    everything[profile()] = {**here, "instructions": {name: merged[name] for name in PATHS if name in merged}}
    with open(KEPT, "w") as file:
        json.dump(everything, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
