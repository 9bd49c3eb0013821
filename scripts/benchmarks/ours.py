"""Assay's own side: workloads of the benchmarks, robots, origins, the built-in proxy."""

import json
import os
import re
import subprocess
import sys

from machine import ASSAY, CLIENT, CPUS, EXAMPLES, HERE, SERVER, Role, cpu_seconds, resident_bytes, soon


def workload(directory, template="one-object.pg", streams=1, **values):
    """Compiles a workload of the benchmark; gives the path of its JSON. `streams`: requests that a robot has under way over HTTP/2."""
    with open(os.path.join(HERE, "bench", template)) as file:
        text = file.read()
    values = {"CONNECTION": 1000000000, "CACHABLE": 100, "DELAY": 0, "VERSION": "1.1", **values}
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    source = os.path.join(directory, "workload.pg")
    with open(source, "w") as file:
        file.write(text)
    compiled = subprocess.run([ASSAY, "check", "--json", source], capture_output=True, text=True)
    if compiled.returncode != 0:
        sys.exit(compiled.stderr)
    path = os.path.join(directory, "workload.json")
    compiled = json.loads(compiled.stdout)["compiled"]
    for group in compiled["robots"]:
        group["streams"] = streams
    with open(path, "w") as file:
        json.dump(compiled, file)
    return path


def universe(path):
    return {"workload": path, "seed": 1, "world": 1, "private_as_public": False}


def static_tree(path, directory, each=200):
    """Writes what the robots will request as files, so many of `each` robot; gives the path of one of them."""
    spec = os.path.join(directory, "universe.json")
    with open(spec, "w") as file:
        json.dump(universe(path), file)
    subprocess.run([os.path.join(EXAMPLES, "static_tree"), spec, str(each), directory], check=True)
    with open(os.path.join(directory, "marks.conf")) as file:
        return re.search(r"^\s+(/\S+)", file.read(), re.MULTILINE).group(1)


def at(address):
    return f"{address[0]}:{address[1]}"


def origins(path, address, directory, cpu=SERVER, start=None, tls=None):
    spec = {"universe": universe(path), "threads": 1, "cpus": [cpu], "listen": [at(address)]}
    role = Role("origins", spec | ({"tls": tls.of_server} if tls else {}), [cpu], directory)
    role.start(start)
    return role


class Robots:
    """Robots, run to the end of their schedule: `completed`, `errors`, `cpu_s`, `peak_bytes`, and the same from second
    `settled_s` on, when all have their connections."""

    def __init__(self, path, address, directory, threads=1, xact_log=None, start=None, settled_s=None, tls=None):
        cpus = [CLIENT] if threads == 1 else CPUS[-threads:]
        role = Role("robots", {
            "universe": universe(path), "threads": threads, "cpus": cpus, "sources": [], "timeout_ms": 30000,
            "target": {"kind": "reverse", "proxy": at(address)}, "behaviour": {"caches": True},
            "xact_log": xact_log, **({"tls": tls} if tls else {}),
        }, cpus, directory)
        role.start(start or soon())
        self.completed = self.errors = 0
        self.settled, self.resident_bytes = None, 0
        seconds, pid = 0, role.process.pid
        for event in role.events():
            if "robots" in event:
                counts = event["robots"]["counts"]
                self.completed += counts["completed"]
                self.errors += sum(counts["errors"].values())
                seconds += 1
                if seconds == settled_s:
                    self.settled = (self.completed, cpu_seconds(pid))
                if settled_s and seconds > settled_s:
                    self.later = (self.completed, cpu_seconds(pid))
                    self.resident_bytes = resident_bytes(pid) or self.resident_bytes
            if "example" in event:
                print(event, file=sys.stderr)
            if event["event"] == "done":
                break
        usage = role.end()
        self.cpu_s = usage.ru_utime + usage.ru_stime
        self.peak_bytes = usage.ru_maxrss * 1024
        if self.errors or self.completed < 1000:
            sys.exit(f"robots: {self.completed} completed, {self.errors} errors")

    @property
    def per_cpu_second(self):
        return self.completed / self.cpu_s

    @property
    def settled_cost_s(self):
        """Processor time of a request, once all have their connections."""
        return (self.later[1] - self.settled[1]) / (self.later[0] - self.settled[0])
