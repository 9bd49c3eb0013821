"""Checks Assay by means that are not its own: each check is code that shares nothing with it but file formats.

Usage: verify [--list] [--only NAME]… [--self-test] [--page]. Prints a line for each comparison, and ends with 0 only if all
hold. With --self-test, checks are fed data that is wrong, and must see it. With --page, results go to bench/verify.json, where
they take the place of those of the same checks, and from there to the manual's page.

Needs a build of Assay (the release build, or the one that ASSAY names) and the Python that scripts/test-setup.sh makes. All
traffic is on loopback; no network is needed. It ends itself after half an hour at most.
"""

import argparse
import os
import platform
import signal
import subprocess
import sys
import time

import page
import access_logs
import arrivals
import byte_basis
import clusters
import comparison
import ideal
import limit
import mix
import recount
from checks import UNTOUCHED, Row
from lab import ASSAY, Lab

TOPICS = (arrivals, recount, ideal, byte_basis, mix, comparison, access_logs, clusters, limit)
CHECKS = {check.name: check for topic in TOPICS for check in topic.CHECKS}
LIMIT_S = 1800


def run(check, lab):
    """Its rows. A check that cannot be carried out is one that does not hold."""
    try:
        return list(check.run(lab))
    except Exception as error:  # whatever it is, the others go on
        return [Row("carried out", "yes", f"{type(error).__name__}: {error}", False)]


def verify(chosen, lab):
    """Runs the checks: {name: rows}."""
    for check in chosen:
        check.wants(lab)
    found = {}
    for check in chosen:
        begun = time.monotonic()
        found[check.name] = run(check, lab)
        for row in found[check.name]:
            print(f"{check.name:<20} {row}", flush=True)
        print(f"{check.name:<20} took {time.monotonic() - begun:.0f} s", file=sys.stderr)
    wrong = [name for name, rows in found.items() if not rows or not all(row.ok for row in rows)]
    print(f"{len(found) - len(wrong)} of {len(found)} checks hold" + (f"; NOT {', '.join(wrong)}" if wrong else ""))
    return found, not wrong


def self_test(chosen, lab):
    """True when every check holds for data that is right, and fails for all data that is wrong."""
    good = True
    for check in chosen:
        cases = 0
        for what, rows in check.self_test(lab):
            holds = bool(rows) and all(row.ok for row in rows)
            right = holds == (what == UNTOUCHED)
            good, cases = good and right, cases + (what != UNTOUCHED)
            print(
                f"{check.name:<20} {what}: {'holds' if holds else 'fails'}, {'ok' if right else 'NOT ok'}", flush=True
            )
            if not right:
                print(*(f"    {row}" for row in rows if row.ok == (what != UNTOUCHED)), sep="\n")
        if not cases:
            print(f"{check.name:<20} is fed nothing that is wrong: NOT ok")
            good = False
    return good


def main():
    parser = argparse.ArgumentParser(
        prog="verify", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="say which checks there are")
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="only this check, or those that begin so"
    )
    parser.add_argument("--self-test", action="store_true", help="feed checks data that is wrong")
    parser.add_argument("--page", action="store_true", help="write bench/verify.json and the manual's page")
    args = parser.parse_args()
    chosen = [check for name, check in CHECKS.items() if not args.only or name.startswith(tuple(args.only))]
    if not chosen:
        parser.error(f"there is no such check; there are {', '.join(CHECKS)}")
    if args.list:
        print(*(f"{check.name:<20} {check.claim}" for check in chosen), sep="\n")
        return 0
    if not os.access(ASSAY, os.X_OK):
        sys.exit(f"there is no Assay at {ASSAY}: `make build`, or name one with ASSAY=")
    if args.page and (missing := page.missing_tests()):
        sys.exit(
            f"the page names tests that are not there any more ({', '.join(missing)}): mend TESTS in scripts/verify/page.py"
        )
    for number in (signal.SIGALRM, signal.SIGTERM):
        signal.signal(number, lambda number, _: sys.exit(f"ended by {signal.Signals(number).name}"))
    signal.alarm(LIMIT_S)
    lab, begun = Lab(), time.monotonic()
    try:
        if args.self_test:
            return not self_test(chosen, lab)
        found, holds = verify(chosen, lab)
    finally:
        lab.close()
    if args.page:
        page.keep(
            CHECKS,
            found,
            {
                "date": time.strftime("%Y-%m-%d"),
                "system": f"{platform.system()} {platform.release()}",
                "processors": os.cpu_count(),
                "assay": subprocess.run(
                    [ASSAY, "--version"], capture_output=True, text=True, check=True
                ).stdout.split()[1],
                "seconds": round(time.monotonic() - begun),
            },
        )
    return not holds


sys.exit(main())
