"""Counts how often Assay finds out that it, or the machine, shaped a result, and how often it says so of a sound run.

Every case spoils a run in one way and looks for the doubt under its own name and role:

  robots-busy-loop    robots on one processor with a busy loop, origins on the other
  origins-busy-loop   the same for origins
  robots-stopped      robots are stopped (SIGSTOP) for 300 ms in the middle of the second phase
  origins-stopped     the same for origins
  descriptors-plan    64 descriptors: the plan must be refused, with its sum
  descriptors-run     robots lose the right to open more descriptors on the way
  ports-plan          100 source ports: the plan must be refused, with its sum (needs root: a network of its own)
  ports-run           all but ten source ports are taken away on the way (the same)
  slow-target         a target that thinks for two seconds, thousands waiting: nothing may be held against Assay
  sound               an undisturbed run through the built-in proxy

The last two are counted on a quiet machine apart: a bare timer was on time before the run (no doubt `unquiet`), and so
was an observer of this script's own, which sleeps and wakes on every processor during the run, in 99 of 100 cases. What
other programs used of the machine is shown beside, because this script cannot keep them away; `chrt -f 1` before it does.

Needs a build of assay (the release build, or the one that ASSAY names). Everything happens on loopback.
Usage: honesty.py [--times N] [--sound N] [--seconds S] [--json FILE] [CASE]...
"""

import argparse
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

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ASSAY = os.environ.get("ASSAY", os.path.join(HERE, "target/release/assay"))
WORKLOADS = os.path.join(HERE, "crates/cli/tests/e2e/workloads")
CPUS = sorted(os.sched_getaffinity(0))
OBSERVED = ("slow-target", "sound")
UNDECIDED = 96
REFUSED = 2
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
        try:
            with open(os.path.join(run_dir, "run.json")) as file:
                self.info = json.load(file)
        except FileNotFoundError:
            self.info = None

    def doubts(self, serious=True):
        found = self.info["verdict"]["doubts"] if self.info else []
        return [doubt for doubt in found if doubt["serious"] or not serious]

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


def beside_a_busy_loop(burnt):
    cpus = {"robots": CPUS[0], "origins": CPUS[-1]}
    burner = subprocess.Popen(
        [sys.executable, "-c", "while True: pass"],
        preexec_fn=lambda: os.sched_setaffinity(0, {cpus[burnt]}),
    )
    try:
        args = ["--direct", "--robot-cpus", str(cpus["robots"]), "--origin-cpus", str(cpus["origins"])]
        ended = Going(workload("busy.pg"), args).end()
    finally:
        burner.kill()
        burner.wait()
    reasons = ["starved", "stalled"] + (["late"] if burnt == "robots" else [])
    return ended.found(reasons, burnt), ended


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
    return bool(right), ended


def descriptors_plan():
    going = Going(workload("plain.pg"), ["--direct"], ["sh", "-c", 'ulimit -n 64 && exec "$0" "$@"'])
    ended = going.end()
    return ended.code == REFUSED and "descriptors of robots" in ended.stderr, ended


def descriptors_run():
    going = Going(workload("short.pg"), ["--direct"])
    info = going.wait_for(1, 0)
    resource.prlimit(pid_of(info, "robots"), resource.RLIMIT_NOFILE, (12, 4096))
    ended = going.end()
    return ended.found(["descriptors"], "robots"), ended


def own_network(script):
    return ["unshare", "--net", "sh", "-c", script + 'exec "$0" "$@"']


def ports_plan():
    going = Going(workload("short.pg"), ["--direct"], own_network(f"{UP} echo 20000 20099 >{PORTS} && "))
    ended = going.end()
    return ended.code == REFUSED and "ports" in ended.stderr, ended


def ports_run():
    with tempfile.TemporaryDirectory() as tmp:
        less = os.path.join(tmp, "less")
        watch = f"{UP} {{ until [ -e {less} ]; do kill -0 $$ || exit; sleep 0.05; done; echo 20000 20009 >{PORTS}; }} & {UP}"
        going = Going(workload("short.pg"), ["--direct"], own_network(watch))
        going.wait_for(1, 0)
        open(less, "w").close()
        ended = going.end()
    return ended.found(["ports"], "robots"), ended


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
    return not ended.doubts(), ended


def sound(seconds):
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "sound.pg")
        with open(path, "w") as file:
            file.write(SOUND.format(seconds=seconds))
        ended = Going(path, []).end()
    return ended.code == 0 and not ended.doubts(), ended


OBSERVER = """
import os, signal, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
lags = []
def end(*_):
    lags.sort()
    print(lags[int(len(lags) * 0.99)] if lags else 0.0, lags[-1] if lags else 0.0)
    sys.stdout.flush()
    os._exit(0)
signal.signal(signal.SIGTERM, end)
due = time.monotonic()
while True:
    due += 0.007
    time.sleep(max(0.0, due - time.monotonic()))
    now = time.monotonic()
    lags.append(now - due)
    due = max(due, now - 0.007)
"""


class Observer:
    """How late a sleeper wakes on each processor: what the machine does to anybody."""

    def __init__(self):
        command = [sys.executable, "-c", OBSERVER]
        self.processes = [
            subprocess.Popen([*command, str(cpu)], stdout=subprocess.PIPE, text=True) for cpu in CPUS
        ]

    def end(self):
        """The 99th percentile and the maximum of the worst processor, in seconds."""
        for process in self.processes:
            process.terminate()
        seen = [process.communicate()[0].split() for process in self.processes]
        numbers = [[float(word) for word in words] for words in seen if len(words) == 2]
        return [max(column) for column in zip(*numbers)] or [0.0, 0.0]


def busy_s():
    """Processor time of the machine, and of what this script started."""
    with open("/proc/stat") as file:
        ticks = [int(word) for word in file.readline().split()[1:]]
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(ticks[:3] + ticks[5:7]) / os.sysconf("SC_CLK_TCK"), children.ru_utime + children.ru_stime


def judge(case, run):
    """One run of a case, as a record."""
    begun, (machine, own) = time.monotonic(), busy_s()
    observer = Observer() if case in OBSERVED else None
    right, ended = run()
    lag = observer.end() if observer else None
    machine, own = (after - before for after, before in zip(busy_s(), (machine, own)))
    wall = (time.monotonic() - begun) * os.cpu_count()
    told = [f"{d['reason']} {d['role']}".strip() for d in ended.doubts()]
    return {
        "case": case,
        "right": right,
        "code": ended.code,
        "serious": told,
        "worth_knowing": [d["reason"] for d in ended.doubts(serious=False) if not d["serious"]],
        "lag": lag,
        "quiet": lag and lag[0] < 0.001 and not any(d["reason"] == "unquiet" for d in ended.doubts(serious=False)),
        "others": max(0.0, machine - own) / wall,
        "seen": [d["seen"] for d in ended.doubts()],
        "stderr": ended.stderr.strip()[-300:] if ended.code not in (0, UNDECIDED) else "",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20, help="runs of each case")
    parser.add_argument("--sound", type=int, default=50, help="sound runs")
    parser.add_argument("--seconds", type=int, default=12, help="length of a sound run")
    parser.add_argument("--json", help="write a line per run here")
    parser.add_argument("case", nargs="*")
    args = parser.parse_args()
    cases = {
        "robots-busy-loop": lambda: beside_a_busy_loop("robots"),
        "origins-busy-loop": lambda: beside_a_busy_loop("origins"),
        "robots-stopped": lambda: stopped("robots"),
        "origins-stopped": lambda: stopped("origins"),
        "descriptors-plan": descriptors_plan,
        "descriptors-run": descriptors_run,
        "ports-plan": ports_plan,
        "ports-run": ports_run,
        "slow-target": slow_target,
        "sound": lambda: sound(args.seconds),
    }
    unknown = [case for case in args.case if case not in cases]
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}; there are {', '.join(cases)}")
    if len(CPUS) < 2:
        parser.error("two processors are needed")
    out = open(args.json, "a") if args.json else None
    print("| case | runs | as it should be | on a quiet machine | others used | else |")
    print("|---|---|---|---|---|---|")
    for case in args.case or cases:
        records = []
        for _ in range(args.sound if case == "sound" else args.times):
            record = judge(case, cases[case])
            records.append(record)
            if out:
                out.write(json.dumps(record) + "\n")
                out.flush()
        report(case, records)


def report(case, records):
    right = sum(record["right"] for record in records)
    quiet = [record for record in records if record["quiet"]]
    others = sorted(record["others"] for record in records)
    wrong = sorted({", ".join(r["serious"]) or f"exit {r['code']}" for r in records if not r["right"]})
    quiet_right = f"{sum(record['right'] for record in quiet)} of {len(quiet)}" if case in OBSERVED else ""
    middle = f"{others[len(others) // 2]:.0%} (up to {others[-1]:.0%})"
    print(f"| {case} | {len(records)} | {right} | {quiet_right} | {middle} | {'; '.join(wrong)} |", flush=True)


if __name__ == "__main__":
    main()
