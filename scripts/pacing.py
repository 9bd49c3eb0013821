#!/usr/bin/env python3
"""Measures how exactly requests leave: Assay, a bare timer, wrk2's way, vegeta and k6 on one job.

Each contestant offers the same rate over the same number of connections from the last processor, to one origin on the first
that notes when each request arrives (crates/roles/load/examples/pacing). A round is one run of each in turn; one during
which the rest of the machine was not quiet is repeated, a few times at most. The figures go to bench/pacing/results.json,
and from there to docs/explanation/pacing.md and docs/images/pacing.svg.

Usage: pacing.py [--rounds N] [--tries N] [--seconds S] [--patience S] [--realtime] [--only NAME ...] [--scratch]
       pacing.py hour [--run-dir DIR]   does an hour bring what its schedule says? (DIR: it was played already)
       pacing.py page                   make the page again from the results that are there
"""

import argparse
import itertools
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import pacing_page
from pacing_runs import ASSAY, CONTESTANTS, HERE, PACING, Failed, Job, used_percent, version_of

RESULTS = os.path.join(HERE, "bench/pacing/results.json")
HOUR = os.path.join(HERE, "bench/pacing/hour.json")
# Other use of the machine, in percent of one processor, and steal, in percent, beyond which a run is not kept.
OTHER_GATE = 8.0
STEAL_GATE = 0.5


def is_quiet(run):
    return run["other_percent"] <= OTHER_GATE and run["steal_percent"] <= STEAL_GATE


def say(run):
    lateness = " ".join(f"{run[key]:>8.1f}" for key in ("p50", "p99", "p999", "max"))
    print(f"{run['round']:>3} {run['contestant']:<10} {lateness}  cpu {run['cpu_percent']:5.1f} %"
          f"  sent {run['sent']:,} of {run['due']:,}  other {run['other_percent']:4.1f} %"
          f"  steal {run['steal_percent']:.2f} %  {'' if is_quiet(run) else 'disturbed'}", flush=True)


def wait_for_quiet(patience_s):
    """Returns when two seconds were quiet, or patience is at its end."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end and used_percent(2) > OTHER_GATE:
        pass


def play_round(job, number, names, args):
    """A run of each contestant in turn; a disturbed one is repeated at once, but not for ever."""
    runs = []
    for name in names:
        for _ in range(args.tries):
            wait_for_quiet(args.patience)
            try:
                with tempfile.TemporaryDirectory(prefix="pacing-") as directory:
                    run = CONTESTANTS[name].run(job, directory)
            except Failed as error:
                print(f"{number:>3} {name:<10} shows nothing: {error}", flush=True)
                continue
            run.update(contestant=name, round=number)
            runs.append(run)
            say(run)
            if is_quiet(run):
                break
    return runs


def summary(name, runs, wanted):
    """The quietest runs of a contestant, and the middle of what they show."""
    tried = [run for run in runs if run["contestant"] == name]
    quiet = [run for run in tried if is_quiet(run)]
    # When there are not enough quiet ones the least disturbed stand in, and the page says so.
    kept = sorted(tried, key=lambda run: (not is_quiet(run), run["other_percent"]))[:wanted]
    middle = {key: statistics.median(run[key] for run in kept)
              for key in ("p50", "p99", "p999", "cpu_percent", "other_percent", "rate")}
    own = [run["own"] for run in kept if run.get("own")]
    if own:
        middle["own"] = {key: statistics.median(figures[key] for figures in own) for key in own[0]}
    connections = [run["connections"] for run in kept if run["connections"] is not None]
    return {
        "name": name, "title": CONTESTANTS[name].title, "yardstick": CONTESTANTS[name].yardstick,
        "version": version_of(name), "tried": len(tried), "quiet": len(quiet), "kept": len(kept), "median": middle,
        "max": max(run["max"] for run in kept), "due": sum(run["due"] for run in kept),
        "sent": sum(run["sent"] for run in kept), "connections": max(connections, default=None),
        "p99_from": min(run["p99"] for run in kept), "p99_to": max(run["p99"] for run in kept),
        "curve": [[share, statistics.median(values)] for share, *values in zip(
            kept[0]["curve_shares"], *(run["curve"] for run in kept))],
    }


def differences(runs, name, floor):
    """By how much a contestant's 99th percentile is above the floor's in each round, and how many rounds were quiet."""
    above, quiet = [], 0
    for number in sorted({run["round"] for run in runs}):
        pair = [min((run for run in runs if (run["contestant"], run["round"]) == (which, number)),
                    key=lambda run: run["other_percent"], default=None) for which in (name, floor)]
        if None not in pair:
            above.append(pair[0]["p99"] - pair[1]["p99"])
            quiet += all(map(is_quiet, pair))
    return above, quiet


def targets(runs, summaries):
    """What must hold, and whether it does."""
    by_name = {summary["name"]: summary for summary in summaries}
    if "assay" not in by_name:
        return []
    assay = by_name["assay"]["median"]
    checks = [{"what": "Assay's median lateness, from outside", "seen_us": assay["p50"], "below_us": 30},
              {"what": "Assay's median lateness, as it says itself", "seen_us": assay["own"]["p50"], "below_us": 30}]
    for floor, words in (("timer", "the bare timer's"), ("sender", "the bare sender's")):
        above, quiet = differences(runs, "assay", floor)
        if above:
            checks.append({"what": f"Assay's 99th percentile above {words}, median of {len(above)} rounds "
                                   f"({quiet} of them quiet)",
                           "seen_us": statistics.median(above), "below_us": 100})
    for check in checks:
        check["holds"] = check["seen_us"] < check["below_us"]
    return checks


def sum_up(job, names, runs, wanted):
    """Everything that the page is made from."""
    summaries = [summary(name, runs, wanted) for name in names if any(run["contestant"] == name for run in runs)]
    return {
        "taken": time.strftime("%Y-%m-%d"), "processors": os.cpu_count(), "system": f"Linux {platform.release()}",
        "job": vars(job), "gate": {"other_percent": OTHER_GATE, "steal_percent": STEAL_GATE},
        "contestants": summaries, "targets": targets(runs, summaries),
        "runs": [{key: value for key, value in run.items() if not key.startswith("curve")} for run in runs],
    }


def hour(run_dir):
    """Compares what came due in an hour with the pure stream; plays the hour first, unless it was."""
    with tempfile.TemporaryDirectory(prefix="pacing-") as directory:
        if run_dir is None:
            run_dir = os.path.join(directory, "run")
            played = subprocess.run([ASSAY, "run", os.path.join(HERE, "bench/pacing/hour.pg"), "--direct", "--no-live",
                                     "--run-dir", run_dir])
            # A run that Assay doubts is as good as any for counting.
            if played.returncode not in (0, 96):
                sys.exit(played.returncode)
        with open(os.path.join(run_dir, "summary.json")) as file:
            run = json.load(file)
        spec = os.path.join(directory, "universe.json")
        with open(spec, "w") as file:
            json.dump({"workload": os.path.join(os.path.abspath(run_dir), "workload.json"), "seed": run["seed"],
                       "world": 1, "private_as_public": False}, file)
        counted = subprocess.run([PACING, "count", spec], check=True, capture_output=True, text=True).stdout.split()
    total = run["total"]
    result = {
        "assay": run["assay_version"], "taken": time.strftime("%Y-%m-%d", time.gmtime(run["started_unix_ms"] / 1000)),
        "duration_s": total["duration_s"], "stream": {"requests": int(counted[0]), "digest": counted[1]},
        "run": {"requests": total["due"], "digest": total["due_digest"]}, "sent": total["due"] - total["unsent"],
        "unsent": total["unsent"], "valid": run["valid"],
    }
    with open(HOUR, "w") as file:
        json.dump(result, file, indent=1)
        file.write("\n")
    print(f"{result['stream']['requests']:,} in the stream, {result['run']['requests']:,} due in the run, "
          f"{'the same requests' if result['stream'] == result['run'] else 'NOT THE SAME'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["measure", "hour", "page"], default="measure")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tries", type=int, default=3, help="runs of a contestant in a round, until one is quiet")
    parser.add_argument("--seconds", type=int, default=10, help="measured in each run, after two seconds of warm-up")
    parser.add_argument("--patience", type=int, default=60, help="seconds to wait for quiet before each run")
    parser.add_argument("--realtime", action="store_true",
                        help="SCHED_FIFO for all contestants and the origin, where the machine will not be quiet")
    parser.add_argument("--only", nargs="+", choices=list(CONTESTANTS))
    parser.add_argument("--scratch", action="store_true", help="print only: leave results and page as they are")
    parser.add_argument("--run-dir", help="with hour: the run directory of one that was played")
    args = parser.parse_args()
    if args.what == "hour":
        hour(args.run_dir)
    if args.what != "measure":
        return pacing_page.write(RESULTS, HOUR)
    # Ends by itself whatever happens.
    signal.signal(signal.SIGALRM, lambda *_: sys.exit("measuring took longer than four hours"))
    signal.alarm(14_400)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    names = [name for name in args.only or CONTESTANTS if CONTESTANTS[name].is_here()]
    for name in set(args.only or CONTESTANTS) - set(names):
        print(f"{name} is left out: it is not installed", file=sys.stderr)
    job = Job(rate=5000, connections=500, warm_s=2, seconds=args.seconds, realtime=args.realtime)
    runs = []
    print("    µs late:          p50      p99    p99.9      max")
    for number in range(args.rounds):
        runs += play_round(job, number, names, args)
        results = sum_up(job, names, runs, args.rounds)
        # What there is so far: rounds on a busy machine take long.
        if not args.scratch:
            with open(RESULTS, "w") as file:
                json.dump(results, file, indent=1)
                file.write("\n")
            pacing_page.write(RESULTS, HOUR)
    for check in results["targets"]:
        print(f"{check['what']}: {check['seen_us']:.1f} µs, below {check['below_us']}: "
              f"{'holds' if check['holds'] else 'MISSED'}")
    return None


if __name__ == "__main__":
    main()
