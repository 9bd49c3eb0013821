"""Measures Assay itself against its peers: requests per CPU-second, alternating, as ratios.

Three questions, each answered by pairs of runs that take turns, so that a machine that changes its speed
changes both sides:

  robots   how much CPU do robots, with all checks on, use for a request, and how much does wrk?
           Both fetch the same file from the same nginx.
  origin   how much CPU do origins use to serve an object, and how much does nginx for the same bytes?
           wrk asks both.
  memory   how much memory do 10,000 robots with an open connection each take?

Needs wrk and nginx, and a release build. Everything happens on loopback and ends by itself.
Usage: bench.py [--rounds N] [--seconds S] [robots] [origin] [memory]
"""

import argparse
import atexit
import json
import os
import platform
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ASSAY = os.path.join(HERE, "target/release/assay")
TREE = os.path.join(HERE, "target/release/examples/static_tree")
TICK = os.sysconf("SC_CLK_TCK")
NGINX = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
CPUS = sorted(os.sched_getaffinity(0))
# The server has the first processor, whoever asks it has the last.
SERVER, CLIENT = CPUS[0], CPUS[-1]


STARTED = []


@atexit.register
def leave_nothing_running():
    for process in STARTED:
        if process.poll() is None:
            process.terminate()
            process.wait()


def pinned(cpu):
    return lambda: os.sched_setaffinity(0, {cpu})


def cpu_seconds(pid):
    """User and system time of a process so far."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def wait_for(address):
    for _ in range(500):
        try:
            socket.create_connection(address, 1).close()
            return
        except OSError:
            time.sleep(0.01)
    sys.exit(f"nothing listens on {address}")


class Wrk:
    """One run of wrk; `rate` is requests per CPU-second of wrk itself."""

    def __init__(self, url, seconds, connections=64):
        child = subprocess.Popen(
            ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", url],
            stdout=subprocess.PIPE, preexec_fn=pinned(CLIENT))
        text = child.stdout.read().decode()
        _, _, usage = os.wait4(child.pid, 0)
        child.returncode = 0
        self.requests = int(re.search(r"(\d+) requests in", text).group(1))
        if "Non-2xx" in text:
            sys.exit(f"wrk saw errors from {url}:\n{text}")
        self.per_second = self.requests / seconds
        self.rate = self.requests / (usage.ru_utime + usage.ru_stime)


def soon():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) + 500_000_000


class Role:
    """A role process of the binary, spoken to over its pipes."""

    def __init__(self, kind, spec, cpu, directory):
        path = os.path.join(directory, f"{kind}.json")
        with open(path, "w") as file:
            json.dump(spec, file)
        self.process = subprocess.Popen([ASSAY, "role", kind, path], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, preexec_fn=pinned(cpu), text=True)
        STARTED.append(self.process)
        self.ready = self.next("ready")

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
        at = at or soon()
        self.say(command="start", at_monotonic_ns=at, at_unix_s=int(time.time()))

    def end(self):
        """Ends the process; gives what it used."""
        self.process.stdin.close()
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        return usage


class Nginx:
    """A static nginx with one worker."""

    def __init__(self, directory, address):
        self.directory = directory
        with open(os.path.join(directory, "nginx.conf"), "w") as conf:
            conf.write(f"""
daemon off; worker_processes 1; pid nginx.pid; error_log error.log; user root;
events {{ worker_connections 4096; }}
http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 600s; sendfile on; tcp_nopush on; tcp_nodelay on;
  open_file_cache max=10000; client_body_temp_path body; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
  map_hash_bucket_size 256; include marks.conf;
  server {{
    listen {address[0]}:{address[1]} backlog=4096; root html;
    add_header X-Assay $assay; add_header Cache-Control public;
  }}
}}""")
        self.process = subprocess.Popen([NGINX, "-p", directory + "/", "-c", "nginx.conf", "-e", "error.log"],
                                        preexec_fn=pinned(SERVER))
        STARTED.append(self.process)
        wait_for(address)
        children = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        with open(children) as file:
            self.worker = int(file.read().split()[0])

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def workload(directory, size, rate, robots, seconds, template="one-object.pg"):
    """Compiles a workload of the benchmark; gives the path of its JSON."""
    with open(os.path.join(HERE, "bench", template)) as file:
        text = file.read()
    for name, value in (("SIZE", size), ("RATE", rate), ("ROBOTS", robots), ("SECONDS", seconds)):
        text = text.replace(name, str(value))
    source = os.path.join(directory, "workload.pg")
    with open(source, "w") as file:
        file.write(text)
    compiled = subprocess.run([ASSAY, "check", "--json", source], capture_output=True, text=True)
    if compiled.returncode != 0:
        sys.exit(compiled.stderr)
    path = os.path.join(directory, "workload.json")
    with open(path, "w") as file:
        json.dump(json.loads(compiled.stdout)["compiled"], file)
    return path


def universe(path):
    return {"workload": path, "seed": 1, "world": 1, "private_as_public": False}


def robots_spec(path, address):
    return {
        "universe": universe(path), "threads": 1, "cpus": [CLIENT], "sources": [], "timeout_ms": 30000,
        "target": {"kind": "reverse", "proxy": f"{address[0]}:{address[1]}"}, "xact_log": None,
        "behaviour": {"caches": True},
    }


def play_robots(spec, directory, at=None):
    """Runs robots to the end of their schedule; gives requests per CPU-second, completed, errors and peak memory."""
    role = Role("robots", spec, CLIENT, directory)
    role.start(at)
    completed = errors = 0
    for event in role.events():
        if event["event"] == "robots":
            completed += event["counts"]["completed"]
            errors += sum(event["counts"]["errors"].values())
        if event["event"] == "example":
            print(event, file=sys.stderr)
        if event["event"] == "done":
            break
    usage = role.end()
    used = usage.ru_utime + usage.ru_stime
    return completed / used, completed, errors, usage.ru_maxrss * 1024


def static_tree(path, directory):
    """Writes what the robots will ask for as files; gives the path of one of them."""
    spec = os.path.join(directory, "universe.json")
    with open(spec, "w") as file:
        json.dump(universe(path), file)
    subprocess.run([TREE, spec, "200", directory], check=True)
    with open(os.path.join(directory, "marks.conf")) as file:
        return re.search(r"^\s+(/\S+)", file.read(), re.MULTILINE).group(1)


def report(name, ours, theirs, target):
    ratios = sorted(a / b for a, b in zip(ours, theirs))
    middle = statistics.median(ratios)
    print(f"{name:<34} {statistics.median(ours):>11,.0f} {statistics.median(theirs):>11,.0f} "
          f"{middle:>7.2f}  {ratios[0]:.2f} to {ratios[-1]:.2f}   {target}", flush=True)


def bench_robots(rounds, seconds):
    for size in ("1KB", "10KB"):
        with tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o755)
            address = ("127.66.1.1", 8066)
            path = workload(directory, size, 1000, 64, seconds)
            first = static_tree(path, directory)
            nginx = Nginx(directory, address)
            ours, theirs = [], []
            url = f"http://{address[0]}:{address[1]}{first}"
            for _ in range(rounds):
                theirs.append(Wrk(url, seconds).rate)
                rate_ours, completed, errors, _ = play_robots(robots_spec(path, address), directory)
                if errors or completed < 10_000:
                    sys.exit(f"robots: {completed} completed, {errors} errors")
                ours.append(rate_ours)
            nginx.end()
        report(f"robots / wrk, {size} from nginx", ours, theirs, "at least 0.9")


def bench_origin(rounds, seconds):
    for size in ("1KB", "10KB"):
        with tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o755)
            path = workload(directory, size, 1000, 64, seconds)
            ours_at, theirs_at = ("127.66.2.1", 9066), ("127.66.2.2", 8066)
            first = static_tree(path, directory)
            origin = Role("origins", {"universe": universe(path), "threads": 1, "cpus": [SERVER],
                                      "listen": [f"{ours_at[0]}:{ours_at[1]}"]}, SERVER, directory)
            origin.start()
            nginx = Nginx(directory, theirs_at)
            ours, theirs = [], []
            for _ in range(rounds):
                for rates, address, pid in ((theirs, theirs_at, nginx.worker), (ours, ours_at, origin.process.pid)):
                    before = cpu_seconds(pid)
                    asked = Wrk(f"http://{address[0]}:{address[1]}{first}", seconds)
                    rates.append(asked.requests / (cpu_seconds(pid) - before))
            nginx.end()
            origin.end()
        report(f"origin / nginx, {size}", ours, theirs, "at least 1.3")


def bench_memory(_rounds, _seconds):
    with tempfile.TemporaryDirectory() as directory:
        path = workload(directory, "1KB", 2500, 10000, 10, "many-robots.pg")
        address = ("127.66.3.1", 9066)
        origin = Role("origins", {"universe": universe(path), "threads": 1, "cpus": [SERVER],
                                  "listen": [f"{address[0]}:{address[1]}"]}, SERVER, directory)
        at = soon() + 1_000_000_000  # ten thousand robots take a moment to get ready
        origin.start(at)
        _, completed, errors, memory = play_robots(robots_spec(path, address), directory, at)
        origin.end()
    print(f"10,000 robots, a connection each: {memory / 1e6:.0f} MB at most "
          f"({completed:,} requests, {errors} errors)   under 200 MB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=[[], "robots", "origin", "memory"], default=[])
    # Ends by itself whatever happens.
    signal.signal(signal.SIGALRM, lambda *_: sys.exit("bench took longer than twenty minutes"))
    signal.alarm(1200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    args = parser.parse_args()
    if NGINX is None or shutil.which("wrk") is None:
        sys.exit("bench needs wrk and nginx (apt-get install wrk nginx-light)")
    print(f"{platform.node()}: {os.cpu_count()} processors, Linux {platform.release()}, {time.strftime('%Y-%m-%d')}")
    print(f"{'requests per CPU-second':<34} {'ours':>11} {'theirs':>11} {'ratio':>7}  spread         target")
    benches = {"robots": bench_robots, "origin": bench_origin, "memory": bench_memory}
    for name in args.what or benches:
        benches[name](args.rounds, args.seconds)


if __name__ == "__main__":
    main()
