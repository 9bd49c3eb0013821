"""Counts how often a number's true value lies in the interval that Assay states for it, while Assay is disturbed on purpose.

The target's true times are known: origins think for 8 ms or 40 ms, by the object's origin, and robots request from them
directly, 70 % of 400 requests a second from the quicker one, for as long as --seconds says. So the median is 8 ms, the 90th,
99th and 99.9th percentile are 40 ms, and the mean follows from how many were requested of each, which is the same in every run of
one seed and is counted in a run that keeps every request (each origin has a content type of its own). What the kernel and the origin take beside the think time (PATH_MS) belongs to the true
time, too: a value is right if the interval holds any time from the think time to that much more. The true rate is that of requests
due, which are all answered.

In `busy-proxy` and `proxy`, nginx forwards each request between them on a processor of its own (nothing may be cached), with a busy
loop beside it and without. What nginx takes is part of the true time, too, and more than the kernel takes (PROXY_PATH_MS).

Disturbances, one in each run: a busy loop on the robots' processor, on the origins', on both (`busy-robots`, `busy-origins`,
`busy-both`); robots or origins stopped for so many milliseconds (`robots-50`, `robots-300`, `robots-2000`, `origins-300`); a program
that takes memory and gives it back all the time (`memory`); a second load generator (`second-load`); and none (`none`).

A line per run goes to --json, and runs that are there already are not made again: what was interrupted is gone on with.
Needs a build of assay (the release build, or the one that ASSAY names), and nginx for the two cases with a proxy. Everything happens
on loopback.
Usage: own_error.py [--times N] [--seconds S] [--json FILE] [CASE]...
"""

import csv
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import kept_runs
from kept_runs import ASSAY

CPUS = sorted(os.sched_getaffinity(0))
QUICK_MS, SLOW_MS, PATH_MS, PROXY_PATH_MS = 8.0, 40.0, 0.3, 0.6
PERCENTILES = {"p50": QUICK_MS, "p90": SLOW_MS, "p99": SLOW_MS, "p999": SLOW_MS}

WORKLOAD = """
Content One = {{ kind = "one"; size = exp(4KB); cachable = 0%; }};
Content Two = {{ kind = "two"; size = exp(4KB); cachable = 0%; }};
Server Quick = {{ kind = "quick"; contents = [One]; xact_think = const(8ms); addresses = ['10.0.0.1:9000']; }};
Server Slow = {{ kind = "slow"; contents = [Two]; xact_think = const(40ms); addresses = ['10.0.0.2:9000']; }};
Robot R = {{
    kind = "rbt"; origins = [Quick.addresses: 70%, Slow.addresses: 30%]; addresses = ['10.0.1.1' ** 40];
    req_rate = 10/sec; recurrence = 0%; open_conn_lmt = 100;
}};
Phase top = {{ name = "top"; goal.duration = {seconds}sec; }};
schedule(top);
use(Quick, Slow, R);
"""

BUSY = "while True: pass"
MEMORY = """
import mmap
size = 400 << 20
while True:
    taken = mmap.mmap(-1, size)
    for at in range(0, size, 4096):
        taken[at] = 1
    taken.close()
"""


def beside(program, cpus):
    """A program on these processors; the caller ends it."""
    return subprocess.Popen([sys.executable, "-c", program], preexec_fn=lambda: os.sched_setaffinity(0, cpus))


def load(directory):
    """A second load generator: another run, on any processor."""
    path = os.path.join(directory, "other.pg")
    with open(path, "w") as file:
        file.write(WORKLOAD.format(seconds=60))
    command = [ASSAY, "run", path, "--direct", "--no-pin", "--no-live", "--no-report", "--seed", "99", "--run-dir"]
    return subprocess.Popen([*command, os.path.join(directory, "other")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def stop(run, run_dir, role, length_s, seconds):
    """Stops a role in the middle of the run."""
    while run.poll() is None:
        try:
            with open(os.path.join(run_dir, "run.json")) as file:
                info = json.load(file)
            is_time = time.time() * 1000 >= info["started_unix_ms"] + seconds * 400
            if is_time and info["phases"][0]["start_ms"] is not None:
                pid = next(placed["pid"] for placed in info["placement"] if placed["role"] == role)
                os.kill(pid, signal.SIGSTOP)
                try:
                    time.sleep(length_s)
                finally:
                    os.kill(pid, signal.SIGCONT)
                return
        except (FileNotFoundError, IndexError, ValueError, ProcessLookupError):
            pass
        time.sleep(0.01)


def share_of_slow(seed, seconds):
    """The part of requests that went to the slower origin: counted in the log of all."""
    with tempfile.TemporaryDirectory(prefix="own-error-") as directory:
        path, run_dir = os.path.join(directory, "known.pg"), os.path.join(directory, "run")
        with open(path, "w") as file:
            file.write(WORKLOAD.format(seconds=seconds))
        command = [ASSAY, "run", path, "--direct", "--xact-log", "--no-live", "--no-report", "--seed", str(seed)]
        subprocess.run([*command, "--run-dir", run_dir], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        table = [ASSAY, "report", run_dir, "--table", "xacts"]
        rows = list(csv.DictReader(subprocess.run(table, capture_output=True, text=True, check=True).stdout.splitlines()))
    if not rows:
        sys.exit(f"seed {seed}: the run that counts requests kept none")
    return sum(row["content"] == "1" for row in rows) / len(rows)


def has_proxy(case):
    """True if requests go through nginx."""
    return case in ("proxy", "busy-proxy")


def disturbed(case, seed, seconds):
    """The summary of one run."""
    with tempfile.TemporaryDirectory(prefix="own-error-") as directory:
        path, run_dir = os.path.join(directory, "known.pg"), os.path.join(directory, "run")
        with open(path, "w") as file:
            file.write(WORKLOAD.format(seconds=seconds))
        others = []
        robots, origins = {CPUS[0]}, {CPUS[-1]}
        if case == "busy-robots":
            others = [beside(BUSY, robots)]
        elif case in ("busy-origins", "busy-proxy"):
            others = [beside(BUSY, origins)]
        elif case == "busy-both":
            others = [beside(BUSY, robots), beside(BUSY, origins)]
        elif case == "memory":
            others = [beside(MEMORY, set(CPUS))]
        elif case == "second-load":
            others = [load(directory)]
            time.sleep(2)
        command = [ASSAY, "run", path, "--no-live", "--no-report", "--seed", str(seed), "--run-dir", run_dir]
        if has_proxy(case):
            cpus = {"robot": CPUS[0], "origin": CPUS[0], "proxy": CPUS[-1]}
            command += ["--proxy", "nginx"]
        else:
            cpus = {"robot": CPUS[0], "origin": CPUS[-1]}
            command += ["--direct"]
        for role, cpu in cpus.items():
            command += [f"--{role}-cpus", str(cpu)]
        run = None
        try:
            run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if case.split("-")[0] in ("robots", "origins"):
                role, length_ms = case.split("-")
                stop(run, run_dir, role, int(length_ms) / 1000, seconds)
            said = run.communicate()[1]
        finally:
            if run and run.poll() is None:
                run.send_signal(signal.SIGINT)
                run.wait()
            for other in others:
                other.send_signal(signal.SIGINT if case == "second-load" else signal.SIGKILL)
                other.wait()
        try:
            with open(os.path.join(run_dir, "summary.json")) as file:
                return run.returncode, json.load(file)
        except FileNotFoundError:
            sys.exit(f"{case}, seed {seed}: no summary; assay ended with {run.returncode}: {said.strip()[-500:]}")


def looked_at(case, seed, code, summary, slow_share):
    """A run as a record: each number, whether its interval holds the truth, how wide it is, and how wide it has to be."""
    figures = summary["phases"][0]
    times = figures["response_time_ms"]["all"]
    numbers = {}
    path_ms = PROXY_PATH_MS if has_proxy(case) else PATH_MS

    def number(name, value, own, low, high):
        if own["certainty"] == "unknown":
            numbers[name] = {"certainty": "unknown"}
            return
        top = own["high"] if own["high"] is not None else float("inf")
        held = own["low"] <= high and low <= top
        # It must reach from what was seen to what is true.
        needed = max(0.0, value - high, low - value)
        numbers[name] = {
            "certainty": own["certainty"], "value": value, "low": own["low"], "high": own["high"],
            "held": held, "needed": needed, "off": abs(value - low) / low,
        }

    for name, think_ms in PERCENTILES.items():
        number(name, times[name], times["own"][name], think_ms, think_ms + path_ms)
    mean = QUICK_MS + slow_share * (SLOW_MS - QUICK_MS)
    number("mean", times["mean"], times["own"]["mean"], mean, mean + path_ms)
    rate, offered = figures["rate"]["measured"], figures["rate"]["offered"]
    own = figures.get("own", {}).get("rate.measured", {"low": rate, "high": rate, "certainty": "known"})
    number("rate", rate, own, offered, offered)
    return {"case": case, "seed": seed, "code": code, "disturbance": summary["disturbance"], "numbers": numbers}


CASES = ["none", "busy-robots", "busy-origins", "busy-both", "robots-50", "robots-300", "robots-2000", "origins-300", "memory", "second-load", "proxy", "busy-proxy"]


def report(records):
    """Counts, a line for each case."""
    print(f"{'case':14} {'runs':>4}  {'held':>9}  {'called known and wrong':>23}  {'width ÷ needed, median':>23}  exit codes")
    for case in CASES + ["all"]:
        mine = [record for record in records if case in (record["case"], "all")]
        numbers = [number for record in mine for number in record["numbers"].values() if number["certainty"] != "unknown"]
        if not numbers:
            continue
        held = sum(number["held"] for number in numbers)
        wrong = sum(number["certainty"] == "known" and number["off"] > 0.1 + PATH_MS / QUICK_MS for number in numbers)
        ratios = [
            (number["high"] - number["low"]) / number["needed"]
            for number in numbers if number["high"] is not None and number["needed"] > 0.1
        ]
        ratio = f"{statistics.median(ratios):.2f} of {len(ratios)}" if ratios else "–"
        codes = ", ".join(sorted({str(record["code"]) for record in mine}))
        print(f"{case:14} {len(mine):4}  {held:4}/{len(numbers):4}  {wrong:23}  {ratio:>23}  {codes}")


def main():
    parser = kept_runs.parser(__doc__, CASES, 50, "own-error.jsonl")
    parser.add_argument("--seconds", type=int, default=5, help="length of a run")
    args = kept_runs.parse(parser, CASES)
    kept = kept_runs.Kept(args.json)
    shares = {record["seed"]: record["slow_share"] for record in kept.records if "slow_share" in record}
    for seed in range(1, args.times + 1):
        if seed not in shares:
            shares[seed] = share_of_slow(seed, args.seconds)
            kept.add({"case": "reference", "seed": seed, "slow_share": shares[seed]})
        for case in args.case:
            if kept.has(case, seed):
                continue
            code, summary = disturbed(case, seed, args.seconds)
            kept.add(looked_at(case, seed, code, summary, shares[seed]))
    report([record for record in kept.records if record["case"] != "reference"])


if __name__ == "__main__":
    main()
