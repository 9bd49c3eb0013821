"""Where do the processes of a benchmark run, how are they started, and what did they use?

One processor belongs to the servers, the other to the clients. Whatever is started here ends here.
"""

import atexit
import json
import os
import platform
import signal
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ASSAY = os.path.abspath(os.environ.get("ASSAY", os.path.join(HERE, "target/release/assay")))
EXAMPLES = os.path.abspath(os.environ.get("ASSAY_EXAMPLES", os.path.join(HERE, "target/release/examples")))
PATH = os.environ.get("ASSAY_BENCH_TOOLS", "") + ":" + os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
TICK = os.sysconf("SC_CLK_TCK")
CPUS = sorted(os.sched_getaffinity(0))
SERVER, CLIENT = CPUS[0], CPUS[-1]
STARTED = []


def processor():
    """What kind of processor this machine has, in its own words."""
    with open("/proc/cpuinfo") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return names[0] if names else platform.machine()


@atexit.register
def leave_nothing_running():
    for process in STARTED:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def on(*cpus):
    return lambda: os.sched_setaffinity(0, set(cpus))


def start(command, cpu, directory):
    """Starts a server on a processor; what it says goes to a file that is shown if it does not come up."""
    with open(os.path.join(directory, "output.log"), "ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=directory, preexec_fn=on(cpu))
    process.directory = directory
    STARTED.append(process)
    return process


def stop(process):
    process.send_signal(signal.SIGTERM)
    process.wait()


def wait_for(address, process=None):
    for _ in range(1500):
        try:
            socket.create_connection(address, 1).close()
            return
        except OSError:
            if process is not None and process.poll() is not None:
                break
            time.sleep(0.02)
    said = ""
    if process is not None:
        with open(os.path.join(process.directory, "output.log"), errors="replace") as log:
            said = log.read()[-2000:]
    sys.exit(f"nothing listens on {address}\n{said}")


def family(pid):
    """A process and everything that came of it."""
    children = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as stat:
                children.setdefault(int(stat.read().rsplit(")", 1)[1].split()[1]), []).append(int(name))
        except OSError:
            pass  # it has ended meanwhile
    found, waiting = [], [pid]
    while waiting:
        found.append(waiting.pop())
        waiting += children.get(found[-1], [])
    return found


def cpu_seconds(pid):
    """User and system time of a process and its children so far."""
    total = 0
    for each in family(pid):
        with open(f"/proc/{each}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICK


def resident_bytes(pid):
    """Memory of a process; none when it has just ended."""
    with open(f"/proc/{pid}/status") as status:
        return next((int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS")), None)


def soon(seconds=0.5):
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) + int(seconds * 1e9)


class Role:
    """A role process of the binary, spoken to over its pipes."""

    def __init__(self, kind, spec, cpus, directory):
        path = os.path.join(directory, f"{kind}.json")
        with open(path, "w") as file:
            json.dump(spec, file)
        self.process = subprocess.Popen([ASSAY, "role", kind, path], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, preexec_fn=on(*cpus), text=True)
        STARTED.append(self.process)
        self.next("ready")

    def events(self):
        for line in self.process.stdout:
            yield json.loads(line)

    def next(self, name):
        for event in self.events():
            if event["event"] == name:
                return event
        sys.exit("a role ended before its time")

    def say(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def start(self, at=None):
        """Begins at an instant on CLOCK_MONOTONIC, the same for all who must agree on it."""
        self.say(command="start", at_monotonic_ns=at or soon(), at_unix_s=int(time.time()))

    def end(self):
        """Ends the process; gives what it used."""
        self.process.stdin.close()
        # What it still says is read, or it would wait for ever with a full pipe.
        self.process.stdout.read()
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        return usage
