"""What does a coordinator spend on each of many agents, and does its memory grow?

A real `assay run --fleet` coordinates many agents through a real NATS server. One agent is real: a short run on it is recorded, with
everything that it reports. The others are simulated by this script, which takes orders, gives its clock when it is asked for it (10 times a
second and agent), and repeats for each agent, second after second, what the real one reported in one second of the recording, stored by
JetStream as an agent has it stored. What the coordinator gets is therefore as much and as large as from real agents; only its
numbers are the same for all. Its processor time (user and system) and resident memory are read from /proc once a second while the
schedule lasts, from the fifth second on (the growth of memory from the 420th on), and the number of requests in its record is compared with what was sent to it.

    scripts/fleet-scale.sh [AGENTS [SECONDS [RATE]]]     ASSAY=path/to/assay: measure that one instead of building it

RATE is the requests per second of the recorded agent. The target is 2 ms of processor time for each agent and second; exit code 1 beyond it.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import paired_runs
from nats_wire import Connection
from paired_runs import HERE

ASSAY = os.environ.get("ASSAY", os.path.join(HERE, "target/release/assay"))
TARGET_MS = 2.0
# The coordinator settles first: the schedule's first seconds are not measured.
SETTLING_S = 5
# A coordinator keeps a minute of readings of each clock, and 400 seconds for its view; what it needs after that is to stay the same.
FULL_S = 420
# The second of the recording that is repeated.
RECORDED_S = 3
# Exit codes of a run that came to its end: fine, with doubts, or with requirements that made-up numbers do not keep.
ENDED = (0, 96, 99)
INSTANTS = ("start_ms", "at_ms")
TICKS = os.sysconf("SC_CLK_TCK")


def run_command(source, url, run_dir, more):
    return [ASSAY, "run", source, "--direct", "--fleet", url, "--run-dir", run_dir, "--no-live", "--no-report"] + more


def instant(value):
    """The first instant in a document, in milliseconds since the start; none: it has none."""
    if isinstance(value, dict):
        for name, inner in value.items():
            found = inner if name in INSTANTS and isinstance(inner, int) else instant(inner)
            if found is not None:
                return found
    if isinstance(value, list):
        return next((found for found in map(instant, value) if found is not None), None)
    return None


def moved(value, by_ms):
    """The same document with its instants moved."""
    if isinstance(value, dict):
        return {name: inner + by_ms if name in INSTANTS and isinstance(inner, int) else moved(inner, by_ms) for name, inner in value.items()}
    return [moved(inner, by_ms) for inner in value] if isinstance(value, list) else value


def kind_of(spec):
    return next(iter(spec))


class Recording:
    """What one agent reports, by kind of role (None: the agent itself): before it is ready, in one second, and of phases."""

    def __init__(self, url, source, directory):
        connection = Connection(url)
        connection.subscribe("assay.run.>")
        connection.subscribe("assay.agent.m1.order")
        command = run_command(source, url, os.path.join(directory, "recorded"), ["--duration", f"{RECORDED_S + 3}s"])
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        reports, roles = [], {}
        while run.poll() is None:
            for subject, _, payload in connection.poll(0.2):
                document = json.loads(payload)
                if subject.startswith("assay.run."):
                    reports.append(document)
                elif isinstance(document["what"], dict) and "start" in document["what"]:
                    start = document["what"]["start"]
                    roles[start["role"]] = kind_of(start["spec"])
        if run.returncode not in ENDED:
            sys.exit("the run that was to be recorded failed:\n" + run.stderr.read())
        self.second, self.before, self.phases = {}, {}, []
        for report in reports:
            kind, event = roles.get(report["role"]), report["output"].get("event")
            at_ms = instant(event)
            if event and event["event"] == "phase":
                self.phases.append(event)
            elif event and at_ms is None and event["event"] == "measured":
                self.before.setdefault(kind, []).append(event)
            elif event and event["event"] == "measured" and RECORDED_S * 1000 <= at_ms < (RECORDED_S + 1) * 1000:
                self.second.setdefault(kind, []).append(event)
        if not self.second.get("robots"):
            sys.exit("nothing of the robots was recorded")

    def in_second(self, kind, second):
        return [moved(event, (second - RECORDED_S) * 1000) for event in self.second.get(kind, [])]

    def due(self):
        """Requests that the robots of an agent were due to send in the recorded second."""
        return sum(event["robots"]["counts"]["due"] for event in self.second["robots"] if "robots" in event)


class Agent:
    """A simulated agent."""

    def __init__(self, fleet, info, name, label):
        self.fleet = fleet
        self.info = dict(info, name=name, labels=[label], instance=len(fleet.agents) + 2, busy=None)
        self.run, self.roles, self.number, self.start_ns = None, {}, 0, None

    def order(self, document):
        """Carries an order out; the response."""
        what = document["what"]
        # An order without anything beside it is its name alone.
        kind, body = (what, {}) if isinstance(what, str) else next(iter(what.items()))
        if kind == "finish":
            self.run, self.start_ns = None, None
            return {"files": []}
        if kind == "begin":
            self.run, self.roles, self.number, self.start_ns = document["run"], {}, 0, None
        elif kind == "start":
            role = kind_of(body["spec"])
            self.roles[role] = body["role"]
            for event in self.fleet.recording.before.get(role, []):
                self.say(role, event)
            listening = body["spec"][role].get("listen", [])
            self.say(role, {"event": "ready", "listening": [address.rsplit(":", 1)[0] + ":9" for address in listening]})
        elif kind == "tell" and body["command"]["command"] == "start":
            self.start_ns = body["command"]["at_monotonic_ns"]
        elif kind == "tell" and body["command"]["command"] == "stop":
            self.say(next(role for role, number in self.roles.items() if number == body["role"]), {"event": "done"})
        return "done"

    def say(self, role, event):
        report = {"number": self.number, "role": self.roles.get(role), "output": {"event": event}}
        name = self.info["name"]
        text = json.dumps(report, separators=(",", ":")).encode()
        self.fleet.connection.publish_once(f"assay.run.{self.run}.{name}", f"{name}-{self.number}", text, "_INBOX.sim.stored")
        self.number += 1
        self.fleet.sent += 1
        self.fleet.sent_bytes += len(text)

    def report(self, second):
        """What happened in a second."""
        if second == 0 and "robots" in self.roles:
            self.say("robots", {"event": "phase", "began": {"phase": 0, "at_ms": 0}})
        for role in [*self.roles, None]:
            for event in self.fleet.recording.in_second(role, second):
                self.say(role, event)

    def end(self, seconds):
        if "robots" in self.roles:
            self.say("robots", {"event": "phase", "ended": {"phase": 0, "at_ms": seconds * 1000, "launched": []}})
            self.say("robots", {"event": "done"})


class Fleet:
    """Simulated agents on one connection: all but one for robots."""

    def __init__(self, url, recording, count):
        self.recording, self.connection = recording, Connection(url)
        self.sent = self.sent_bytes = self.stored = self.exchanges = 0
        self.agents = {}
        info = self.info_of_real()
        for number in range(count):
            name, label = f"sim-{number}", "sim-origins" if number == 0 else "sim-robots"
            self.agents[name] = Agent(self, info, name, label)
        for subject in ("assay.discover", "assay.agent.*.order", "assay.agent.*.clock", "_INBOX.sim.stored"):
            self.connection.subscribe(subject)

    def info_of_real(self):
        self.connection.subscribe("_INBOX.sim.who")
        self.connection.publish("assay.discover", b"", "_INBOX.sim.who")
        while True:
            for subject, _, payload in self.connection.poll(5):
                if subject == "_INBOX.sim.who" and payload:
                    return json.loads(payload)

    def serve(self, patience_s):
        for subject, reply, payload in self.connection.poll(patience_s):
            received_ns = time.monotonic_ns()
            if subject == "_INBOX.sim.stored":
                self.stored += b'"error"' not in payload
            elif subject == "assay.discover":
                for agent in self.agents.values():
                    self.connection.publish(reply, json.dumps(agent.info).encode())
            elif agent := self.agents.get(subject.split(".")[2]):
                if subject.endswith(".clock"):
                    self.exchanges += 1
                    reading = {"instance": agent.info["instance"], "received_ns": received_ns, "unix_us": time.time_ns() // 1000}
                    reading["responded_ns"] = time.monotonic_ns()
                    self.connection.publish(reply, json.dumps(reading).encode())
                else:
                    response = agent.order(json.loads(payload))
                    self.connection.publish(reply, json.dumps(response).encode())

    def start_ns(self):
        """When the schedule begins; none: not all were told."""
        starts = [agent.start_ns for agent in self.agents.values()]
        return None if None in starts else starts[0]


def processor_s(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_mb(pid):
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def peak_mb(pid, known_mb):
    """The most that it ever had."""
    with open(f"/proc/{pid}/status") as file:
        return max([known_mb, *(int(line.split()[1]) * 1024 / 1e6 for line in file if line.startswith("VmHWM"))])


def coordinate(fleet, run, seconds):
    """Plays the agents while the coordinator runs; of each second (when, processor time, memory, and what was sent so far), and the peak of memory."""
    samples, second, peak = [], 0, 0.0
    while run.poll() is None:
        peak = peak_mb(run.pid, peak)
        start_ns = fleet.start_ns()
        now_ns = time.monotonic_ns()
        if start_ns is None or second > seconds:
            fleet.serve(0.1)
            continue
        # What was done in a second is known at its end.
        due_ns = start_ns + (second + 1) * 1_000_000_000
        if now_ns < due_ns:
            fleet.serve(min((due_ns - now_ns) / 1e9, 0.1))
            continue
        if second < seconds:
            samples.append((now_ns / 1e9, processor_s(run.pid), resident_mb(run.pid), fleet.sent, fleet.sent_bytes, fleet.exchanges))
            for agent in fleet.agents.values():
                agent.report(second)
                # Clocks are not kept waiting by the reports of all.
                fleet.serve(0)
        if second == seconds - 1:
            for agent in fleet.agents.values():
                agent.end(seconds)
        second += 1
    return samples, peak


def growth(samples):
    """The slope of memory over time, by least squares, once clocks have all the readings that are kept."""
    samples = samples[FULL_S - SETTLING_S:]
    if len(samples) < 20:
        return f"its growth is measured after the first {FULL_S} s, in 20 s or more"
    times, sizes = [sample[0] / 3600 for sample in samples], [sample[2] for sample in samples]
    return f"{statistics.linear_regression(times, sizes).slope:+.1f} MB an hour after the first {FULL_S} s"


def main():
    count, seconds, rate = ([int(word) for word in sys.argv[1:]] + [200, 60, 500][len(sys.argv) - 1:])[:3]
    with tempfile.TemporaryDirectory() as directory:
        command = [ASSAY, "fleet", "up", "--agents", "1", "--port", "0"]
        up = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=directory)
        try:
            url = next((word for line in up.stderr for word in line.split() if word.startswith("nats://")), None)
            if url is None:
                sys.exit("`assay fleet up` did not start; it needs nats-server")
            measure(url.rstrip(";"), directory, count, seconds, rate)
        finally:
            up.terminate()
            up.wait()


def measure(url, directory, count, seconds, rate):
    source = paired_runs.steady(directory, rate, seconds)
    recording = Recording(url, source, directory)
    fleet = Fleet(url, recording, count)
    run_dir = os.path.join(directory, "run")
    more = ["--duration", f"{seconds}s", "--robots", str(50 * count), "--json"]
    command = run_command(source, url, run_dir, more + ["--robots-on", "sim-robots", "--origins-on", "sim-origins"])
    # Files, since nobody reads a pipe meanwhile.
    with open(os.path.join(directory, "said"), "w+") as said, open(os.path.join(directory, "summary"), "w+") as shown:
        run = subprocess.Popen(command, stdout=shown, stderr=said, text=True)
        samples, peak = coordinate(fleet, run, seconds)
        samples = samples[SETTLING_S:]
        said.seek(0)
        shown.seek(0)
        if run.returncode not in ENDED:
            sys.exit(f"the coordinator ended with exit code {run.returncode}:\n" + said.read())
        summary = json.load(shown)
    if len(samples) < 10:
        sys.exit("the schedule was too short to measure anything; give it 20 seconds or more")
    due, sent = summary["total"]["due"], recording.due() * (count - 1) * seconds
    (first_s, first_cpu_s, first_mb, *first), (last_s, last_cpu_s, last_mb, *last) = samples[0], samples[-1]
    agent_s = count * (last_s - first_s)
    messages, size, exchanges = [(after - before) / agent_s for before, after in zip(first, last)]
    ms = (last_cpu_s - first_cpu_s) * 1000 / agent_s
    print(f"{count} agents for {last_s - first_s:.0f} s; each reported {messages:.1f} messages of {size / messages:,.0f} bytes a second "
          f"and gave its clock {exchanges:.1f} times")
    print(f"processor time of the coordinator: {ms:.3f} ms for each agent and second (target: {TARGET_MS:.0f})")
    print(f"its memory: {first_mb:.1f} MB at first, {last_mb:.1f} MB at last, {growth(samples)}; {peak:.0f} MB at most, when it read its record at the end")
    print(f"requests in its record: {due:,} of {sent:,} that were reported; {fleet.sent - fleet.stored} messages were not confirmed")
    sys.exit(0 if ms <= TARGET_MS and due == sent else 1)


if __name__ == "__main__":
    main()
