"""Counts results of `assay conform` that contradict each other when the same proxies are tried again, and results that say nothing.

Each run tries all cases on all proxies at once and keeps its JSON document in --dir, so an interrupted series is gone on with. Two results
of one proxy and case contradict each other if both are decided (pass, fail, yes, no) and differ. A case that is *dependency missing* in one run
and decided in another is counted by itself: its dependency was inconclusive or contradictory then.

Exit code 1: a contradiction, or more than 1 % of a proxy's results inconclusive.
Needs a build of assay (the release build, or the one that ASSAY names), and the proxies.
Usage: conform_runs.py [--times N] [--dir DIR] [PROXY]...
"""

import argparse
import collections
import json
import os
import subprocess
import sys

from kept_runs import ASSAY, HERE

PROXIES = ["builtin", "varnish", "nginx", "squid", "haproxy", "httpd", "trafficserver"]
# Whether a verdict says that a case holds. One that holds sometimes does not.
HOLDS = {"pass": True, "yes": True, "fail": False, "sometimes": False, "no": False}
MOST_INCONCLUSIVE = 0.01


def tried(proxies, file):
    """Makes one run; its document appears under its name only when it is complete."""
    part = file + ".part"
    command = [ASSAY, "conform", *proxies, "--report-only", "--quiet", "--json", "-o", part]
    before = os.getloadavg()[0]
    subprocess.run(command, check=True)
    os.replace(part, file)
    with open(file) as text:
        took = max(target["took_s"] for target in json.load(text)["targets"])
    print(f"{os.path.basename(file)}: {took:.0f} s, load {before:.1f} before", file=sys.stderr, flush=True)


def counted(documents):
    """By proxy: results, inconclusive ones, contradictions, results that were not always decided."""
    verdicts = collections.defaultdict(lambda: collections.defaultdict(list))
    for document in documents:
        for result in document["results"]:
            verdicts[result["target"]][result["case"]].append(result["verdict"])
    rows = {}
    for target, cases in verdicts.items():
        of_all = [verdict for all_runs in cases.values() for verdict in all_runs]
        decided = {case: {HOLDS[verdict] for verdict in seen if verdict in HOLDS} for case, seen in cases.items()}
        contradict = {case: seen for case, seen in cases.items() if len(decided[case]) > 1}
        undecided = {case for case, seen in cases.items() if decided[case] and "dependency-missing" in seen}
        rows[target] = (len(of_all), of_all.count("inconclusive"), contradict, undecided)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20, help="runs")
    parser.add_argument("--dir", default=os.path.join(HERE, "target", "conform-runs"), help="where documents are kept")
    parser.add_argument("proxy", nargs="*", default=PROXIES, help=", ".join(PROXIES))
    args = parser.parse_args()
    os.makedirs(args.dir, exist_ok=True)
    documents = []
    for number in range(1, args.times + 1):
        file = os.path.join(args.dir, f"{number:03}.json")
        if not os.path.exists(file):
            tried(args.proxy, file)
        with open(file) as text:
            documents.append(json.load(text))
    is_kept = True
    print(f"{len(documents)} runs\n\n| target | results | inconclusive | contradictions | not always decided |\n|---|--:|--:|--:|--:|")
    for target, (results, inconclusive, contradict, undecided) in counted(documents).items():
        share = inconclusive / results
        is_kept &= share <= MOST_INCONCLUSIVE and not contradict
        print(f"| {target} | {results:,} | {inconclusive} ({share:.2%}) | {len(contradict)} | {len(undecided)} |")
        for case, seen in contradict.items():
            print(f"  {target} {case}: {' '.join(seen)}", file=sys.stderr)
    return 0 if is_kept else 1


if __name__ == "__main__":
    sys.exit(main())
