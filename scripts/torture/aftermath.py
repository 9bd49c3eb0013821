"""What must be true after a fault, whatever it was.

- The command ends by itself, with an exit code that the manual names, or by the signal that was sent to it. Where it fails, it says something.
- Nothing panics, but for want of memory.
- Soon after, no process, no directory in /tmp and no shared memory of it is left. What a killed command leaves, the next start removes.
- What it recorded can be read; where the command itself was killed, up to the last whole second before, and what it takes to hand that over.
"""

import calendar
import glob
import json
import os
import signal
import subprocess
import time

# Exit codes in the manual: fine, failed, wrong arguments, undecided, requirement not met, interrupted.
KNOWN_CODES = {0, 1, 2, 96, 99, 105}
# A program that gets no memory is ended by a signal, or by a library of it that panics where none is left for it.
PANIC_CODE = 101
# How long what watches over a killed command may take to clean up.
SOON_S = 12
MOST_S = 60
# By how much a record may end before a kill: roles report once a second, and a busy machine takes some time for that.
MOST_BEHIND_S = 2.5
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
    elif code not in KNOWN_CODES and not is_signal and not (code == PANIC_CODE and is_own_end and is_starved):
        problems.append(f"exit code {code}")
    if code not in (0, None) and not said.strip() and not is_signal:
        problems.append(f"exit code {code} without a word")
    # Of one that gets no memory it is enough that it says so.
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
    """What `assay report` must read: a run, each run of an experiment, an experiment of which a run is done, and an evaluation."""
    if os.path.exists(f"{directory}/spe.json"):
        return [directory]
    runs = [os.path.dirname(path) for path in glob.glob(f"{directory}/run.json") + glob.glob(f"{directory}/cells/*/run.json")]
    try:
        with open(os.path.join(directory, "experiment.json")) as file:
            is_done = any(cell["state"] == "done" for cell in json.load(file)["cells"])
    except FileNotFoundError:
        is_done = False
    return runs + [directory] * is_done


def read(assay, directory):
    """A record is readable, however it ended."""
    reports = ["spe", "report"] if os.path.exists(f"{directory}/spe.json") else ["report"]
    report = subprocess.run([assay, *reports, directory, "--json", "--no-report"], capture_output=True, text=True, timeout=MOST_S)
    if "panicked at" in report.stderr:
        return ["report: " + report.stderr[-300:]]
    if report.returncode != 0:
        return [f"report ends with {report.returncode}: {report.stderr[-200:]}"]
    try:
        json.loads(report.stdout)
    except ValueError as error:
        return [f"report printed no document: {error}"]
    return []


def journalled(directory, fault_ms):
    """By how many seconds the measurements of a run that was under way end before the fault; none: its schedule had not begun, or was over."""
    with open(os.path.join(directory, "run.json")) as file:
        info = json.load(file)
    ended_ms, begun_ms = 0, info["started_unix_ms"]
    with open(os.path.join(directory, "journal.jsonl")) as file:
        for line in file:
            try:
                interval = json.loads(line).get("robots")
            except ValueError:
                continue  # the line that was being written
            if interval:
                ended_ms = max(ended_ms, interval["start_ms"] + interval["length_ms"])
    into_ms = min(fault_ms - begun_ms, max(phase["planned_end_ms"] or 0 for phase in info["phases"]))
    return (into_ms - ended_ms) / 1000 if begun_ms and into_ms > 0 else None


def logged(fault_unix_s):
    """The same of the switch's access log, which has instants to the second: of its last line."""
    with open("access.log", errors="replace") as file:
        lines = [line for line in file if line.endswith("\n")]
    if not lines:
        return None
    at = time.strptime(lines[-1].split("[", 1)[1].split(" ", 1)[0], "%d/%b/%Y:%H:%M:%S")
    # Its second, to the end.
    return fault_unix_s - calendar.timegm(at) - 1


def reach(command, fault_unix_s):
    """By how much each record ends before the fault that killed the command."""
    if command.name == "switch":
        found = [logged(fault_unix_s)] if os.path.exists("access.log") else []
    else:
        journals = glob.glob("kept/journal.jsonl") + glob.glob("kept/cells/*/journal.jsonl")
        found = [journalled(os.path.dirname(path), fault_unix_s * 1000) for path in journals]
    return [round(behind_s, 2) for behind_s in found if behind_s is not None]
