"""What must be true after a fault, whatever it was.

- The command ends by itself, with an exit code that the manual names, or by the signal that was sent to it. Where it fails, it says something.
- Nothing panics.
- Soon after, no process, no directory in /tmp and no shared memory of it is left. What a killed command leaves, the next start removes.
- What it recorded can be read.
"""

import glob
import json
import os
import signal
import subprocess
import time

# Exit codes in the manual: fine, failed, wrong arguments, undecided, requirement not met, interrupted.
KNOWN_CODES = {0, 1, 2, 96, 99, 105}
# How long what watches over a killed command may take to clean up.
SOON_S = 12
MOST_S = 60
# Where there is room even if the disk is full.
STDOUT, STDERR = "/mnt/stdout", "/mnt/stderr"


def left():
    """Directories and shared memory that commands make outside their own directory."""
    return sorted(
        os.path.join(where, name) for where in ("/tmp", "/dev/shm") for name in os.listdir(where) if name not in ("work", "fill")
    )


def gone(processes):
    """Waits until nothing is left. What is, if it stays."""
    deadline = time.monotonic() + SOON_S
    while (processes() or left()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return [*processes().values()], left()


def text(name):
    with open(name, errors="replace") as file:
        return file.read()


def of(command, typed, code, is_own_end, is_starved, processes):
    problems = []
    said = text(STDOUT) + text(STDERR)
    # A signal that no command asks for, or that came before it did, ends it as it does any program.
    is_signal = code is not None and code < 0 and (is_own_end or -code in (signal.SIGTERM, signal.SIGINT))
    if code is None:
        problems.append("the command did not end")
    elif code not in KNOWN_CODES and not is_signal:
        problems.append(f"exit code {code}")
    if code not in (0, None) and not said.strip() and not is_signal:
        problems.append(f"exit code {code} without a word")
    # A program that gets no memory may give up in any of its libraries; that it says so is enough.
    if "panicked at" in said and not is_starved:
        problems.append("panic: " + said[said.index("panicked at") :][:200])
    running, files = gone(processes)
    if running:
        problems.append(f"still running: {running}")
    if files and not running:
        # The next start removes what a killed one left.
        subprocess.run([typed[0], "run", "demo", "--rehearse", "1s", "--no-report", "--run-dir", "next"], capture_output=True, timeout=MOST_S)
        running, files = gone(processes)
        if running or files:
            problems.append(f"left after the next start: {running} {files}")
    if command.record:
        problems += [problem for directory in recorded(command.record) for problem in read(typed[0], directory)]
    return {"problems": problems, "said": said[-600:] if problems else ""}


def recorded(directory):
    """What `assay report` must read: a run, each run of an experiment, and an experiment of which a run is done."""
    runs = [os.path.dirname(path) for path in glob.glob(f"{directory}/run.json") + glob.glob(f"{directory}/cells/*/run.json")]
    try:
        with open(os.path.join(directory, "experiment.json")) as file:
            is_done = any(cell["state"] == "done" for cell in json.load(file)["cells"])
    except FileNotFoundError:
        is_done = False
    return runs + [directory] * is_done


def read(assay, directory):
    """A run is readable, however it ended."""
    report = subprocess.run([assay, "report", directory, "--json", "--no-report"], capture_output=True, text=True, timeout=MOST_S)
    if "panicked at" in report.stderr:
        return ["report: " + report.stderr[-300:]]
    if report.returncode != 0:
        return [f"report ends with {report.returncode}: {report.stderr[-200:]}"]
    try:
        json.loads(report.stdout)
    except ValueError as error:
        return [f"report printed no document: {error}"]
    return []
