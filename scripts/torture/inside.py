"""Injects one fault; to be started in namespaces of its own, as their first process. Prints what came of it as one JSON line.

Usage: inside.py SEED NUMBER ASSAY
"""

import json
import os
import signal
import subprocess
import sys
import time

import aftermath
from commands import chance_of, chosen
from namespaces import mounted, processes, signalled

# Room for everything that is written: Varnish and Squid need some for stores and shared memory.
ROOM_MB = 768
# How long a fault lasts that is taken back.
PAUSE_S = (0.3, 3.0)
# By when a command is over whose fault is.
MOST_S = 90


def kill(victim, _):
    signalled(victim, signal.SIGKILL)


def end(victim, _):
    signalled(victim, signal.SIGTERM)


def interrupt(victim, _):
    signalled(victim, signal.SIGINT)


def stop(victim, pause_s):
    signalled(victim, signal.SIGSTOP)
    time.sleep(pause_s)
    signalled(victim, signal.SIGCONT)


def starve(victim, _):
    """No more memory than it has."""
    try:
        with open(f"/proc/{victim}/statm") as file:
            pages = int(file.read().split()[0])
    except OSError:
        return
    limit = str((pages + 64) * os.sysconf("SC_PAGESIZE"))
    subprocess.run(["prlimit", f"--pid={victim}", f"--as={limit}"], capture_output=True)


def fill(_, pause_s):
    """No more room, until later."""
    try:
        with open("/tmp/fill", "wb") as file:
            block = b"\0" * (1 << 20)
            while True:
                file.write(block)
                file.flush()
    except OSError:
        pass
    time.sleep(pause_s)
    os.remove("/tmp/fill")


def cut(_, pause_s):
    """Nothing arrives, until later."""
    subprocess.run(["iptables", "-I", "INPUT", "-j", "DROP"], check=True)
    time.sleep(pause_s)
    subprocess.run(["iptables", "-D", "INPUT", "-j", "DROP"], check=True)


FAULTS = [kill, kill, kill, end, interrupt, stop, stop, starve, fill, cut]


def main():
    seed, number, assay = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    chance = chance_of(seed, number)
    assay = mounted(assay, ROOM_MB)
    os.chdir("/tmp/work")
    command = chosen(chance)
    typed = command.prepare(assay, chance)
    fault = chance.choice(FAULTS)
    at_s = round(chance.uniform(0.0, command.takes_s), 2)
    pause_s = chance.uniform(*PAUSE_S)
    result = {"number": number, "command": command.name, "typed": " ".join(typed), "fault": fault.__name__, "at_s": at_s}
    beside = lambda _: []
    if command.name == "agent":
        beside = command.beside(assay)
    with open(aftermath.STDOUT, "wb") as out, open(aftermath.STDERR, "wb") as err:
        going = subprocess.Popen(typed, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
    if command.name != "agent":
        beside = command.beside(assay)
    deadline = time.monotonic() + at_s
    while time.monotonic() < deadline and going.poll() is None:
        time.sleep(0.02)
    alive = sorted(processes().items())
    victim, words = chance.choice(alive) if alive else (None, "nothing")
    result["victim"] = words
    fault_unix_s = time.time()
    if victim is not None:
        fault(victim, pause_s)
    problems = list(beside(going)) if command.endless else []
    try:
        code = going.wait(MOST_S)
    except subprocess.TimeoutExpired:
        code = None
        going.kill()
    if not command.endless:
        problems += beside(going)
    is_own_end = victim == going.pid and fault in (kill, starve)
    is_starved = fault is starve and words.startswith(assay)
    after = aftermath.of(command, typed, code, is_own_end, is_starved, processes)
    problems += after["problems"]
    if victim == going.pid and fault is kill:
        reach = aftermath.reach(command, fault_unix_s)
        result["behind_s"] = reach
        problems += [f"the record ends {behind_s:.2f} s before the fault" for behind_s in reach if behind_s > aftermath.MOST_BEHIND_S]
    print(json.dumps(result | {"code": code} | after | {"problems": problems}))


main()
