"""Does a search for a limit find the same twice? Each proxy is held to a share of a processor, so that its limit is its own
and not this machine's, and searched twice with the same seed; what the two found is compared.

Takes about five minutes for each search. Nothing else should run meanwhile. Prints a table in Markdown.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile


def search(assay, proxy, args, directory):
    """What one search found, as its document."""
    command = [
        assay, "run", args.workload, "--proxy", proxy, "--cpu-quota", str(args.quota), "--find-peak", args.promise,
        "--peak-from", "1000", "--peak-step", f"{args.step}s", "--peak-warm", "20s", "--rehearse", f"{args.most}s",
        "--no-live", "--no-report", "--json", "--run-dir", str(directory),
    ]
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if ran.returncode not in (0, 96):
        sys.exit(f"the search for the limit of {proxy} ended with {ran.returncode}:\n{ran.stderr[-2000:]}")
    return json.loads(ran.stdout)


def told(peak):
    """A search in a few words."""
    if peak["peak_per_s"] is None:
        return "none"
    sure = "" if peak["is_confirmed"] else ", not confirmed"
    moved = ", moved" if peak.get("shift") else ""
    low, high = peak["low_per_s"], peak["high_per_s"]
    between = f" [{low:,.0f}, {high:,.0f}]" if low and high else ""
    return f"{peak['peak_per_s']:,.0f}{between}, {len(peak['steps'])} steps{sure}{moved}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("proxies", nargs="*", default=["nginx", "varnish", "squid"])
    parser.add_argument("--workload", default="bench/steady.pg")
    parser.add_argument("--promise", default="p99(hit) < 20ms, errors < 0.1%")
    parser.add_argument("--quota", type=float, default=0.2, help="processors that a proxy may use")
    parser.add_argument("--step", type=int, default=6, help="seconds for each rate")
    parser.add_argument("--most", type=int, default=400, help="seconds for each search")
    args = parser.parse_args()
    assay = os.environ.get("ASSAY", "target/release/assay")
    print("| proxy | once, requests/s | again | again / once |\n|---|---|---|--:|")
    with tempfile.TemporaryDirectory() as place:
        for proxy in args.proxies:
            found = [search(assay, proxy, args, pathlib.Path(place) / f"{proxy}-{turn}") for turn in (1, 2)]
            rates = [peak["peak_per_s"] for peak in found]
            ratio = f"{rates[1] / rates[0]:.3f}" if all(rates) else "–"
            print(f"| {proxy} | {told(found[0])} | {told(found[1])} | {ratio} |", flush=True)


main()
