"""Rehearses every workload in the binary and holds what was seen against what `assay check` says beforehand.

Workloads for reverse proxies run through nginx, those for forward proxies through Squid and the built-in proxy, the one
without a balancer directly. For each run: errors of content and caching (there must be none), other errors, and per
phase the offered DHR that the origins' and robots' counts give against the one that `check` states for the same
rehearsal. They may differ by one point or by three standard errors, whichever is larger.

The standard error is that of a share of the phase's basic requests, sqrt(p (1 - p) / n). Workloads of best effort have
no offered figures before the run; theirs are left out.

Needs a build of assay (the release build, or the one that ASSAY names), nginx and Squid. Everything is on loopback.
Usage: rehearse.py [--length 60s] [--page FILE] [--json FILE] [WORKLOAD]...
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ASSAY = os.environ.get("ASSAY", os.path.join(HERE, "target/release/assay"))
FORWARD = ("polymix", "datacomm", "polyfill", "downtime")
CONTENT = {
    "foreign", "wrong_object", "wrong_length", "wrong_bytes", "truncated_body", "wrong_version", "wrong_not_modified",
    "stale", "hit_on_reload", "hit_on_uncachable",
}
INVALID = 96
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


def rehearse(workload, target, length):
    """One run: what was seen, or why there is nothing to see."""
    asked = ["--rehearse", length]
    check = subprocess.run([ASSAY, "check", workload, *asked, "--json"], capture_output=True, text=True)
    if check.returncode != 0:
        return {"failed": check.stderr.strip()}
    with tempfile.TemporaryDirectory() as directory:
        run = subprocess.run(
            [ASSAY, "run", workload, *target, *asked, "--json", "--no-live", "--no-report",
             "--run-dir", os.path.join(directory, "run")],
            capture_output=True, text=True,
        )
    if run.returncode not in (0, INVALID):
        return {"failed": run.stderr.strip().splitlines()[-1] if run.stderr.strip() else f"exit {run.returncode}"}
    return compare(json.loads(check.stdout), json.loads(run.stdout))


def compare(check, summary):
    """Errors of a run, and its phases against what was said before."""
    kinds = summary["total"]["errors"]["by_kind"]
    phases = []
    for said, seen in zip(check["phases"], summary["phases"]):
        offered, basic = seen["dhr"]["offered"], seen["basic"]
        if said["offered_dhr"] is None or offered is None or basic == 0:
            continue
        expected = said["offered_dhr"]
        error = math.sqrt(max(expected * (1 - expected), 0.0) / basic)
        allowed = max(0.01, 3 * error)
        phases.append({
            "name": seen["name"], "basic": basic, "said": expected, "seen": offered,
            "allowed": allowed, "ok": abs(offered - expected) <= allowed,
        })
    return {
        "requests": summary["total"]["requests"],
        "content": {kind: n for kind, n in kinds.items() if kind in CONTENT and n},
        "other": {kind: n for kind, n in kinds.items() if kind not in CONTENT and n},
        "valid": summary["valid"], "phases": phases,
        "measured": summary["total"]["dhr"]["measured"], "ideal": summary["total"]["dhr"]["ideal"],
    }


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


def write_page(path, rows, length):
    """Puts the table behind the mark of a page."""
    with open(path) as page:
        head, _, _ = page.read().partition(MARK)
    version = subprocess.run([ASSAY, "--version"], capture_output=True, text=True).stdout.strip()
    with open(path, "w") as page:
        page.write(f"{head}{MARK}\n\nSqueezed to {length} each, {version}.\n\n")
        page.write("| workload | through | requests | content errors | other errors | phases as said; the furthest off "
                   "| DHR measured / ideal, % |\n|---|---|---|---|---|---|---|\n")
        page.write("\n".join(rows) + "\n")


def main():
    parser = argparse.ArgumentParser(description="rehearse the bundled workloads")
    parser.add_argument("--length", default="60s")
    parser.add_argument("--page")
    parser.add_argument("--json")
    parser.add_argument("workload", nargs="*")
    args = parser.parse_args()
    rows, everything, good = [], [], True
    for workload in args.workload or workloads():
        for target in targets(workload):
            seen = rehearse(workload, target, args.length)
            everything.append({"workload": workload, "target": target, **seen})
            rows.append(row(workload, target, seen))
            good &= "failed" not in seen and not seen["content"] and all(p["ok"] for p in seen["phases"])
            print(rows[-1], flush=True)
    if args.page:
        write_page(args.page, rows, args.length)
    if args.json:
        with open(args.json, "w") as out:
            json.dump(everything, out, indent=1)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
