"""Counts how often a run on several machines keeps what the manual promises: clocks within their stated bounds, faults named, nothing left.

Each run has four machines of its own (scripts/machines.sh): network namespaces whose monotonic clocks are 60 s, an hour, 300 s and 0 s
ahead of the coordinator's, and drift by 100 ppm one way or the other (through the clock that an agent gives: a namespace cannot drift).
The true offsets are known at every instant, so a bound that does not hold them is seen.

*Clocks*: `clocks` has a quick connection to the server, `clocks-1ms` and `clocks-30ms` one that is that much longer each way,
`clocks-uneven` one of 1 ms there and 30 ms back. At the start and at the end, the offset of each machine must lie within its stated error, and no response
be wrong.

*Faults*, in the middle of a run unless another time is said. What each must end with is in CASES:

- `agent-killed`, `agent-frozen` (the agent alone), `machine-frozen` (the agent and its roles, until the run has ended);
- `cut-5s`, `cut-25s`, `cut-300s`: a machine's network is cut for so long;
- `server-restarted`: the server is killed and started again, also when roles have ended (`server-restarted-late`); `coordinator-killed`;
- `coordinator-resumed`, `coordinator-resumed-late`: it is killed, and `assay fleet resume` takes the run up after 5 s, or when agents have given up;
- `disk-full`: nothing more can be written where an agent writes, which keeps an xact log; `disk-full-before`: so from before the run;
- `clock-stepped`: an agent's clock is suddenly 250 ms ahead.

After each, agents must be idle within 30 s, without a child or a file of the run, and the server without a stream of it; the coordinator
left neither a process nor a temporary file.

A line per run goes to --json, and runs that are there already are not made again: what was interrupted is gone on with.
Needs root, nats-server and a build of assay (the release build, or the one that ASSAY names).
Usage: fleet_runs.py [--times N] [--jobs N] [--json FILE] [CASE]...
"""

import collections
import concurrent.futures
import contextlib
import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

import kept_runs
from kept_runs import ASSAY, HERE

URL = "nats://10.9.0.254:4222"
AHEAD_S = {"m1": 60, "m2": 3600, "m3": 300, "m4": 0}
DRIFT_PPM = {"m1": 100, "m2": -100, "m3": 100, "m4": -100}


@dataclasses.dataclass(frozen=True)
class Case:
    """A case: how it is run, and what it must end with."""

    length_s: int = 3
    codes: frozenset = frozenset({0, 96})
    # What standard error must name.
    says: tuple = ()
    delay_ms: str = ""
    # Agents that are not there afterwards.
    lost: int = 0
    # The size of the disk that m1 writes on; 0: that of everything else.
    disk_kb: int = 0
    robots_on: str = "robots"
    flags: tuple = ()
    # Whether the run is complete, so that its numbers are held against the truth.
    complete: bool = True


def fault(length_s, codes, *says, **more):
    return Case(length_s, frozenset(codes), says, **{"complete": 0 in codes} | more)


LOST = "the machine m1 was lost"
SILENT = "its agent said nothing for 15 s"
FULL = ("on the machine m1: cannot write the xact log", "the disk is full")
DISK_KB = 32 * 1024
CASES = {
    "clocks": Case(),
    "clocks-1ms": Case(delay_ms="1 1"),
    "clocks-30ms": Case(delay_ms="30 30"),
    "clocks-uneven": Case(delay_ms="1 30"),
    "agent-killed": fault(12, {1}, "the machine m4 was lost", "its agent has ended", "it ran origins", lost=1),
    "agent-frozen": fault(30, {1}, LOST, SILENT, "it ran robots"),
    "machine-frozen": fault(30, {1}, LOST, SILENT, "it ran robots"),
    "cut-5s": fault(12, {0, 96, 99}),
    "cut-25s": fault(40, {1}, LOST, SILENT, "it ran robots"),
    "cut-300s": fault(30, {1}, LOST, SILENT, "it ran robots"),
    "server-restarted": fault(12, {0, 96, 99}),
    "server-restarted-late": fault(12, {0, 96, 99}),
    "coordinator-killed": fault(12, {-signal.SIGKILL}),
    "coordinator-resumed": fault(20, {0, 96, 99}, flags=("--agents-wait", "60s")),
    "coordinator-resumed-late": fault(40, {1}, LOST, "its agent waited 15s for a coordinator", "it ran robots"),
    "disk-full": fault(12, {96, 99}, *FULL, disk_kb=DISK_KB, robots_on="m1", flags=("--xact-log",), complete=True),
    "disk-full-before": fault(12, {2}, "m1 (robots 0 to 19): too few bytes for the agent's directory", disk_kb=DISK_KB),
    "clock-stepped": fault(12, {0, 96, 99}),
}
# These come before the run, not in the middle of it.
BEFORE = {"disk-full-before"}
IDLE_WITHIN_S = 30
# How much of what a run said is kept.
KEPT_CHARACTERS = 1500
# What takes the space of a full disk.
FILLER = "filler"
# Requests in a second of a run with a fault.
FAULT_RATE = "40"


def login(directory):
    return ["--nats-user", "run", "--nats-password-file", os.path.join(directory, "password")]


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(child) for child in file.read().split()]
    except FileNotFoundError:
        return []


def agents():
    """Process ids of the agents of this network, by name."""
    found = {}
    mine = os.readlink("/proc/self/ns/net")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline") as file:
                words = file.read().split("\0")
            is_agent = words[:2] == [ASSAY, "agent"] and os.readlink(f"/proc/{pid}/ns/net") != mine
        except (FileNotFoundError, ProcessLookupError):
            continue
        if is_agent and words[words.index("--dir") + 1].startswith(os.getcwd()):
            found[words[words.index("--name") + 1]] = int(pid)
    return found


def wait_for_start(run, run_dir):
    """Until the schedule has begun, and a second more."""
    while run.poll() is None:
        try:
            with open(os.path.join(run_dir, "run.json")) as file:
                if json.load(file)["phases"][0]["start_ms"] is not None:
                    time.sleep(1)
                    return
        except (FileNotFoundError, IndexError, ValueError):
            pass
        time.sleep(0.05)


def fill(directory):
    """Leaves no byte free where m1 writes."""
    with contextlib.suppress(OSError), open(os.path.join(directory, "m1", FILLER), "wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def harm(case, run, directory, said=None):
    """The fault of a case; what takes the place of the coordinator, if that ended."""
    if case == "agent-killed":
        os.kill(agents()["m4"], signal.SIGKILL)
    elif case in ("agent-frozen", "machine-frozen"):
        agent = agents()["m1"]
        frozen = [agent, *(children(agent) if case == "machine-frozen" else [])]
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        try:
            run.wait(60)
        finally:
            for pid in frozen:
                os.kill(pid, signal.SIGCONT)
    elif case.startswith("cut-"):
        port, length_s = ("port3", 5) if case == "cut-5s" else ("port1", int(case[4:-1]))
        subprocess.run(["ip", "link", "set", port, "down"], check=True)
        time.sleep(length_s)
        subprocess.run(["ip", "link", "set", port, "up"], check=True)
    elif case == "server-restarted":
        restart_server(directory)
    elif case == "server-restarted-late":
        # When roles have ended, and their files are being stored.
        while all(children(pid) for pid in agents().values()):
            time.sleep(0.005)
        restart_server(directory)
    elif case == "coordinator-killed":
        run.kill()
    elif case.startswith("coordinator-resumed"):
        run.kill()
        run.wait()
        # Agents have given up when none of them has a role.
        time.sleep(5)
        while case.endswith("late") and any(children(pid) for pid in agents().values()):
            time.sleep(0.5)
        command = [ASSAY, "fleet", "resume", "run", *login(directory), "--no-live", "--no-report"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
    elif case.startswith("disk-full"):
        fill(directory)
    elif case == "clock-stepped":
        os.kill(agents()["m1"], signal.SIGUSR1)
    return run


def restart_server(directory):
    """Kills the server and starts it again with what it has on its disk."""
    with open(os.path.join(directory, "nats.pid")) as file:
        os.kill(int(file.read()), signal.SIGKILL)
    time.sleep(0.5)
    subprocess.Popen(["nats-server", "-c", "nats.conf"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def streams(directory):
    """What the server keeps of runs, object stores among it."""
    try:
        return os.listdir(os.path.join(directory, "jetstream/jetstream/$G/streams"))
    except FileNotFoundError:
        return []


def left_behind(case, directory):
    """What agents still have after some time; nothing, if all is well."""
    deadline = time.monotonic() + IDLE_WITHIN_S
    while True:
        left = []
        for name, pid in agents().items():
            if children(pid):
                left.append(f"{name} has children")
            files = set(os.listdir(os.path.join(directory, name))) - {FILLER}
            if files:
                left.append(f"{name} has files: {', '.join(sorted(files))}")
        listed = subprocess.run([ASSAY, "fleet", "--nats", URL, "--json", *login(directory)], capture_output=True, text=True)
        known = json.loads(listed.stdout)["agents"] if listed.returncode == 0 else []
        if len(known) != 4 - CASES[case].lost:
            left.append(f"{len(known)} agents are there")
        left += [f"{agent['name']} is busy" for agent in known if agent.get("busy")]
        left += [f"the coordinator left {name}" for name in os.listdir(directory) if name.startswith("assay-")]
        left += [] if case == "coordinator-killed" else [f"the server has the stream {name}" for name in streams(directory)]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.2)


def inside(case, path):
    """One run, where the machines are: its record."""
    directory, run_dir = os.getcwd(), os.path.join(os.getcwd(), "run")
    what = CASES[case]
    workload = os.path.join(HERE, "crates/bin/assay/tests/commands/special.pg")
    command = [ASSAY, "run", workload, "--fleet", URL, *login(directory), "--robots-on", what.robots_on, "--proxy-on", "proxy"]
    command += ["--origins-on", "origins", "--no-live", "--no-report", "--seed", "1", "--duration", f"{what.length_s}s"]
    command += ["--run-dir", run_dir, *what.flags]
    if not case.startswith("clocks"):
        # Several at a time are no load for the machine.
        command += ["--rate", FAULT_RATE]
    if case in BEFORE:
        harm(case, None, directory)
    with open("stderr", "w+") as said:
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
        if case not in BEFORE and not case.startswith("clocks"):
            wait_for_start(run, run_dir)
            run = harm(case, run, directory, said)
        code = run.wait(120)
        said.seek(0)
        # Not the progress, a line a second.
        said = "".join(line for line in said if not re.match(r" *\d+:\d\d ", line)).strip()
    record = {"code": code, "said": said[-KEPT_CHARACTERS:], "wrong": []}
    if code not in what.codes:
        record["wrong"].append(f"it ended with {code}: {said[-KEPT_CHARACTERS:]}")
    record["wrong"] += [f"nothing said `{says}`: {said[-KEPT_CHARACTERS:]}" for says in what.says if says not in said]
    record["wrong"] += left_behind(case, directory)
    if what.complete and os.path.exists(os.path.join(run_dir, "summary.json")):
        record["length_s"] = what.length_s
        judge(record, case, run_dir)
    with open(path, "w") as file:
        json.dump(record, file)


def away_us(machine, ahead_s, drift_ppm, at_ns):
    """How far the offset that a machine's start was computed with is from the true one at an instant of the coordinator's clock."""
    true_ns = ahead_s * 1_000_000_000 + (at_ns + ahead_s * 1_000_000_000) * drift_ppm // 1_000_000
    return -(-abs(machine["offset_ns"] - true_ns) // 1000)


def judge(record, case, run_dir):
    """What a complete run says, held against the truth."""
    with open(os.path.join(run_dir, "run.json")) as file:
        info = json.load(file)
    judge_numbers(record, run_dir)
    if case == "clock-stepped":
        known = [machine["name"] for machine in info["fleet"]["machines"] if machine.get("clock_error_us") is not None]
        if known != ["m2", "m3", "m4"] or info["fleet"].get("clock_error_us") is not None:
            record["wrong"].append(f"a clock was stepped, and these are called known: {', '.join(known)}")
        return
    fleet, start_ns = info["fleet"], info["started_monotonic_ns"]
    record["spread_us"] = fleet["start_spread_us"]
    record["off_us"], record["stated_us"] = [], []
    for machine in fleet["machines"]:
        ahead_s, drift_ppm = AHEAD_S[machine["name"]], DRIFT_PPM[machine["name"]]
        off_us = away_us(machine, ahead_s, drift_ppm, start_ns)
        record["off_us"].append(off_us)
        record["stated_us"].append(machine["start_error_us"])
        if off_us > machine["start_error_us"]:
            record["wrong"].append(f"{machine['name']} is {off_us} µs off, {machine['start_error_us']} µs were stated")
        end_us = away_us(machine, ahead_s, drift_ppm, start_ns + record["length_s"] * 1_000_000_000)
        if end_us > machine["clock_error_us"]:
            record["wrong"].append(f"{machine['name']} is {end_us} µs off at the end, {machine['clock_error_us']} µs were stated")


def judge_numbers(record, run_dir):
    """The requests, which are the same in every run of one length, and what is wrong in none."""
    with open(os.path.join(run_dir, "summary.json")) as file:
        total = json.load(file)["total"]
    record["due"] = [total["due"], total["due_digest"]]
    record["errors"] = total["errors"]["by_kind"]
    for kind in ("wrong_version", "stale", "hit_on_reload", "wrong_object", "wrong_bytes"):
        if record["errors"].get(kind):
            record["wrong"].append(f"{record['errors'][kind]} responses are called {kind}")


RUNNING = set()
RUNNING_LOCK = threading.Lock()


def end(machines):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(machines.pid, signal.SIGKILL)


def one(case):
    """One run, with machines of its own."""
    what = CASES[case]
    with tempfile.TemporaryDirectory(prefix="fleet-runs-") as directory:
        path = os.path.join(directory, "record.json")
        command = ["unshare", "--net", "--mount", "sh", os.path.join(HERE, "scripts/machines.sh"), ASSAY, directory]
        command += [sys.executable, "-B", os.path.abspath(__file__), "--inside", case, path]
        environment = os.environ | {"TMPDIR": directory, "DELAY_MS": what.delay_ms, "DISK_KB": str(what.disk_kb or "")}
        environment["DRIFT_PPM"] = " ".join(map(str, DRIFT_PPM.values()))
        if case == "clock-stepped":
            environment["CLOCK_STEP_MS"] = "250"
        machines = subprocess.Popen(
            command, cwd=directory, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        with RUNNING_LOCK:
            RUNNING.add(machines)
        try:
            said = machines.communicate(timeout=600)[1]
        finally:
            # Interrupted or not: no machine outlives its run.
            end(machines)
            with RUNNING_LOCK:
                RUNNING.discard(machines)
        if not os.path.exists(path):
            return {"wrong": [f"no record; it ended with {machines.returncode}: {said.strip()[-600:]}"]}
        with open(path) as file:
            return json.load(file)


def report(records):
    """Counts, a line for each case, and what was wrong."""
    print(f"{'case':19} {'runs':>4} {'right':>5}  {'off, stated at most (µs)':>25}  {'spread p99 (µs)':>15}  exit codes")
    for case in CASES:
        mine = [record for record in records if record["case"] == case]
        if not mine:
            continue
        codes = collections.Counter(record.get("code") for record in mine)
        codes = ", ".join(f"{code}: {count}" for code, count in codes.items())
        off = max((off for record in mine for off in record.get("off_us", [])), default="–")
        stated = max((stated for record in mine for stated in record.get("stated_us", [])), default="–")
        spreads = sorted(record["spread_us"] for record in mine if "spread_us" in record)
        spread = spreads[min(len(spreads) - 1, len(spreads) * 99 // 100)] if spreads else "–"
        right = sum(not record["wrong"] for record in mine)
        print(f"{case:19} {len(mine):4} {right:5}  {f'{off}, {stated}':>25}  {spread:>15}  {codes}")
        for record in mine:
            for wrong in record["wrong"]:
                print(f"  run {record['seed']}: {wrong}")
    for length_s in sorted({record["length_s"] for record in records if "length_s" in record}):
        dues = {tuple(record["due"]) for record in records if record.get("length_s") == length_s}
        print(f"runs of {length_s} s: {'the same requests in all' if len(dues) == 1 else f'not the same requests: {dues}'}")


def main():
    if sys.argv[1:2] == ["--inside"]:
        return inside(*sys.argv[2:4])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    made = kept_runs.parser(__doc__, CASES, 10, "fleet-runs.jsonl")
    made.add_argument("--jobs", type=int, default=1, help="runs at a time; what they state of clocks is wider then")
    args = kept_runs.parse(made, CASES)
    kept = kept_runs.Kept(args.json)
    wanted = [(case, seed) for seed in range(1, args.times + 1) for case in args.case if not kept.has(case, seed)]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        runs = {pool.submit(one, case): (case, seed) for case, seed in wanted}
        try:
            for run in concurrent.futures.as_completed(runs):
                case, seed = runs[run]
                kept.add({"case": case, "seed": seed} | run.result())
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            with RUNNING_LOCK:
                for machines in RUNNING:
                    end(machines)
    report(kept.records)


if __name__ == "__main__":
    main()
