"""Counts how often a run gives an answer, and the right one, on a machine that has other work.

*Answers*: `demo` and `image` (rehearsed to 20 s) run through the built-in proxy. Hit ratios, errors and throughput should be known,
the medians too, and the exit code should be 0, as nothing is required.

*Never accused* (case names of bundled workloads, or `bundled` for all of them): rehearsed to 8 s, each runs through the built-in proxy, which
does nothing wrong. 0 is right, 96 says that something is not known, and 99 is wrong.

*Planted faults*: a workload of 5 s runs through a forwarder (scripts/faulty_forwarder.py) that Assay starts from a description, and that gets one
thing wrong: it flips a byte in one body of fifty (`wrong-byte`), serves objects long after they changed (`stale`), serves reloads from
its store (`reload`), lets half of the rate through (`half-rate`), or takes twice as long for the slowest one request of forty
(`p99`). The exit code must be 99, whatever else the machine does. `none` is the same forwarder without a fault, under all of these
requirements: a 99 there is wrong, a 96 says that a requirement could not be decided. Undecided runs are repeated at most --retries times.

*Other work* (--others LOAD): two processes that compute in bursts of a tenth of a second to two seconds, unpinned, so that this many
processors are wanted on average. With 0 the machine is left as it is. The load average at the end of each run is recorded.

A line per run goes to --json, and runs that are there already are not made again: what was interrupted is gone on with.
Needs a build of assay (the release build, or the one that ASSAY names). Everything happens on loopback.
Usage: answers.py [--times N] [--others LOAD] [--retries N] [--json FILE] [CASE]...
"""

import collections
import json
import os
import signal
import subprocess
import sys
import tempfile

import kept_runs
from kept_runs import ASSAY, HERE

FORWARDER = os.path.join(HERE, "scripts/faulty_forwarder.py")
RUNS = {"demo": ["demo"], "image": ["image", "--rehearse", "20s"]}


def bundled():
    """All bundled workloads, by `bundled:NAME`."""
    listed = subprocess.run([ASSAY, "workloads"], capture_output=True, text=True, check=True).stdout
    names = [line.split()[0] for line in listed.splitlines() if line.startswith("  ")]
    # One is for comparison, without anything in between.
    flags = {name: ["--direct"] if name.startswith("nolb") else [] for name in names}
    return {f"bundled:{name}": [name, "--rehearse", "8s", *flags[name]] for name in names}


# What each fault breaks, and what says so.
FAULTS = {
    "wrong-byte": [],
    "stale": [],
    "reload": ["errors(hit_on_reload) == 0"],
    "half-rate": ["rate > 100"],
    "p99": ["p99 < 30ms"],
    "none": ["errors(hit_on_reload) == 0", "rate > 100", "p99 < 30ms", "errors == 0"],
}
WORKLOAD = """
ObjLifeCycle Life = {{ length = const({life}); variance = 0%; with_lmt = 100%; expires = [nmt + const(0sec)]; }};
Content Thing = {{ kind = "thing"; size = unif(2KB, 20KB); obj_life_cycle = Life; cachable = 100%; }};
Server S = {{ kind = "srv"; contents = [Thing]; pconn_use_lmt = const(20); addresses = ['10.0.0.1:9000']; }};
Robot R = {{
    kind = "rbt"; origins = S.addresses; addresses = ['10.0.1.1' ** 40]; req_rate = 3/sec; recurrence = 60%;
    pop_model = {{ pop_distr = popUnif(); }}; req_types = ["Basic": 75%, "Reload"];
    pconn_use_lmt = const(10); open_conn_lmt = 4;
}};
Phase top = {{ name = "top"; goal.duration = 5sec; }};
schedule(top);
use(S, R);
"""

# The forwarder as a proxy that Assay starts, so that an undecided run can be repeated.
DESCRIPTION = """
name = "faulty-forwarder"
title = "a forwarder that gets one thing wrong"
modes = ["reverse"]

[version]
command = ["{python}", "--version"]
after = "Python "

[capacity]
stores = ["memory"]
memory-floor-bytes = 1048576

[start]
command = ["{python}", "-B", "{forwarder}", "{{{{ listen.ip }}}}:{{{{ listen.port }}}}", "{{{{ origins[0].ip }}}}:{{{{ origins[0].port }}}}", "{fault}"]

[ready]
patience-s = 30.0

[stop]
signal = "TERM"
patience-s = 10.0
"""

BURSTS = """
import os, random, sys, time
duty, chance, parent = float(sys.argv[1]), random.Random(int(sys.argv[2])), os.getppid()
# Whoever started it may be killed, and cannot end it then.
while os.getppid() == parent:
    busy = chance.uniform(0.1, 2.0)
    end = time.monotonic() + busy
    while time.monotonic() < end:
        pass
    time.sleep(busy * (1 - duty) / duty)
"""


class Beside:
    """Programs that run for as long as the block does."""

    def __init__(self, commands, **options):
        self.commands, self.options = commands, options

    def __enter__(self):
        self.children = [subprocess.Popen(command, **self.options) for command in self.commands]
        return self.children

    def __exit__(self, *_):
        for child in self.children:
            child.kill()
            child.wait()
            if child.stdout:
                child.stdout.close()


def other_work(load, seed):
    """Two programs that want so many processors together."""
    duty = min(load / 2, 0.99)
    commands = [[sys.executable, "-c", BURSTS, str(duty), str(seed * 2 + index)] for index in range(2)]
    return Beside(commands if load > 0 else [])


def run(flags):
    """Exit code and summary of one run, and how many tries it took."""
    with tempfile.TemporaryDirectory(prefix="answers-") as directory:
        run_dir = os.path.join(directory, "run")
        command = [ASSAY, "run", *flags, "--no-live", "--no-report", "--run-dir", run_dir]
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            said = child.communicate()[1]
        finally:
            if child.poll() is None:
                child.send_signal(signal.SIGINT)
                child.wait()
        try:
            with open(os.path.join(run_dir, "summary.json")) as file:
                tries = sum(os.path.isdir(os.path.join(directory, name)) for name in os.listdir(directory))
                return child.returncode, json.load(file), tries
        except FileNotFoundError:
            sys.exit(f"{' '.join(command)}: no summary; it ended with {child.returncode}: {said.strip()[-500:]}")


def through_forwarder(fault, seed, retries):
    """The same, through a forwarder that gets one thing wrong."""
    with tempfile.TemporaryDirectory(prefix="answers-") as directory:
        path = os.path.join(directory, "forwarded.pg")
        with open(path, "w") as file:
            file.write(WORKLOAD.format(life="2sec" if fault == "stale" else "30day"))
        with open(os.path.join(directory, "faulty-forwarder.toml"), "w") as file:
            file.write(DESCRIPTION.format(python=sys.executable, forwarder=FORWARDER, fault=fault))
        flags = [path, "--proxy", "faulty-forwarder", "--proxy-dir", directory, "--seed", str(seed), "--retries", str(retries)]
        for requirement in FAULTS[fault]:
            flags += ["--require", requirement]
        return run(flags)


def looked_at(case, seed, others, code, summary):
    """A run as a record."""
    headline = summary["headline"]
    record = {"case": case, "seed": seed, "others": others, "code": code, "load": os.getloadavg()[0]}
    record |= {name: headline[name] for name in ("known", "roughly", "unknown")}
    # The medians with their own error: low, value, high, in milliseconds.
    record["medians"] = {}
    for kind in ("hit", "miss") if headline["figures"] else ():
        times = headline["figures"]["response_time_ms"][kind]
        own = times.get("own", {}).get("p50", {})
        record["medians"][kind] = [own.get("low"), times["p50"], own.get("high")]
    record["requirements"] = [[each["text"], each["decision"], each["seen"]] for each in summary["requirements"]]
    return record


def report(records):
    """Counts, a line for each case."""
    print(f"{'case':23} {'runs':>4} {'load':>11}  {'exit codes':20} {'repeated':>8} headline numbers that were not known")
    for case in dict.fromkeys(record["case"] for record in records):
        mine = [record for record in records if record["case"] == case]
        loads = sorted(record["load"] for record in mine)
        codes = collections.Counter(record["code"] for record in mine)
        less = collections.Counter(name for record in mine for name in record["roughly"] + record["unknown"])
        codes = ", ".join(f"{code}: {count}" for code, count in sorted(codes.items()))
        again = sum(record.get("tries", 1) > 1 for record in mine)
        less = ", ".join(f"{name} {count}" for name, count in sorted(less.items())) or "none"
        print(f"{case:23} {len(mine):4} {loads[0]:5.1f}–{loads[-1]:5.1f}  {codes:20} {again:8} {less}")


def main():
    runs = RUNS | bundled()
    cases = [*RUNS, *FAULTS, "bundled", *(case for case in runs if case not in RUNS)]
    parser = kept_runs.parser(__doc__, cases, 20, "answers.jsonl")
    parser.add_argument("--retries", type=int, default=2, help="how often an undecided run with a planted fault is repeated at most")
    parser.add_argument("--others", type=float, default=1.5, help="processors that other work wants on average, 0 to 2")
    args = kept_runs.parse(parser, cases, [*RUNS, *FAULTS])
    if "bundled" in args.case:
        args.case = [case for case in runs if case.startswith("bundled:")]
    kept = kept_runs.Kept(args.json)
    for seed in range(1, args.times + 1):
        for case in args.case:
            if kept.has(case, seed):
                continue
            with other_work(args.others, seed):
                flags = runs.get(case)
                code, summary, tries = run([*flags, "--seed", str(seed)]) if flags else through_forwarder(case, seed, args.retries)
            kept.add(looked_at(case, seed, args.others, code, summary) | {"tries": tries})
    report(kept.records)


if __name__ == "__main__":
    main()
