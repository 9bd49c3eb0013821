"""Injects faults into commands of Assay at random instants, and counts what each leaves behind.

Every fault has a number, and with the seed that number decides everything: the command, the kind of fault, the instant and the victim. So
`--only N` repeats one. Each is injected in namespaces of its own (processes, network, mounts), with a small file system in memory for
`/tmp`, `/dev/shm` and what the command writes; when the fault is over, everything in there is gone. What must be true afterwards is in
`aftermath.py`.

Results are kept in --dir, a JSON line each, so that a series that was interrupted is gone on with. Exit code 1: something was not as it must be.
Usage: torture [--faults N] [--seed N] [--at-once N] [--dir DIR] [--of COMMANDS] [--only N]
"""

import argparse
import collections
import concurrent.futures
import json
import os
import statistics
import subprocess
import sys

from commands import chance_of, chosen
from namespaces import UNSHARE

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# A fault, its command and all checks; more than all time limits in there together.
MOST_S = 240


def injected(seed, number, assay):
    """Injects one fault, in namespaces of its own. What came of it."""
    inside = [sys.executable, "-B", os.path.join(HERE, "inside.py"), str(seed), str(number), assay]
    command = [*UNSHARE, *inside]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=MOST_S, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return {"number": number, "problems": [f"not over after {MOST_S} s"]}
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return {"number": number, "problems": [f"the harness failed: {done.stderr[-500:]}"]}


def told(results):
    """A table of what was injected, and a line for each problem."""
    rows = collections.defaultdict(collections.Counter)
    for result in results:
        rows[result.get("fault", "?")][result.get("command", "?")] += 1
    commands = sorted({command for row in rows.values() for command in row})
    print(f"| fault | {' | '.join(commands)} |")
    print("|---|" + "--:|" * len(commands))
    for fault, row in sorted(rows.items()):
        print(f"| {fault} | {' | '.join(str(row[command]) for command in commands)} |")
    bad = [result for result in results if result["problems"]]
    behind = [behind_s for result in results for behind_s in result.get("behind_s", [])]
    if behind:
        print(f"\n{len(behind)} records of killed commands end {statistics.median(behind):.2f} s before the fault (median), {max(behind):.2f} s at most")
    print(f"\n{len(results)} faults, {len(bad)} with a problem")
    for result in bad:
        what = f"{result.get('fault')} of {result.get('victim')} after {result.get('at_s')} s of {result.get('command')}"
        print(f"{result['number']}: {what}: {'; '.join(result['problems'])}")
    return len(bad)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--of", default="", help="faults of these commands only, as `switch,agent`: as many of the numbers as have them")
    parser.add_argument("--only", type=int, help="repeat this fault alone, and print all that is known of it")
    parser.add_argument("--dir", default=os.path.join(ROOT, "target", "torture"), help="where results are kept")
    args = parser.parse_args()
    assay = os.path.abspath(os.environ.get("ASSAY", os.path.join(ROOT, "target", "release", "assay")))
    if args.only is not None:
        result = injected(args.seed, args.only, assay)
        print(json.dumps(result, indent=1))
        return 1 if result["problems"] else 0
    os.makedirs(args.dir, exist_ok=True)
    kept = os.path.join(args.dir, f"seed-{args.seed}.ndjson")
    results = {}
    if os.path.exists(kept):
        with open(kept) as lines:
            results = {result["number"]: result for result in map(json.loads, lines)}
    of = set(filter(None, args.of.split(",")))
    wanted = [number for number in range(args.faults) if not of or chosen(chance_of(args.seed, number)).name in of]
    missing = [number for number in wanted if number not in results]
    with open(kept, "a") as file, concurrent.futures.ThreadPoolExecutor(args.at_once) as pool:
        going = [pool.submit(injected, args.seed, number, assay) for number in missing]
        for done in concurrent.futures.as_completed(going):
            result = done.result()
            results[result["number"]] = result
            # What the harness could not do is tried again by the next call.
            if "fault" in result:
                file.write(json.dumps(result) + "\n")
                file.flush()
            print(f"{len(results)}/{len(wanted)}", end="\r", file=sys.stderr, flush=True)
    return 1 if told([results[number] for number in wanted]) else 0


if __name__ == "__main__":
    sys.exit(main())
