"""One part of a soak, in namespaces of its own: starts everything, disturbs it, samples it, ends it. Every line goes to a file at once.

Usage: inside.py ASSAY DIR SECONDS SEED PART CLIENTS
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "torture"))
import aftermath
import namespaces
import samples
from clients import CYCLE_S, Client
from fleet import Fleet

SERVERS = {"a": 9001, "b": 9002, "c": 9003}
SWITCH, SECURE, METRICS, SPE = 8080, 8443, 9100, 8100
SAMPLE_S = 5
# From one disturbance of the switch and its servers to the next.
CALM_S = (12, 28)
DISTURBANCES = {"reloaded": 4, "kept": 1, "rotated": 3, "killed": 3, "stopped": 2}
ROOM_MB = 1024
# Name, port, share of the load, TLS.
CLIENTS = [("plain-1", SWITCH, 0.2, False), ("plain-2", SWITCH, 0.2, False), ("secure", SECURE, 0.2, True),
           ("spe-1", SPE, 0.2, False), ("spe-2", SPE, 0.2, False)]
FILES = [
    # The policy, what is said of server b, and a class.
    ("lc", "", ""),
    ("p2c", "weight = 2", '[[class]]\nname = "slow"\nprefix = "/slow/"\npolicy = "rr"\n'),
    ("wlc", "weight = 3", '[[class]]\nname = "posts"\nmethod = "POST"\n'),
    ("lc", "drain = true", ""),
]


def switch_file(number):
    policy, of_b, classes = FILES[number % len(FILES)]
    servers = "".join(
        f'[[server]]\nname = "{name}"\naddress = "127.0.0.1:{port}"\n{of_b if name == "b" else ""}\n' for name, port in SERVERS.items()
    )
    return f"""listen = "127.0.0.1:{SWITCH}"
metrics = "127.0.0.1:{METRICS}"
policy = "{policy}"
access-log = "access.log"
[tls]
listen = "127.0.0.1:{SECURE}"
[[certificate]]
file = "cert.pem"
key = "key.pem"
[health]
path = "/health"
interval = "1s"
{classes}
{servers}"""


class Soak:
    def __init__(self, assay, part, seed, times):
        self.assay, self.part, self.times, self.chance = assay, part, times, random.Random(seed * 1_000_003 + part)
        self.lock = threading.Lock()
        self.events, self.samples = open("../events.ndjson", "a"), open("../samples.ndjson", "a")
        self.servers, self.reloads, self.rotations, self.lines = {}, 0, 0, 0
        self.ended = threading.Event()

    def told(self, event):
        with self.lock:
            print(json.dumps({"part": self.part} | event), file=self.events, flush=True)

    def start(self, name, command):
        with open(f"{name}.log", "ab") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def serve(self, name):
        self.servers[name] = self.start(f"server-{name}", [sys.executable, "-B", os.path.join(HERE, "bodies.py"), str(SERVERS[name])])

    def wait_for(self, port, process):
        """Until a request is served there."""
        for _ in range(600):
            try:
                return urllib.request.urlopen(f"http://127.0.0.1:{port}/o/0-10", timeout=5).read()
            except OSError:
                if process.poll() is not None:
                    break
                time.sleep(0.1)
        sys.exit(f"nothing listens at port {port}")

    def begin(self, seed):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "30",
                        "-subj", "/CN=soak"], check=True, capture_output=True)
        for name in SERVERS:
            self.serve(name)
        self.write_file()
        self.switch = self.start("switch", [self.assay, "switch", "front.toml", "--quiet"])
        self.wait_for(SWITCH, self.switch)
        self.spe = self.start("spe", [self.assay, "spe", "--listen", f"127.0.0.1:{SPE}", "--origin", f"127.0.0.1:{SWITCH}", "--proxy", "builtin",
                                      "--proxy", "nginx", "--memory", "32MB", "--disk", "64MB", "--collector-memory", "64MB", "--dir", "evaluation"])
        self.wait_for(SPE, self.spe)
        self.fleet = Fleet(self.assay, os.path.join(ROOT, "crates/bin/assay/tests/commands/special.pg"), self.told, seed)
        self.clients = [Client(name, port, share, self.told, seed * 1000 + number, secure)
                        for number, (name, port, share, secure) in enumerate(CLIENTS * self.times)]
        self.fleet.start()
        for client in self.clients:
            client.start()

    def write_file(self):
        with open("front.toml", "w") as file:
            file.write(switch_file(self.reloads))

    def disturb(self):
        kind = self.chance.choices(list(DISTURBANCES), list(DISTURBANCES.values()))[0]
        victim = self.chance.choice(list(SERVERS))
        event = {"event": kind, "at": time.time()}
        if kind == "reloaded":
            self.reloads += 1
            self.write_file()
            self.switch.send_signal(signal.SIGHUP)
        elif kind == "kept":
            # A file with a mistake changes nothing.
            with open("front.toml", "w") as file:
                file.write(switch_file(self.reloads + 1) + "\nnonsense = 1\n")
            self.switch.send_signal(signal.SIGHUP)
            self.ended.wait(1)
            self.write_file()
        elif kind == "rotated":
            self.rotate()
        elif kind == "killed":
            self.servers[victim].kill()
            self.servers[victim].wait()
            event["server"] = victim
            self.told(event)
            self.ended.wait(self.chance.uniform(0.2, 4))
            return self.serve(victim)
        elif kind == "stopped":
            self.servers[victim].send_signal(signal.SIGSTOP)
            self.ended.wait(self.chance.uniform(0.2, 2))
            self.servers[victim].send_signal(signal.SIGCONT)
            event["server"] = victim
        self.told(event)

    def rotate(self):
        """Gives the log another name, has the switch open a new one, and counts the lines of the former."""
        self.rotations += 1
        former = f"access.log.{self.rotations}"
        os.rename("access.log", former)
        self.switch.send_signal(signal.SIGHUP)
        self.ended.wait(3)
        with open(former, "rb") as file:
            self.lines += sum(1 for _ in file)
        os.remove(former)

    def watched(self):
        watched = {"switch": (self.switch.pid, False), "spe": (self.spe.pid, True), "nats-server": (self.fleet.server.pid, False)}
        return watched | {f"agent {name}": (agent.pid, False) for name, agent in self.fleet.agents.items()}

    def sampled(self, begun):
        while not self.ended.wait(SAMPLE_S):
            now = time.monotonic() - begun
            for row in samples.all_of(self.watched()):
                print(json.dumps({"part": self.part, "at": round(time.time(), 1), "into_s": round(now, 1)} | row), file=self.samples)
            self.samples.flush()

    def go_on(self, seconds):
        begun = time.monotonic()
        self.told({"event": "begun", "at": time.time(), "cycle_s": CYCLE_S})
        sampler = threading.Thread(target=self.sampled, args=(begun,), daemon=True)
        sampler.start()
        while time.monotonic() - begun < seconds:
            self.ended.wait(min(self.chance.uniform(*CALM_S), max(0.1, seconds - (time.monotonic() - begun))))
            for name, process in (("switch", self.switch), ("spe", self.spe), *self.fleet.agents.items()):
                if process.poll() is not None:
                    self.told({"event": "ended", "at": time.time(), "process": name, "code": process.returncode})
                    return time.monotonic() - begun
            self.disturb()
        self.ended.set()
        sampler.join()
        return time.monotonic() - begun

    def counters(self):
        """What the switch has counted, by the name of the metric."""
        text = urllib.request.urlopen(f"http://127.0.0.1:{METRICS}/metrics", timeout=10).read().decode()
        sums = {}
        for name, value in re.findall(r"^(\w+)(?:\{[^}]*\})? (\S+)$", text, re.MULTILINE):
            sums[name] = sums.get(name, 0) + float(value)
        return sums

    def finish(self):
        """Ends all of it: what it ended with, and what does not add up."""
        for client in self.clients:
            client.ended.set()
        for client in self.clients:
            client.join(90)
        problems = []
        codes = {f"agent {name}": code for name, code in self.fleet.stop().items()}
        self.spe.send_signal(signal.SIGINT)
        codes["spe"] = self.spe.wait(120)
        counted = self.counters()
        self.switch.send_signal(signal.SIGTERM)
        codes["switch"] = self.switch.wait(60)
        problems += [f"{name} ended with {code}" for name, code in codes.items() if code not in (0, 105 if name.startswith("agent") else 0)]
        with open("access.log", "rb") as file:
            self.lines += sum(1 for _ in file)
        if self.lines != counted["assay_switch_requests_total"]:
            problems.append(f"the access logs have {self.lines} lines, and {counted['assay_switch_requests_total']:.0f} requests were counted")
        report = subprocess.run([self.assay, "spe", "report", "evaluation", "--json"], capture_output=True, text=True)
        if report.returncode not in (0, 96, 99):
            problems.append(f"the evaluation cannot be read: {report.returncode} {report.stderr[-300:]}")
        for server in self.servers.values():
            server.kill()
            server.wait()
        running, files = aftermath.gone(namespaces.processes)
        problems += [f"still running: {name}" for name in running] + [f"left: {name}" for name in files]
        problems += panics()
        return {"codes": codes, "problems": problems, "switch": {name: value for name, value in counted.items() if name.endswith("_total")},
                "sent": sum(client.sent for client in self.clients), "right": sum(client.right for client in self.clients),
                "reopened": sum(client.reopened for client in self.clients), "runs": self.fleet.runs, "runs_right": self.fleet.right,
                "reloads": self.reloads, "rotations": self.rotations}


def panics():
    found = []
    for where, _, names in os.walk("."):
        for name in (name for name in names if name.endswith(".log")):
            with open(os.path.join(where, name), errors="replace") as file:
                found += [f"{name}: {line.strip()[:200]}" for line in file if "panicked at" in line]
    return found


def main():
    assay, directory, seconds, seed, part = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
    times = int(sys.argv[6])
    assay = namespaces.mounted(assay, ROOM_MB)
    work = os.path.join(directory, f"part-{part}")
    os.makedirs(work)
    os.chdir(work)
    soak = Soak(assay, part, seed, times)
    soak.begin(seed + part)
    lasted_s = soak.go_on(seconds)
    soak.told({"event": "over", "at": time.time(), "lasted_s": round(lasted_s, 1)} | soak.finish())


main()
