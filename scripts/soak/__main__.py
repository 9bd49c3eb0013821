"""Lets a switch, an evaluation and a fleet work for hours, disturbs them, and says whether anything grew, was lost or was wrong.

Everything runs in namespaces of its own, on loopback. The switch stands before three servers and has clients in the clear and over TLS; the
evaluation (two proxies under test) has the switch as its origin; a fleet of three agents carries out one run after the other. The load
rises and falls in four minutes. Meanwhile, at random instants: the switch's file is replaced by another or by a wrong one, its log rotated,
a server killed and started again, or stopped for a while; a run's coordinator killed, or the fleet's server killed and started again.
Clients check every byte. Memory and descriptors of each process are sampled every five seconds. `judge.py` says what must hold.

Lines go to --dir (`samples.ndjson`, `events.ndjson`) as they come. What was interrupted is gone on with, as another part of the same soak.
Exit code 1: something grew, was lost, wrong or left; 96: whether something grows cannot be said after so short a time (see --undecided-is-fine).
Usage: soak [--hours H] [--clients N] [--seed N] [--dir DIR] [--summary] [--self-test]
"""

import argparse
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "torture"))
import judge
from namespaces import UNSHARE

# `namespaces.mounted` mounts a file system of its own there.
HIDDEN = ("/tmp/", "/dev/shm/", "/mnt/")
# What starting and ending a part may take beside its time.
BESIDE_S = 900


def lines(name):
    """What was kept; a line that was cut off is not."""
    kept = []
    if os.path.exists(name):
        with open(name) as file:
            for line in file:
                try:
                    kept.append(json.loads(line))
                except ValueError:
                    pass
    return kept


def lasted_s(events, samples):
    """How long the parts went on: those that were interrupted, by their last sample."""
    parts = {}
    for sample in samples:
        parts[sample["part"]] = sample["into_s"]
    return sum((parts | {event["part"]: event["lasted_s"] for event in events if event["event"] == "over"}).values())


def told(directory):
    """The summary of all that was kept: (failures, whether something is undecided)."""
    events, samples = lines(f"{directory}/events.ndjson"), lines(f"{directory}/samples.ndjson")
    over = [event for event in events if event["event"] == "over"]
    begun = [event for event in events if event["event"] == "begun"]
    if not begun:
        sys.exit(f"nothing was kept in {directory}")
    print(f"{lasted_s(events, samples) / 3600:.2f} hours in {len(begun)} parts, {len(over)} of them to their end; {len(samples)} samples")
    counts = {name: sum(part[name] for part in over) for name in ("sent", "right", "reopened", "runs", "runs_right", "reloads", "rotations")}
    harms = {kind: sum(event["event"] == kind for event in events) for kind in ("killed", "stopped", "kept", "coordinator killed", "server killed")}
    print(f"requests {counts['sent']}, right {counts['right']}; runs {counts['runs']}, right {counts['runs_right']}")
    print("disturbances: " + ", ".join(f"{name} {count}" for name, count in ({"reloaded": counts["reloads"], "rotated": counts["rotations"]} | harms).items()))
    rows = judge.flat(samples, begun[0]["cycle_s"])
    if rows:
        print("\n| process | what | first | last | most | cycles | % an hour | ± (95 %) | |\n|---|---|--:|--:|--:|--:|--:|--:|---|")
    for row in rows:
        print(f"| {row['process']} | {row['value']} | {row['first']:,} | {row['last']:,} | {row['most']:,} | {row['cycles']} | {row['percent_an_hour']:+.3f} | "
              f"{row['error']:.3f} | {row['verdict']} |")
    failed = [event for event in events if event["event"] == "failed"]
    lost = judge.lost(events)
    problems = [f"{event['client']} {event['request']}: {event['kind']}: {event['what']}" for event in lost]
    problems += [f"fleet, run {event['run']} ({event['fault']}): {event['problem']}" for event in events if event["event"] == "fleet"]
    problems += [f"{event['process']} ended with {event['code']}" for event in events if event["event"] == "ended"]
    problems += [problem for part in over for problem in part["problems"]]
    problems += [f"{row['process']}: {row['value']} grows" for row in rows if row["verdict"] == "grows"]
    print(f"\n{len(failed)} requests failed, {len(failed) - len(lost)} of them under way to a server that was killed or stopped, and not repeatable")
    print(f"{len(problems)} problems")
    for problem in problems:
        print(f"  {problem}")
    return len(problems), not rows or any(row["verdict"] == "undecided" for row in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=8.0)
    parser.add_argument("--clients", type=int, default=1, metavar="N", help="N clients where there is else one, so N times the requests")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dir", default=os.path.join(ROOT, "target", "soak"), help="where lines are kept; removed when its soak is complete and a new one begins")
    parser.add_argument("--summary", action="store_true", help="only say what was kept")
    parser.add_argument("--self-test", action="store_true", help="show that a leak and a lost request are seen")
    parser.add_argument("--undecided-is-fine", action="store_true", help="exit code 0 where whether something grows cannot be said")
    args = parser.parse_args()
    if args.self_test:
        judge.self_test()
        return 0
    directory = os.path.abspath(args.dir)
    if not args.summary:
        for what, where in (("--dir", directory), ("this checkout", ROOT)):
            if where.startswith(HIDDEN):
                sys.exit(f"{what} must lie elsewhere: in the namespaces of the soak, /tmp, /dev/shm and /mnt are in memory, and gone with them")
        assay = os.path.abspath(os.environ.get("ASSAY", os.path.join(ROOT, "target", "release", "assay")))
        done_s = lasted_s(lines(f"{directory}/events.ndjson"), lines(f"{directory}/samples.ndjson"))
        if done_s >= args.hours * 3600:
            shutil.rmtree(directory)
            done_s = 0
        os.makedirs(directory, exist_ok=True)
        parts = [int(name[5:]) for name in os.listdir(directory) if name.startswith("part-")]
        left_s = args.hours * 3600 - done_s
        inside = [sys.executable, "-B", os.path.join(HERE, "inside.py"), assay, directory, str(left_s), str(args.seed), str(max(parts, default=-1) + 1), str(args.clients)]
        ended = subprocess.run([*UNSHARE, *inside], stdin=subprocess.DEVNULL, timeout=left_s + BESIDE_S)
        if ended.returncode != 0:
            return 1
    problems, is_undecided = told(directory)
    return 1 if problems else 96 if is_undecided and not args.undecided_is_fine else 0


if __name__ == "__main__":
    sys.exit(main())
