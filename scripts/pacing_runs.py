"""How is one run of one contestant made and measured? Used by pacing.py.

Times are nanoseconds of CLOCK_MONOTONIC. Lateness is arrival at the origin's socket minus due time. Where the due times are
known (ours, from the pure stream; wrk2's way, as it says them) nothing is fitted. vegeta and k6 do not say when they began:
their schedule is put where their least late request is on time, which flatters them by what that one took.
"""

import array
import json
import math
import os
import re
import shutil
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ASSAY = os.path.join(HERE, "target/release/assay")
PACING = os.path.join(HERE, "target/release/examples/pacing")
TOOLS = os.environ.get("ASSAY_BENCH_TOOLS", os.path.expanduser("~/.cache/assay-bench/bin"))
CPUS = sorted(os.sched_getaffinity(0))
SERVER, CLIENT = CPUS[0], CPUS[-1]
TICK = os.sysconf("SC_CLK_TCK")
SECOND = 1_000_000_000
ADDRESS = "127.83.1.1:8093"
KNOWN, FITTED = "known", "fitted"
# Shares of requests that are later than the lateness at them: ten to a factor of ten, for the drawing.
SHARES = [10 ** (-step / 10) for step in range(0, 44)]


class Failed(Exception):
    """A run that shows nothing; another may."""


class Job:
    """What everybody has to do."""

    def __init__(self, rate, connections, warm_s, seconds, realtime):
        self.rate, self.connections, self.realtime = rate, connections, realtime
        self.warm_s, self.seconds = warm_s, seconds
        self.total_s = warm_s + seconds


def tool(name):
    found = os.path.join(TOOLS, name)
    return found if os.access(found, os.X_OK) else shutil.which(name)


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def pinned(cpu, realtime):
    """For a process that is about to start: its processor, and whether it goes before whatever else runs there."""
    def prepare():
        os.sched_setaffinity(0, {cpu})
        if realtime:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    return prepare


def read_rows(path):
    numbers = array.array("Q")
    with open(path, "rb") as file:
        numbers.frombytes(file.read())
    return dict(zip(reversed(numbers[0::2]), reversed(numbers[1::2])))


def process_ns(pid, children=False):
    """Processor time of a process so far, of those that it has waited for too when asked; 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except OSError:
        return 0
    return sum(map(int, fields[11:15 if children else 13])) * SECOND // TICK


def all_ns():
    """Processor time of everybody: whoever has ended is with the one that waited for it."""
    return sum(process_ns(pid, children=True) for pid in os.listdir("/proc") if pid.isdigit())


def steal_ns():
    with open("/proc/stat") as file:
        return int(file.readline().split()[8]) * SECOND // TICK


def used_percent(seconds):
    """What others use of the machine now, in percent of one processor."""
    before, at = all_ns() - process_ns(os.getpid(), children=True), now()
    time.sleep(seconds)
    after = all_ns() - process_ns(os.getpid(), children=True)
    return 100 * (after - before) / (now() - at)


class Usage(threading.Thread):
    """Notes twice a second what a run's processes and everybody have used so far."""

    def __init__(self, generator, origin):
        super().__init__(daemon=True)
        self.pids = [pid for pid in (generator, origin, os.getpid()) if pid]
        self.samples, self.done = [], threading.Event()
        self.start()

    def run(self):
        while not self.done.is_set():
            ours = [process_ns(pid) for pid in self.pids]
            self.samples.append((now(), ours[0], all_ns() - sum(ours), steal_ns()))
            self.done.wait(0.5)

    def between(self, begin_ns, end_ns):
        """Percent of one processor that the generator and others used, and steal, in about that time."""
        self.done.set()
        inside = [sample for sample in self.samples if begin_ns <= sample[0] <= end_ns]
        if len(inside) < 2:
            raise Failed("it was over before it could be measured")
        at, generator, other, steal = (last - first for first, last in zip(inside[0], inside[-1]))
        return {"cpu_percent": 100 * generator / at, "other_percent": 100 * max(other, 0) / at,
                "steal_percent": 100 * steal / at / os.cpu_count()}


class Origin:
    """The origin that notes arrivals."""

    def __init__(self, job, universe, directory):
        self.out = os.path.join(directory, "arrivals")
        self.process = subprocess.Popen([PACING, "origin", universe, ADDRESS, self.out], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, preexec_fn=pinned(SERVER, job.realtime))
        if self.process.stdout.readline() != "listening\n":
            sys.exit("the origin does not start")

    def arrivals(self):
        """Ends it; gives when each request arrived, and over how many connections."""
        self.process.stdin.close()
        connections = int(self.process.stdout.readline() or -1)
        if self.process.wait() != 0:
            raise Failed("the origin failed")
        return read_rows(self.out), connections


def universe(job, directory):
    """Compiles the workload; gives the path of what names its universe."""
    with open(os.path.join(HERE, "bench/pacing/poisson.pg")) as file:
        text = file.read()
    for name, value in (("RATE", job.rate), ("ROBOTS", job.connections), ("SECONDS", job.total_s)):
        text = text.replace(name, str(value))
    source = os.path.join(directory, "poisson.pg")
    with open(source, "w") as file:
        file.write(text)
    compiled = subprocess.run([ASSAY, "check", "--json", source], capture_output=True, text=True)
    if compiled.returncode != 0:
        sys.exit(compiled.stderr)
    workload, spec = os.path.join(directory, "workload.json"), os.path.join(directory, "universe.json")
    with open(workload, "w") as file:
        json.dump(json.loads(compiled.stdout)["compiled"], file)
    with open(spec, "w") as file:
        json.dump({"workload": workload, "seed": 1, "world": 1, "private_as_public": False}, file)
    return spec


def due_times(spec, directory):
    """Writes when the stream wants each request, since the start; gives the file."""
    out = os.path.join(directory, "due")
    subprocess.run([PACING, "due", spec, out], check=True)
    return out


def percentile(values, share):
    """Of sorted values: the one that this share of them does not exceed."""
    return values[max(0, math.ceil(len(values) * share - 1e-6) - 1)]


def figures(late):
    """Percentiles in microseconds, of lateness in nanoseconds."""
    late = sorted(late)
    us = [value / 1000 for value in late]
    shares = [share for share in SHARES if share * len(us) >= 10]
    return {"p50": percentile(us, 0.5), "p99": percentile(us, 0.99), "p999": percentile(us, 0.999), "max": us[-1],
            "curve_shares": shares, "curve": [percentile(us, 1 - share) for share in shares]}


def judge(due, arrived, begin_ns, end_ns):
    """Lateness of what was due in the measured time."""
    wanted = [(name, at) for name, at in due.items() if begin_ns <= at < end_ns]
    late = [arrived[name] - at for name, at in wanted if name in arrived]
    if not late:
        raise Failed("nothing arrived")
    times = [at for at in arrived.values() if begin_ns <= at < end_ns]
    return {"due": len(wanted), "sent": len(late), "rate": len(times) * SECOND / (end_ns - begin_ns), **figures(late)}


class Contestant:
    """One way to send requests on time. `yardstick`: are due times known, or fitted to what was seen?"""

    yardstick = KNOWN
    title = ""
    network = True
    command = None

    def is_here(self):
        return self.command is None or tool(self.command) is not None

    def run(self, job, directory):
        spec = universe(job, directory)
        origin = Origin(job, spec, directory) if self.network else None
        start = now() + SECOND
        process = self.begin(job, spec, start, directory)
        usage = Usage(process.pid, origin and origin.process.pid)
        try:
            self.finish(process, directory)
        finally:
            usage.done.set()
            process.kill()
            process.wait()
        arrived, connections = origin.arrivals() if origin else (self.arrived(directory), None)
        due, start = self.due(job, start, arrived, directory)
        begin, end = start + job.warm_s * SECOND, start + job.total_s * SECOND
        own = self.own(job, due, begin, end, directory)
        return {**judge(due, arrived, begin, end), **usage.between(begin, end), "own": own, "connections": connections}

    def finish(self, process, directory):
        if process.wait() != 0:
            raise Failed(f"{self.title} ended with {process.returncode}")

    def own(self, _job, _due, _begin, _end, _directory):
        """What the contestant says of its own lateness, where it does."""
        return None

    def popen(self, job, arguments, **more):
        return subprocess.Popen(arguments, preexec_fn=pinned(CLIENT, job.realtime), **more)


class Scheduled(Contestant):
    """Keeps to the due times of the stream."""

    def due(self, _job, start, _arrived, directory):
        due = read_rows(os.path.join(directory, "due"))
        return {name: at + start for name, at in due.items()}, start

    def own_rows(self, due, begin, end, directory):
        sent = read_rows(os.path.join(directory, "own"))
        late = figures([sent[name] - at for name, at in due.items() if begin <= at < end and name in sent])
        return {key: late[key] for key in ("p50", "p99", "p999", "max")}


class Timer(Scheduled):
    title = "bare timer, no network"
    network = False

    def begin(self, job, spec, start, directory):
        due = due_times(spec, directory)
        return self.popen(job, [PACING, "timer", due, str(start), os.path.join(directory, "own")])

    def arrived(self, directory):
        return read_rows(os.path.join(directory, "own"))


class Sender(Scheduled):
    title = "bare timer that writes"

    def begin(self, job, spec, start, directory):
        due = due_times(spec, directory)
        return self.popen(job, [PACING, "sender", due, str(start), ADDRESS, os.path.join(directory, "own")])

    def own(self, _job, due, begin, end, directory):
        return self.own_rows(due, begin, end, directory)


class Assay(Scheduled):
    """The robots alone: their role process, told what `assay run --direct` would tell it."""

    def __init__(self, title, spin_us):
        self.title, self.spin_us = title, spin_us

    def begin(self, job, spec, start, directory):
        due_times(spec, directory)
        with open(spec) as file:
            same = json.load(file)
        path = os.path.join(directory, "robots.json")
        with open(path, "w") as file:
            json.dump({"universe": same, "threads": 1, "cpus": [CLIENT], "sources": [], "timeout_ms": 30000,
                       "timing": {"spin_us": self.spin_us}, "target": {"kind": "direct", "origins": [ADDRESS]},
                       "xact_log": None, "behaviour": {"caches": False}}, file)
        process = self.popen(job, [ASSAY, "role", "robots", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for line in process.stdout:
            if json.loads(line)["event"] == "ready":
                break
        start = {"command": "start", "at_monotonic_ns": start, "at_unix_s": int(time.time())}
        process.stdin.write(json.dumps(start) + "\n")
        process.stdin.flush()
        return process

    def finish(self, process, directory):
        self.events = []
        for line in process.stdout:
            event = json.loads(line)
            self.events.append(event)
            if "example" in event:
                raise Failed(f"Assay saw an error: {event}")
            if event["event"] == "done":
                break
        process.stdin.close()
        super().finish(process, directory)

    def own(self, job, _due, _begin, _end, _directory):
        counts = {}
        worst = 0
        for event in self.events:
            interval = event.get("robots")
            if interval and job.warm_s * 1000 <= interval["start_ms"] < job.total_s * 1000:
                worst = max(worst, interval["lateness"]["max_us"])
                for low, count in interval["lateness"]["buckets"]:
                    counts[low] = counts.get(low, 0) + count
        values = sorted(counts)
        own = {"max": worst}
        for key, share in (("p50", 0.5), ("p99", 0.99), ("p999", 0.999)):
            left = share * sum(counts.values())
            for value in values:
                left -= counts[value]
                if left <= 0:
                    own[key] = value
                    break
        return own


class Ticks(Contestant):
    title = "wrk2's way (a stand-in)"

    def begin(self, job, _spec, start, directory):
        # Its connections are begun 5 ms apart; a period later it is in its stride.
        self.ahead_ns = (job.connections * 5_000_000) // SECOND * SECOND
        return self.popen(job, [PACING, "ticks", ADDRESS, str(job.rate), str(job.connections), str(start),
                           str(job.total_s + self.ahead_ns // SECOND + 1), os.path.join(directory, "own")])

    def due(self, _job, start, _arrived, directory):
        return read_rows(os.path.join(directory, "own")), start + self.ahead_ns


class Fitted(Contestant):
    """Request `i` is due `i` periods after a beginning that only the contestant knows."""

    yardstick = FITTED

    def due(self, job, _start, arrived, _directory):
        period = SECOND // job.rate
        start = min((at - number * period for number, at in arrived.items()), default=None)
        if start is None:
            raise Failed("nothing arrived")
        return {number: start + number * period for number in range(job.total_s * job.rate)}, start


class Vegeta(Fitted):
    title = command = "vegeta"

    def begin(self, job, _spec, _start, directory):
        targets = os.path.join(directory, "targets")
        with open(targets, "w") as file:
            file.write(f"GET http://{ADDRESS}/\n")
        return self.popen(job, [tool("vegeta"), "attack", "-targets", targets, "-rate", f"{job.rate}/1s",
                           "-duration", f"{job.total_s}s", "-connections", str(job.connections),
                           "-max-connections", str(job.connections), "-workers", str(job.connections),
                           "-max-workers", str(job.connections),
                           "-output", os.path.join(directory, "attack")])


class K6(Fitted):
    title = command = "k6"

    def begin(self, job, _spec, _start, directory):
        environment = {"RATE": job.rate, "CONNECTIONS": job.connections, "SECONDS": job.total_s, "ORIGIN": ADDRESS}
        named = [part for name, value in environment.items() for part in ("--env", f"{name}={value}")]
        return self.popen(job, [tool("k6"), "run", "--quiet", "--no-usage-report", "--address", "", "--summary-export",
                           os.path.join(directory, "summary.json"), *named, os.path.join(HERE, "bench/pacing/k6.js")],
                          stdout=subprocess.DEVNULL, stderr=open(os.path.join(directory, "log"), "w"))

    def dropped(self, directory):
        with open(os.path.join(directory, "summary.json")) as file:
            return int(json.load(file)["metrics"].get("dropped_iterations", {}).get("count", 0))

    def due(self, job, _start, arrived, directory):
        """It does not say which requests it dropped, so those that flatter it most: from the last one on, each request
        has the latest due time before its arrival that is left."""
        if not arrived:
            raise Failed("nothing arrived")
        period, in_order = SECOND // job.rate, sorted((at, number) for number, at in arrived.items())
        start = min(at - place * period for place, (at, _) in enumerate(in_order))
        slot = len(in_order) + self.dropped(directory)
        left, due = set(range(slot)), {}
        for at, number in reversed(in_order):
            slot = min(slot - 1, (at - start) // period)
            due[number] = start + slot * period
            left.remove(slot)
        # Dropped ones were due too; nobody has a negative number.
        return {**due, **{-1 - slot: start + slot * period for slot in left}}, start

    def own(self, _job, _due, _begin, _end, directory):
        return {"dropped": self.dropped(directory)}


CONTESTANTS = {
    "timer": Timer(), "sender": Sender(), "assay": Assay("Assay", 0), "spin": Assay("Assay, `--spin 50us`", 50),
    "ticks": Ticks(), "vegeta": Vegeta(), "k6": K6(),
}


def version_of(name):
    """The version of a tool that is not ours; none when it cannot be found out."""
    command = CONTESTANTS[name].command
    if command is None or shutil.which("go") is None:
        return None
    # What it was built from, which it says of itself only when it was built to.
    built = subprocess.run(["go", "version", "-m", tool(command)], capture_output=True, text=True).stdout
    found = re.search(rf"^\s+(?:mod|dep)\s+\S*\b{command}(?:/v\d+)?\s+v(\S+)", built, re.MULTILINE)
    return found and found.group(1)
