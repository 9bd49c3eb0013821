"""Measures Assay itself against its peers: processor time and memory, alternating, as ratios.

Everything happens on loopback and ends by itself. Needs a release build of the binary and of the engine's examples, wrk,
nginx, HAProxy and httpd; other generators are measured where they are.
Usage: benchmarks [--rounds N] [--seconds S] [--page] [WHAT…], where WHAT is one or more of the names below; all of them
if none is named. With --page, results go to bench/results.json, where they take the place of those
from a processor of the same kind, and from there to the manual's page.
"""

import argparse
import os
import platform
import signal
import statistics
import subprocess
import sys
import time

import generators
import measures
import page
from machine import ASSAY, processor

NEEDED = ("wrk", "nginx", "haproxy", "apache2")


def show(row):
    ours = statistics.median(row.ours)
    theirs = f"{statistics.median(row.theirs):>11,.0f}" if row.theirs else " " * 11
    ratio = f"{row.judged:>7.2f}  {min(row.ratios):.2f} to {max(row.ratios):.2f}" if row.theirs else " " * 21
    met = "" if not row.target else ("" if row.is_met else "  MISSED")
    print(f"{row.name + ' / ' + (row.against or '-'):<64} {ours:>11,.0f} {theirs} {ratio}   {row.target}{met}", flush=True)


def as_json(row):
    found = {"name": row.name, "unit": row.unit, "against": row.against, "target": row.target, "met": row.is_met,
             "ours": row.ours, "theirs": row.theirs, "median_ours": statistics.median(row.ours)}
    if row.theirs:
        found |= {"median_theirs": statistics.median(row.theirs), "median_ratio": row.judged,
                  "least_ratio": min(row.ratios), "most_ratio": max(row.ratios)}
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="What there is: " + ", ".join(measures.ALL))
    parser.add_argument("what", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--page", action="store_true", help="write bench/results.json and the manual's page")
    args = parser.parse_args()
    unknown = [name for name in args.what if name not in measures.ALL]
    if unknown:
        parser.error(f"{', '.join(unknown)}: there is {', '.join(measures.ALL)}")
    missing = [name for name in NEEDED if not generators.tool(name)]
    if missing:
        sys.exit(f"the benchmarks need {', '.join(missing)}; as root on Debian, scripts/bench.sh installs them")
    # Ends by itself whatever happens.
    signal.signal(signal.SIGALRM, lambda *_: sys.exit("the benchmarks took longer than 75 minutes"))
    signal.alarm(4500)
    print(f"{os.cpu_count()} processors ({processor()}), {platform.system()} {platform.release()}, {time.strftime('%Y-%m-%d')}")
    rows = []
    for name in args.what or measures.ALL:
        for row in measures.ALL[name](args.rounds, args.seconds):
            show(row)
            rows.append(row)
    if args.page:
        absent = [name for name in generators.ALL if not generators.tool(name)]
        there = [name for name in (*generators.ALL, *NEEDED[1:]) if generators.tool(name)]
        said = subprocess.run([ASSAY, "--version"], capture_output=True, text=True, check=True).stdout
        results = {
            "date": time.strftime("%Y-%m-%d"), "processors": os.cpu_count(), "processor": processor(),
            "system": f"{platform.system()} {platform.release()}", "assay": said.split()[1], "rounds": args.rounds,
            "seconds": args.seconds, "versions": {name: generators.version(name) for name in there}, "absent": absent,
            "rows": [as_json(row) for row in rows],
        }
        page.keep(results)
        page.write()


if __name__ == "__main__":
    main()
