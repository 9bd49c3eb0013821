"""What does it cost robots that they are commanded over NATS? Their requests per second of processor time, with a fleet and without.

The same steady workload runs in turns, straight to origins: as processes of `assay run`, and on the one agent of `assay fleet up`, on
this machine. An agent does not bind threads to processors and uses all of them, so the run without a fleet is told to do the same
(`--no-pin`, and as many threads). The figure is the ratio of robots' requests per second of their processor time, in pairs of runs that
follow each other; that of robots and origins together is beside it.

    scripts/fleet-cost.sh [PAIRS [RATE [SECONDS]]]     ASSAY=path/to/assay: measure that one instead of building it
"""

import json
import os
import subprocess
import sys
import tempfile

import paired_runs
from paired_runs import HERE

ASSAY = os.environ.get("ASSAY", os.path.join(HERE, "target/release/assay"))
# Exit codes of a run that was measured: fine, or with doubts about this machine, which do not matter here.
MEASURED = (0, 96)


def run(source, url, seed):
    """Microseconds of processor time of robots and of origins per request."""
    with tempfile.TemporaryDirectory() as directory:
        command = [ASSAY, "run", source, "--direct", "--run-dir", os.path.join(directory, "run"), "--no-live"]
        command += ["--no-report", "--json", "--seed", str(seed)]
        command += ["--fleet", url] if url else ["--no-pin", "--threads", str(len(os.sched_getaffinity(0)))]
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if ended.returncode not in MEASURED:
            sys.exit(ended.stderr)
    cpu = json.loads(ended.stdout)["total"]["cpu_us_per_request"]
    return cpu["robots"], cpu["origins"]


def compare(source, url, pairs):
    """Requests per second of processor time with a fleet over those without, for each pair: of robots, and of robots and origins."""
    ratios = []
    for pair in range(pairs):
        both = {}
        # Which one is first changes from pair to pair.
        for fleet in (False, True) if pair % 2 == 0 else (True, False):
            both[fleet] = run(source, url if fleet else None, pair + 1)
        ratios.append((both[False][0] / both[True][0], sum(both[False]) / sum(both[True])))
        print(f"  robots {both[False][0]:6.2f} us a request without, {both[True][0]:6.2f} us with a fleet: {ratios[-1][0]:.4f}", flush=True)
    return ratios


def main():
    pairs, rate, seconds = paired_runs.arguments()
    print(f"{pairs} pairs of {seconds} s at {rate:,} requests a second; robots' requests per second of their processor time")
    with tempfile.TemporaryDirectory() as directory:
        source = paired_runs.steady(directory, rate, seconds)
        command = [ASSAY, "fleet", "up", "--agents", "1", "--port", "0"]
        fleet = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=directory)
        try:
            url = next((word for line in fleet.stderr for word in line.split() if word.startswith("nats://")), None)
            if url is None:
                sys.exit("`assay fleet up` did not start; it needs nats-server")
            ratios = compare(source, url.rstrip(";"), pairs)
        finally:
            fleet.terminate()
            fleet.wait()
    print("robots:", paired_runs.words([robots for robots, _ in ratios]))
    print("robots and origins:", paired_runs.words([both for _, both in ratios]))


if __name__ == "__main__":
    main()
