"""Rehearses every workload in the binary and holds what was seen against what `assay check` says beforehand.

Workloads for reverse proxies run through nginx, those for forward proxies through Squid and the built-in proxy, the one
without a balancer directly. For each run: errors of content and caching (there must be none), other errors, and per
phase the offered DHR that robots counted, as a mean over seeds, against the one that `check` states for the same
rehearsal. They may differ by one point or by three standard errors of that mean, whichever is larger.

What is offered depends on the seed and not on the proxy: the other seeds run directly, all at the same time. The standard
error is taken from the spread over seeds. That of a share, sqrt(p (1 - p) / n), would be several times too small: whether
an object may be cached is decided once for each object, and in a short rehearsal a few objects have most of the requests.
Workloads of best effort have no offered figures before the run; theirs are left out.

Needs a build of assay (the release build, or the one that ASSAY names), nginx and Squid. Everything is on loopback.
Usage: rehearse.py [--length 60s] [--seeds 6] [--page FILE] [--json FILE] [WORKLOAD]...
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ASSAY = os.environ.get("ASSAY", os.path.join(HERE, "target/release/assay"))
FORWARD = ("polymix", "datacomm", "polyfill", "downtime")
CONTENT = {
    "foreign", "wrong_object", "wrong_length", "wrong_bytes", "truncated_body", "wrong_version", "wrong_not_modified",
    "unrequested_coding",
    "stale", "hit_on_reload", "hit_on_uncachable",
}
UNDECIDED, FAILED = 96, 99
MARK = "<!-- runs: made by scripts/rehearse.py -->"


def targets(workload):
    """Command-line arguments of each target a workload is rehearsed with."""
    if workload.startswith("nolb"):
        return [["--direct"]]
    if workload.startswith(FORWARD):
        return [["--proxy", "squid", "--forward"], ["--proxy", "builtin", "--forward"]]
    return [["--proxy", "nginx"]]


def workloads():
    """Names of all workloads in the binary, in the order in which it lists them."""
    listed = subprocess.run([ASSAY, "workloads"], capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in listed.splitlines() if line.startswith("  ")]


def start(workload, target, length, seed, directory):
    """A run that goes on in the background."""
    return subprocess.Popen(
        [ASSAY, "run", workload, *target, "--rehearse", length, "--seed", str(seed), "--json", "--no-live",
         "--no-report", "--run-dir", os.path.join(directory, f"{seed}-{'-'.join(target)}".replace("/", "-"))],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )


def finish(run):
    """Its summary, or the last word of what went wrong."""
    out, words = run.communicate()
    if run.returncode in (0, UNDECIDED, FAILED):
        return json.loads(out), None
    return None, (words.strip().splitlines() or [f"exit {run.returncode}"])[-1]


def offered_by_phase(summary):
    """Offered DHR of each phase that had basic requests."""
    return {p["name"]: p["dhr"]["offered"] for p in summary["phases"] if p["dhr"]["offered"] is not None and p["basic"]}


def rehearse(workload, length, seeds):
    """All runs of a workload: for each target what was seen, and the phases against what was said before."""
    check = subprocess.run([ASSAY, "check", workload, "--rehearse", length, "--json"], capture_output=True, text=True)
    if check.returncode != 0:
        return [{"workload": workload, "target": ["check"], "failed": check.stderr.strip()}]
    said = {p["name"]: p["offered_dhr"] for p in json.loads(check.stdout)["phases"] if p["offered_dhr"] is not None}
    results, offered = [], []
    with tempfile.TemporaryDirectory() as directory:
        for target in targets(workload):
            summary, failed = finish(start(workload, target, length, 1, directory))
            results.append({"workload": workload, "target": target, **({"failed": failed} if failed else seen(summary))})
            if summary and len(offered) == 0:
                offered.append(offered_by_phase(summary))
        others = range(2, seeds + 1) if said else ()
        for run in [start(workload, ["--direct"], length, seed, directory) for seed in others]:
            summary, failed = finish(run)
            if failed:
                results.append({"workload": workload, "target": ["--direct"], "failed": failed})
            else:
                offered.append(offered_by_phase(summary))
    phases = compare(said, offered)
    return [{**result, "phases": phases} for result in results]


def seen(summary):
    """What a run through a target says."""
    kinds, total = summary["total"]["errors"]["by_kind"], summary["total"]
    return {
        "requests": total["requests"],
        "content": {kind: n for kind, n in kinds.items() if kind in CONTENT and n},
        "other": {kind: n for kind, n in kinds.items() if kind not in CONTENT and n},
        "valid": summary["valid"], "measured": total["dhr"]["measured"], "ideal": total["dhr"]["ideal"],
    }


def compare(said, offered):
    """Phases: the mean over seeds against what was said. A phase that some seed has no request in is left out."""
    phases = []
    for name, expected in said.items():
        values = [by_phase[name] for by_phase in offered if name in by_phase]
        if len(values) < max(2, len(offered)):
            continue
        mean, error = statistics.mean(values), statistics.stdev(values) / math.sqrt(len(values))
        allowed = max(0.01, 3 * error)
        phases.append({
            "name": name, "seeds": len(values), "said": expected, "seen": mean, "allowed": allowed,
            "ok": abs(mean - expected) <= allowed,
        })
    return phases


def percent(share):
    return "–" if share is None else f"{share * 100:.1f}"


def row(workload, target, seen):
    """A line of the table."""
    name = " ".join(word for word in target if word != "--proxy").replace("--", "")
    if "failed" in seen:
        return f"| {workload} | {name} | failed: {seen['failed']} | | | | |"
    errors = ", ".join(f"{kind} {n}" for kind, n in seen["content"].items()) or "0"
    other = ", ".join(f"{kind} {n}" for kind, n in seen["other"].items()) or "0"
    within = sum(phase["ok"] for phase in seen["phases"])
    worst = max(seen["phases"], key=lambda p: abs(p["seen"] - p["said"]) / p["allowed"], default=None)
    words = "–" if worst is None else (
        f"{within} of {len(seen['phases'])}; {worst['name']}: {percent(worst['said'])} said, "
        f"{percent(worst['seen'])} seen, ± {percent(worst['allowed'])}"
    )
    hits = f"{percent(seen['measured'])} / {percent(seen['ideal'])}"
    return f"| {workload} | {name} | {seen['requests']} | {errors} | {other} | {words} | {hits} |"


def write_page(path, rows, length, seeds):
    """Puts the table behind the mark of a page."""
    with open(path) as page:
        head, _, _ = page.read().partition(MARK)
    version = subprocess.run([ASSAY, "--version"], capture_output=True, text=True).stdout.strip()
    with open(path, "w") as page:
        page.write(f"{head}{MARK}\n\nSqueezed to {length} each, {seeds} seeds, {version}.\n\n")
        page.write("| workload | through | requests | content errors | other errors | phases as said; the furthest off "
                   "| DHR measured / ideal, % |\n|---|---|---|---|---|---|---|\n")
        page.write("\n".join(rows) + "\n")


def main():
    parser = argparse.ArgumentParser(description="rehearse the bundled workloads")
    parser.add_argument("--length", default="60s")
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--page")
    parser.add_argument("--json")
    parser.add_argument("workload", nargs="*")
    args = parser.parse_args()
    rows, everything, good = [], [], True
    for workload in args.workload or workloads():
        for result in rehearse(workload, args.length, args.seeds):
            everything.append(result)
            rows.append(row(workload, result["target"], result))
            good &= "failed" not in result and not result["content"] and all(p["ok"] for p in result["phases"])
            print(rows[-1], flush=True)
    if args.page:
        write_page(args.page, rows, args.length, args.seeds)
    if args.json:
        with open(args.json, "w") as out:
            json.dump(everything, out, indent=1)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
