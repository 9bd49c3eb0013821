"""What is measured: each function does some runs that take turns, and gives rows for the table.

A row holds the values of each round for both sides; the ratio is made within rounds, so that a machine that changes its
speed changes both. `Row.target` is what the project wants to reach; whether it did is said, never hidden.
"""

import os
import socket
import statistics
import subprocess
import time

import generators
import secured
from machine import CLIENT, CPUS, EXAMPLES, SERVER, Role, soon, stop
from nginx import Nginx
from ours import Robots, at, origins, static_tree, workload
from products import Forwarder
from row import Row, in_turn, room, served

CONNECTIONS = 64


def robots(rounds, seconds):
    """All checks on, against generators that have none; all of them request 1 KB from the same nginx."""
    with room() as directory:
        address = ("127.66.1.1", 8066)
        path = workload(directory, SIZE="1KB", ROBOTS=CONNECTIONS, SECONDS=seconds)
        url = f"http://{at(address)}{static_tree(path, directory)}"
        nginx = Nginx(directory, address)

        def other(run):
            def once():
                requests, used = run(url, seconds, CONNECTIONS)
                return requests / used
            return once

        sides = {"assay": lambda: Robots(path, address, directory).per_cpu_second}
        sides |= {name: other(run) for name, run in generators.ALL.items() if generators.tool(name)}
        values = in_turn(rounds, sides)
        nginx.end()
    wanted = {"wrk": 1.2, "h2load": 1.2, "oha": 2, "hey": 2, "vegeta": 2, "k6": 2, "httperf": None}
    for name, theirs in values.items():
        if name != "assay":
            least = wanted[name]
            yield Row("robots, all checks, 1 KB, 64 connections", "requests per CPU-second", values["assay"], theirs,
                      f"at least {least}" if least else "", at_least=least, against=name)


def large(rounds, seconds):
    """Every byte of 100 KB compared, against wrk, which looks at none."""
    with room() as directory:
        address = ("127.66.1.2", 8066)
        path = workload(directory, SIZE="100KB", ROBOTS=CONNECTIONS, SECONDS=seconds)
        url = f"http://{at(address)}{static_tree(path, directory)}"
        nginx = Nginx(directory, address)

        def wrk():
            requests, used = generators.wrk(url, seconds, CONNECTIONS)
            return requests / used * 100

        values = in_turn(rounds, {"assay": lambda: Robots(path, address, directory).per_cpu_second * 100, "wrk": wrk})
        nginx.end()
    yield Row("robots, every byte checked, 100 KB, 64 connections", "KB per CPU-second", values["assay"], values["wrk"],
              "at least 0.9", at_least=0.9, against="wrk")


def connections(rounds, seconds):
    """A connection for each request, against a loop that connects, writes, reads and closes, and does nothing else."""
    with room() as directory:
        address = ("127.66.1.3", 8066)
        path = workload(directory, SIZE="1KB", ROBOTS=CONNECTIONS, SECONDS=seconds, CONNECTION=1)
        first = static_tree(path, directory)
        nginx = Nginx(directory, address)

        def bare():
            done = subprocess.run([os.path.join(EXAMPLES, "bare_loop"), at(address), first, str(seconds)], check=True,
                                  capture_output=True, text=True, preexec_fn=lambda: os.sched_setaffinity(0, {CLIENT}))
            requests, used_us = map(int, done.stdout.split())
            return used_us / requests

        def robots_cost():
            run = Robots(path, address, directory)
            return run.cpu_s / run.completed * 1e6

        values = in_turn(rounds, {"assay": robots_cost, "bare": bare})
        nginx.end()
    yield Row("robots, a connection for each request", "µs of CPU per request", values["assay"], values["bare"],
              "at most 1.25", at_most=1.25, against="bare loop")


def origin(rounds, seconds):
    """Origins make every body; nginx sends the same bytes from its cache of open files. wrk sends requests to both."""
    for size in ("1KB", "13KB"):
        with room() as directory:
            path = workload(directory, SIZE=size, ROBOTS=CONNECTIONS, SECONDS=seconds)
            ours_at, theirs_at = ("127.66.2.1", 9066), ("127.66.2.2", 8066)
            first = static_tree(path, directory)
            role = origins(path, ours_at, directory)
            nginx = Nginx(directory, theirs_at)

            def side(address, process):
                url = f"http://{at(address)}{first}"
                return lambda: served(lambda: generators.wrk(url, seconds, CONNECTIONS), process.pid)

            values = in_turn(rounds, {"assay": side(ours_at, role.process), "nginx": side(theirs_at, nginx.process)})
            nginx.end()
            role.end()
        yield Row(f"origin, {size.replace('KB', ' KB')}", "requests per CPU-second", values["assay"], values["nginx"],
                  "at least 1.5", at_least=1.5, against="nginx")


def forwarder(rounds, seconds):
    """The built-in proxy, passing on what may not be cached, against the best of three."""
    with room() as directory:
        path = workload(directory, SIZE="1KB", ROBOTS=CONNECTIONS, SECONDS=seconds, CACHABLE=0)
        first = static_tree(path, directory)
        behind = ("127.66.2.3", 9066)
        role = origins(path, behind, directory, cpu=CLIENT)
        ours_at = ("127.66.2.4", 8066)
        proxy = Role("proxy", {
            "listen": at(ours_at), "threads": 1, "cpus": [SERVER], "memory_bytes": 100_000_000,
            "origins": [{"authority": at(ours_at), "address": at(behind)}],
        }, [SERVER], directory)
        proxy.start()
        others = {name: Forwarder(name, directory, number, [behind])
                  for number, name in enumerate(("nginx", "haproxy", "httpd"))}

        def side(address, pid):
            url = f"http://{at(address)}{first}"
            return lambda: served(lambda: generators.wrk(url, seconds, CONNECTIONS), pid)

        sides = {"assay": side(ours_at, proxy.process.pid)}
        sides |= {name: side(other.address, other.process.pid) for name, other in others.items()}
        values = in_turn(rounds, sides)
        for other in others.values():
            stop(other.process)
        proxy.end()
        role.end()
    # Against the best of them is against each of them.
    for name in others:
        yield Row("forwarder (built-in proxy, nothing stored), 1 KB", "requests per CPU-second", values["assay"], values[name],
                  "at least 1.3", at_least=1.3, against=name)


def xact_log(rounds, seconds):
    """Every xact written down, against none."""
    with room() as directory:
        address = ("127.66.1.4", 8066)
        path = workload(directory, SIZE="1KB", ROBOTS=CONNECTIONS, SECONDS=seconds)
        static_tree(path, directory)
        nginx = Nginx(directory, address)
        log = os.path.join(directory, "xacts.parquet")
        values = in_turn(rounds, {
            "on": lambda: Robots(path, address, directory, xact_log=log).per_cpu_second,
            "off": lambda: Robots(path, address, directory).per_cpu_second,
        })
        nginx.end()
    yield Row("robots with the log of all xacts", "requests per CPU-second", values["on"], values["off"], "at least 0.85",
              at_least=0.85, against="without it")


def threads(rounds, seconds):
    """Two worker threads against one."""
    if len(CPUS) < 2:
        return
    with room() as directory:
        address = ("127.66.1.5", 8066)
        path = workload(directory, SIZE="1KB", ROBOTS=CONNECTIONS, SECONDS=seconds)
        static_tree(path, directory)
        nginx = Nginx(directory, address)
        values = in_turn(rounds, {
            "two": lambda: Robots(path, address, directory, threads=2).per_cpu_second,
            "one": lambda: Robots(path, address, directory).per_cpu_second,
        })
        nginx.end()
    yield Row("robots on two threads", "requests per CPU-second", values["two"], values["one"], "at least 0.9",
              at_least=0.9, against="one thread")


def crowd(directory, robots_number, rate, seconds, settled_s):
    """So many robots that send a request now and then over a connection that stays open."""
    path = workload(directory, "many-robots.pg", SIZE="1KB", RATE=rate, ROBOTS=robots_number, SECONDS=seconds)
    address = ("127.66.3.1", 9066)
    begin = soon(1 + robots_number / 10_000)
    role = origins(path, address, directory, start=begin)
    run = Robots(path, address, directory, start=begin, settled_s=settled_s)
    role.end()
    return run


def many(rounds, _seconds):
    """What 15,000 robots with a connection each cost, beside 100, at the same total rate."""
    few, crowds = [], []
    for _ in range(max(1, min(rounds, 3))):
        for number, runs in ((100, few), (15_000, crowds)):
            with room() as directory:
                runs.append(crowd(directory, number, 5000, 6, 14))
    cost = lambda runs: [run.settled_cost_s * 1e6 for run in runs]
    yield Row("robots, 15,000 in place of 100 at 5,000 requests/s", "µs of CPU per request", cost(crowds), cost(few),
              "at most 1.15", at_most=1.15, against="100 robots")
    each = [(many_run.resident_bytes - few_run.resident_bytes) / 14_900 for many_run, few_run in zip(crowds, few)]
    yield Row("robots with an open connection", "bytes of memory each", each, [], "at most 1,200 bytes", at_most=1200)
    yield half("robots with an open connection", "bytes of memory each", each, POLYGRAPH_ROBOT_BYTES)


def million(_rounds, _seconds):
    """A million robots, 1 % of whom wait for a response at a time."""
    with room() as directory:
        path = workload(directory, "many-robots.pg", SIZE="1KB", RATE=2000, ROBOTS=1_000_000, SECONDS=5, CONNECTION=1, DELAY=5)
        address = ("127.66.3.2", 9066)
        begin = soon(30)
        role = origins(path, address, directory, start=begin)
        run = Robots(path, address, directory, start=begin)
        role.end()
    yield Row("a million robots, 10,000 connected", "MB of memory at most", [run.peak_bytes / 1e6], [], "under 1,000 MB",
              at_most=1000)


def first_request(rounds, _seconds):
    """From the start of the robots' process to the first request of a thousand robots."""
    taken = []
    for _ in range(rounds):
        with room() as directory, socket.socket() as listener:
            path = workload(directory, SIZE="1KB", ROBOTS=1000, SECONDS=1)
            listener.bind(("127.66.1.6", 0))
            listener.listen(1024)
            address = listener.getsockname()
            began = time.monotonic()
            role = Role("robots", {
                "universe": {"workload": path, "seed": 1, "world": 1, "private_as_public": False}, "threads": 1,
                "cpus": [CLIENT], "sources": [], "timeout_ms": 30000, "behaviour": {"caches": True}, "xact_log": None,
                "target": {"kind": "reverse", "proxy": at(address)},
            }, [CLIENT], directory)
            role.start(soon(0))
            accepted, _ = listener.accept()
            accepted.recv(1)
            taken.append((time.monotonic() - began) * 1000)
            accepted.close()
            role.process.kill()
            role.process.wait()
    yield Row("start to first request, 1,000 robots", "ms", taken, [], "under 200 ms", at_most=200)


# Web Polygraph 4.9.0 (gcc 12 -O2, both sides on loopback, two processors of a virtual machine, of what kind is not on record):
# microseconds of processor time for a request, robots' and servers', least and most of its runs; good to about 15 %.
POLYGRAPH_US = {"1KB": ((9.0, 10.2), (8.5, 9.7)), "13KB": ((10.8, 11.8), (10.6, 11.5))}
# The same with nginx's cache between both.
POLYGRAPH_THROUGH_NGINX_US = (13.8, 7.2)
# Memory of its clients and its servers with 10,000 robots at 0.4 requests/s each.
POLYGRAPH_10_000_MB = (65.6, 57.5)
POLYGRAPH_ROBOT_BYTES = 2700
POLYGRAPH = "Web Polygraph 4.9.0, apart"


def half(name, unit, ours, theirs):
    """At most half of what Web Polygraph takes."""
    return Row(name, unit, ours, [theirs] * len(ours), "at most 0.5", at_most=0.5, against=POLYGRAPH)


def polygraph(rounds, seconds):
    """Fifty best-effort robots and origins, alone and with nginx's cache between, as Web Polygraph was measured."""
    for size, theirs in POLYGRAPH_US.items():
        pairs = [besides(size, seconds) for _ in range(rounds)]
        for side, who in enumerate(("robots", "origins")):
            yield half(f"{who}, {size.replace('KB', ' KB')} on the average, 55 % offered hits", "µs of CPU per request",
                       [pair[side] for pair in pairs], statistics.mean(theirs[side]))
    pairs = [besides("13KB", seconds, through_nginx=True) for _ in range(rounds)]
    for side, who in enumerate(("robots", "origins")):
        yield half(f"{who}, the same through nginx's cache", "µs of CPU per request", [pair[side] for pair in pairs],
                   POLYGRAPH_THROUGH_NGINX_US[side])
    with room() as directory:
        path = workload(directory, "many-robots.pg", SIZE="13KB", RATE=4000, ROBOTS=10_000, SECONDS=5)
        address, begin = ("127.66.3.4", 9066), soon(2)
        role = origins(path, address, directory, start=begin)
        run = Robots(path, address, directory, start=begin)
        memory = run.peak_bytes / 1e6, role.end().ru_maxrss * 1024 / 1e6
    for side, who in enumerate(("robots", "origins")):
        name = f"{who}, 10,000 robots at 4,000 requests/s"
        yield half(name, "MB of memory at most", [memory[side]], POLYGRAPH_10_000_MB[side])


def besides(size, seconds, through_nginx=False):
    """Microseconds of processor time for a request: of robots, and of origins."""
    with room() as directory:
        path = workload(directory, "mixed-sizes.pg", SIZE=size, ROBOTS=50, SECONDS=seconds)
        address = ("127.66.3.3", 9066)
        begin = soon(1)
        role = origins(path, address, directory, start=begin)
        cache = Forwarder("nginx", directory, 9, [address], stores=True) if through_nginx else None
        run = Robots(path, cache.address if cache else address, directory, start=begin)
        used = role.end()
        if cache:
            stop(cache.process)
    return run.cpu_s / run.completed * 1e6, (used.ru_utime + used.ru_stime) / run.completed * 1e6


ALL = {
    "robots": robots, "large": large, "connections": connections, "origin": origin, "forwarder": forwarder,
    "xact-log": xact_log, "threads": threads, "many": many, "million": million, "first-request": first_request,
    "polygraph": polygraph, **secured.ALL,
}
