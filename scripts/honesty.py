"""Counts how often Assay finds out that it, or the machine, shaped a result, and whether it calls a number known that it shaped.

Every case spoils a run in one way, looks for the doubt under its own name and role, and goes through the numbers:

  robots-busy-loop    robots on one processor with busy loops, origins on the other
  origins-busy-loop   the same for origins
  robots-stopped      robots are stopped (SIGSTOP) for 300 ms in the middle of the second phase
  origins-stopped     the same for origins
  descriptors-plan    64 descriptors: the plan must be refused, with its sum
  descriptors-run     robots lose the right to open more descriptors on the way
  ports-plan          100 source ports: the plan must be refused, with its sum (needs root: a network of its own)
  ports-run           all but ten source ports are taken away on the way (the same)
  slow-target         a target that thinks for two seconds, thousands waiting: nothing may be held against Assay
  sound               an undisturbed run through the built-in proxy

*Spoiled* are, where robots request directly from origins that do not think, all times (mean, percentiles, maximum; of all requests, hits,
misses; response, service and first byte) of more than QUIET_MS, which no response takes unless something was late; and, where requests
were lost, all times, rates and hit ratios of that phase. None may be called known, and each interval must hold a time without the
disturbance. The last two cases count which headline numbers are not known, and which doubts there were without a disturbance by this
script: other programs may be the reason, and what they used of the machine is shown beside.

A line per run goes to --json, and runs that are there already are not made again: what was interrupted is gone on with.
Needs a build of assay (the release build, or the one that ASSAY names). Everything happens on loopback.
Usage: honesty.py [--times N] [--json FILE] [CASE]...
"""

import collections
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import kept_runs
from kept_runs import ASSAY, HERE

WORKLOADS = os.path.join(HERE, "crates/bin/assay/tests/real/workloads")
CPUS = sorted(os.sched_getaffinity(0))
REFUSED = 2
# Less than this takes a response of an origin that does not think, on this machine, if nothing is late.
QUIET_MS = 5.0
# Beside one busy loop alone, a role that sleeps often waits for some microseconds only, which changes little.
LOOPS = 3
SOUND_SECONDS = 12
SPANS = ("response_time_ms", "service_time_ms", "ttfb_ms")
CLASSES = ("all", "completed", "hit", "miss", "other")
NAMES = ("mean", "p50", "p90", "p99", "p999", "max")
UP = "ip link set lo up && "
PORTS = "/proc/sys/net/ipv4/ip_local_port_range"

SOUND = """
Content cnt = {{ kind = "thing"; size = exp(11KB); cachable = 80%; }};
Server S = {{ kind = "srv"; contents = [cnt]; addresses = ['10.0.0.1:9000']; }};
Robot R = {{
    kind = "rbt"; origins = S.addresses; addresses = ['10.0.1.1' ** 50]; req_rate = 10/sec;
    recurrence = 60%; pop_model = {{ pop_distr = popUnif(); }}; open_conn_lmt = 4;
}};
Phase top = {{ name = "top"; goal.duration = {seconds}sec; }};
schedule(top);
use(S, R);
"""


class Ended:
    """What a run left."""

    def __init__(self, code, stderr, run_dir):
        self.code, self.stderr = code, stderr
        self.info, self.summary = (self.read(os.path.join(run_dir, name)) for name in ("run.json", "summary.json"))

    @staticmethod
    def read(path):
        try:
            with open(path) as file:
                return json.load(file)
        except FileNotFoundError:
            return None

    def doubts(self):
        found = self.info["verdict"]["doubts"] if self.info else []
        return [doubt for doubt in found if doubt["serious"]]

    def found(self, reasons, role=""):
        """A serious doubt, of one of these reasons and of this role."""
        mine = [d for d in self.doubts() if d["reason"] in reasons and role in (d["role"], "")]
        return bool(mine)


class Going:
    """A run that goes on."""

    def __init__(self, workload, args, before=()):
        self.dir = tempfile.mkdtemp(prefix="honesty-")
        self.run_dir = os.path.join(self.dir, "run")
        command = [*before, ASSAY, "run", workload, "--no-live", "--no-report", "--run-dir", self.run_dir, *args]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def wait_for(self, phase, into_s):
        """Waits until the run's clock is so far into a phase; gives its head."""
        while self.process.poll() is None:
            try:
                with open(os.path.join(self.run_dir, "run.json")) as file:
                    info = json.load(file)
                start_ms = info["phases"][phase]["start_ms"]
                if start_ms is not None and time.time() * 1000 >= info["started_unix_ms"] + start_ms + into_s * 1000:
                    return info
            except (FileNotFoundError, IndexError):
                pass
            time.sleep(0.02)
        return None

    def end(self):
        stderr = self.process.communicate()[1]
        ended = Ended(self.process.returncode, stderr, self.run_dir)
        shutil.rmtree(self.dir, ignore_errors=True)
        return ended


def workload(name):
    return os.path.join(WORKLOADS, name)


def pid_of(info, role):
    return next(placed["pid"] for placed in info["placement"] if placed["role"] == role)


def numbers(phase, classes=CLASSES):
    """The times of a phase: what each is, its value, and how well it is known."""
    for span in SPANS:
        for kind in classes:
            times = phase[span].get(kind) or {}
            for name in NAMES:
                own = (times.get("own") or {}).get(name)
                if own and times.get(name) is not None:
                    yield f"{phase['name']} {span} {kind} {name}", times[name], own


def spoiled_times(ended):
    """Of times that something was late in: how many there are, and which are called known or have an interval without a quiet time."""
    spoiled, wrong = 0, []
    for phase in ended.summary["phases"]:
        for what, value, own in numbers(phase):
            if value > QUIET_MS:
                spoiled += 1
                if own["certainty"] == "known" or (own.get("low") or 0) > QUIET_MS:
                    wrong.append(f"{what}: {value} {own}")
    return spoiled, wrong


def spoiled_by_loss(ended):
    """The same of a phase that lost requests: anything about it could have been different."""
    phase = ended.summary["phases"][1]
    owns = [(what, own) for what, _, own in numbers(phase, ("all",))]
    rates = ("rate.measured", "dhr.measured", "bhr.measured")
    owns += [(name, phase["own"].get(name, {"certainty": "known"})) for name in rates]
    return len(owns), [f"{what}: {own}" for what, own in owns if own["certainty"] == "known"]


def beside_a_busy_loop(burnt):
    cpus = {"robots": CPUS[0], "origins": CPUS[-1]}
    burners = []
    try:
        for _ in range(LOOPS):
            command = [sys.executable, "-c", "while True: pass"]
            burners.append(subprocess.Popen(command, preexec_fn=lambda: os.sched_setaffinity(0, {cpus[burnt]})))
        args = ["--direct", "--robot-cpus", str(cpus["robots"]), "--origin-cpus", str(cpus["origins"])]
        ended = Going(workload("busy.pg"), args).end()
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
    reasons = ["starved", "stalled"] + (["late"] if burnt == "robots" else [])
    return ended.found(reasons, burnt), ended, spoiled_times(ended)


def times(seen):
    """The instants of stalls that a doubt tells, in milliseconds."""
    return [float(second) * 1000 for second in re.findall(r" at ([0-9.]+) s", seen)]


def stopped(role):
    going = Going(workload("steady.pg"), ["--direct"])
    info = going.wait_for(1, 1.5)
    pid = pid_of(info, role)
    at_ms = time.time() * 1000 - info["started_unix_ms"]
    os.kill(pid, signal.SIGSTOP)
    time.sleep(0.3)
    os.kill(pid, signal.SIGCONT)
    ended = going.end()
    mine = [d for d in ended.doubts() if d["reason"] == "stalled" and d["role"] == role]
    right = [d for d in mine if 1 in d["phases"] and any(abs(at - at_ms) < 1000 for at in times(d["seen"]))]
    return bool(right), ended, spoiled_times(ended)


def descriptors_plan():
    going = Going(workload("plain.pg"), ["--direct"], ["sh", "-c", 'ulimit -n 64 && exec "$0" "$@"'])
    ended = going.end()
    return ended.code == REFUSED and "descriptors of robots" in ended.stderr, ended, (0, [])


def descriptors_run():
    going = Going(workload("short.pg"), ["--direct"])
    info = going.wait_for(1, 0)
    resource.prlimit(pid_of(info, "robots"), resource.RLIMIT_NOFILE, (12, 4096))
    ended = going.end()
    return ended.found(["descriptors"], "robots"), ended, spoiled_by_loss(ended)


def own_network(script):
    return ["unshare", "--net", "sh", "-c", script + 'exec "$0" "$@"']


def ports_plan():
    going = Going(workload("short.pg"), ["--direct"], own_network(f"{UP} echo 20000 20099 >{PORTS} && "))
    ended = going.end()
    return ended.code == REFUSED and "ports" in ended.stderr, ended, (0, [])


def ports_run():
    with tempfile.TemporaryDirectory() as tmp:
        less = os.path.join(tmp, "less")
        watch = f"{UP} {{ until [ -e {less} ]; do kill -0 $$ || exit; sleep 0.05; done; echo 20000 20009 >{PORTS}; }} & {UP}"
        going = Going(workload("short.pg"), ["--direct"], own_network(watch))
        going.wait_for(1, 0)
        open(less, "w").close()
        ended = going.end()
    return ended.found(["ports"], "robots"), ended, spoiled_by_loss(ended)


class SlowTarget:
    """A server that responds to everything after two seconds, with nothing that any origin made."""

    RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    def __init__(self):
        self.listener = socket.create_server((f"127.201.{os.getpid() % 250 + 1}.7", 0), backlog=1024)
        self.address = "%s:%d" % self.listener.getsockname()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        data = b""
        with client:
            while True:
                while b"\r\n\r\n" not in data:
                    more = client.recv(65536)
                    if not more:
                        return
                    data += more
                head, data = data.split(b"\r\n\r\n", 1)
                if b"health" not in head:
                    time.sleep(2)
                client.sendall(self.RESPONSE)


def slow_target():
    target = SlowTarget()
    ended = Going(workload("waiting.pg"), ["--proxy", target.address]).end()
    target.listener.shutdown(socket.SHUT_RDWR)
    target.listener.close()
    return not ended.doubts(), ended, (0, [])


def sound():
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "sound.pg")
        with open(path, "w") as file:
            file.write(SOUND.format(seconds=SOUND_SECONDS))
        ended = Going(path, []).end()
    return not ended.doubts(), ended, (0, [])


def busy_s():
    """Processor time of the machine, and of what this script started."""
    with open("/proc/stat") as file:
        ticks = [int(word) for word in file.readline().split()[1:]]
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(ticks[:3] + ticks[5:7]) / os.sysconf("SC_CLK_TCK"), children.ru_utime + children.ru_stime


def looked_at(case, seed, run):
    """One run of a case, as a record."""
    begun, (machine, own) = time.monotonic(), busy_s()
    right, ended, (spoiled, wrong) = run()
    machine, own = (after - before for after, before in zip(busy_s(), (machine, own)))
    wall = (time.monotonic() - begun) * os.cpu_count()
    headline = ended.summary["headline"] if ended.summary else {"roughly": [], "unknown": []}
    return {
        "case": case,
        "seed": seed,
        "right": right,
        "code": ended.code,
        "doubts": [f"{doubt['reason']} {doubt['role']}".strip() for doubt in ended.doubts()],
        "spoiled": spoiled,
        "wrong": wrong,
        "not_known": headline["roughly"] + headline["unknown"],
        "others": max(0.0, machine - own) / wall,
        "stderr": "" if ended.summary else ended.stderr.strip()[-300:],
    }


CASES = {
    "robots-busy-loop": lambda: beside_a_busy_loop("robots"),
    "origins-busy-loop": lambda: beside_a_busy_loop("origins"),
    "robots-stopped": lambda: stopped("robots"),
    "origins-stopped": lambda: stopped("origins"),
    "descriptors-plan": descriptors_plan,
    "descriptors-run": descriptors_run,
    "ports-plan": ports_plan,
    "ports-run": ports_run,
    "slow-target": slow_target,
    "sound": sound,
}


def counted(words):
    """What there is, and how often."""
    return ", ".join(f"{word} {times}" for word, times in sorted(collections.Counter(words).items())) or "none"


def report(records):
    """A row for each case."""
    print("| case | runs | as it should be | spoiled numbers | called known | headline numbers not known | others used | doubts where it is not |")
    print("|---|--:|--:|--:|--:|---|--:|---|")
    for case in CASES:
        mine = [record for record in records if record["case"] == case]
        if not mine:
            continue
        right, spoiled, wrong = (sum(each(record) for record in mine) for each in (
            lambda record: record["right"], lambda record: record["spoiled"], lambda record: len(record["wrong"])))
        others = sorted(record["others"] for record in mine)[len(mine) // 2]
        less = counted(name for record in mine for name in record["not_known"])
        odd = counted(doubt for record in mine if not record["right"] for doubt in record["doubts"] or [f"exit code {record['code']}"])
        print(f"| {case} | {len(mine)} | {right} | {spoiled} | {wrong} | {less} | {others:.0%} | {odd} |")


def main():
    parser = kept_runs.parser(__doc__, CASES, 20, "honesty.jsonl")
    args = kept_runs.parse(parser, CASES)
    if len(CPUS) < 2:
        parser.error("two processors are needed")
    kept = kept_runs.Kept(args.json)
    for seed in range(1, args.times + 1):
        for case in args.case:
            if not kept.has(case, seed):
                kept.add(looked_at(case, seed, CASES[case]))
    report(kept.records)


if __name__ == "__main__":
    main()
