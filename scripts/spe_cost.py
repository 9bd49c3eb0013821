#!/usr/bin/env python3
"""What does the Multiplier add for a client, and is every place in the order as good as any other?

Tables 11.3 to 11.5 of Davison's thesis, on loopback: a client sends requests to an origin directly and through `assay spe` in turn,
each URL once, over connections that are kept; behind the Multiplier are dummy proxies, which are Multipliers without proxies that
do nothing but pass requests to their listeners. The Collector opens a connection for each fetch, so the client uses a
third way too: over a connection of its own for each request. Prints medians and means in milliseconds.

usage: spe_cost.py ASSAY... [--requests N] [--dummies N] [--bytes N] [--delay-ms MS]

Several binaries take turns, request by request, so that whatever the machine does meanwhile falls on all of them.
"""

import argparse
import json
import pathlib
import random
import re
import signal
import socket
import statistics
import subprocess
import tempfile
import threading
import time

LINE = re.compile(r":RESULT: (\S+): (\d+):(\d+) (\d+):(\d+) (\d+) \{(\S+)\} ")


def serve(connection, body, delay_s):
    """One connection of the origin."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nCache-Control: max-age=600\r\n\r\n".encode()
    pending = b""
    while True:
        while b"\r\n\r\n" not in pending:
            more = connection.recv(65536)
            if not more:
                return
            pending += more
        pending = pending.split(b"\r\n\r\n", 1)[1]
        time.sleep(delay_s)
        connection.sendall(head + body)


def origin(body, delay_s):
    """Starts an origin; its port. Its threads are there before the first request: to start one takes longer than to respond."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)

    def accept():
        while True:
            connection, _ = listener.accept()
            serve(connection, body, delay_s)

    for _ in range(32):
        threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


def fetch(connection, path, length):
    """One request and its whole response; how long it took, in milliseconds."""
    began = time.perf_counter_ns()
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: origin\r\n\r\n".encode())
    response = b""
    while b"\r\n\r\n" not in response or len(response.split(b"\r\n\r\n", 1)[1]) < length:
        more = connection.recv(65536)
        assert more, "the connection ended"
        response += more
    return (time.perf_counter_ns() - began) / 1e6


def connect(port, host="127.0.0.1"):
    connection = socket.create_connection((host, port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def dummy(assay, work, index, listen, listener):
    """A Multiplier without proxies; its process."""
    directory = work / f"dummy-{index}"
    directory.mkdir()
    spec = {
        "listen": listen, "collector": listener, "proxies": [], "forward": False, "when": "after", "turns": "fixed",
        "seed": 1, "most_waiting": 1, "patience_ms": 60000, "rules": None, "directory": str(directory),
        "text_log": False, "cpus": [],
    }
    path = directory / "spec.json"
    path.write_text(json.dumps(spec))
    process = subprocess.Popen(
        [assay, "role", "multiplier", str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert "ready" in process.stdout.readline()
    threading.Thread(target=lambda: list(process.stdout), daemon=True).start()
    return process


class Evaluation:
    """`assay spe` in front of the origin, with its dummies, and a client's connection to it."""

    def __init__(self, assay, work, port, dummies):
        self.work = work
        work.mkdir()
        net = f"127.{random.randrange(100, 120)}.{random.randrange(1, 250)}"
        self.dummies = [dummy(assay, work, n, f"{net}.{n + 1}:4100", f"{net}.200:{4201 + n}") for n in range(dummies)]
        proxies = [word for n in range(dummies) for word in ("--proxy", f"d{n}={net}.{n + 1}:4100")]
        self.spe = subprocess.Popen(
            [assay, "spe", "--listen", f"{net}.201:4000", "--origin", f"127.0.0.1:{port}", "--collector-listen",
             f"{net}.200:4200", "--text-log", "--dir", str(work / "spe"), *proxies],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for line in self.spe.stderr:
            if line.startswith("ready"):
                break
        threading.Thread(target=lambda: list(self.spe.stderr), daemon=True).start()
        self.connection = connect(4000, f"{net}.201")

    def end(self):
        """What it says of itself, and its text log."""
        self.spe.send_signal(signal.SIGINT)
        said = self.spe.communicate(timeout=60)[0]
        for process in self.dummies:
            process.stdin.close()
            process.wait()
        return said, (self.work / "spe" / "responses.log").read_text()


def anew(port, path, length):
    """One request over a connection of its own; how long it took with that, in milliseconds."""
    began = time.perf_counter_ns()
    connection = connect(port)
    fetch(connection, path, length)
    took = (time.perf_counter_ns() - began) / 1e6
    connection.close()
    return took


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("assay", nargs="+")
    parser.add_argument("--requests", type=int, default=500)
    parser.add_argument("--dummies", type=int, default=4)
    parser.add_argument("--bytes", type=int, default=13000)
    parser.add_argument("--delay-ms", type=float, default=20)
    options = parser.parse_args()
    body = b"x" * options.bytes
    port = origin(body, options.delay_ms / 1000)
    with tempfile.TemporaryDirectory() as name:
        evaluations = [Evaluation(assay, pathlib.Path(name) / str(n), port, options.dummies)
                       for n, assay in enumerate(options.assay)]
        directly = connect(port)
        ways = [lambda path: fetch(directly, path, len(body)), lambda path: anew(port, path, len(body))]
        ways += [lambda path, e=e: fetch(e.connection, path, len(body)) for e in evaluations]
        times = []
        for number in range(options.requests):
            taken = [0.0] * len(ways)
            for step in range(len(ways)):
                way = (number + step) % len(ways)
                taken[way] = ways[way](f"/w{way}-{number}")
                # What is still going on behind an evaluation is not to weigh on the next.
                time.sleep(0.01)
            times.append(taken)
        took = [statistics.median(way) for way in zip(*times)]
        print(f"directly: median {took[0]:.3f} ms; over a connection for each request {took[1]:.3f} ms")
        for n, (assay, evaluation) in enumerate(zip(options.assay, evaluations)):
            said, log = evaluation.end()
            print(f"\n{assay}\n{said}")
            report([(taken[0], taken[2 + n]) for taken in times], log)


def report(times, log):
    added = [through - directly for directly, through in times]
    quarters = statistics.quantiles(added, n=4)
    print(f"what the whole adds for a client (table 11.4): median {statistics.median(added):.3f} ms "
          f"({quarters[0]:.3f} to {quarters[2]:.3f} for half of them), mean {statistics.fmean(added):.3f} ms")
    of = {}
    for name, s1, us1, s2, us2, _, _ in (match.groups() for match in LINE.finditer(log)):
        of.setdefault(name, []).append((int(s1) + int(s2)) * 1e3 + (int(us1) + int(us2)) / 1e3)
    for name, taken in of.items():
        print(f"{name:<10} {len(taken):>6} responses, median {statistics.median(taken):.3f} ms, "
              f"mean {statistics.fmean(taken):.3f} ms")
    dummies = [taken for name, taken in of.items() if name != "Collector"]
    if len(dummies) > 1:
        medians = [statistics.median(taken) for taken in dummies]
        means = [statistics.fmean(taken) for taken in dummies]
        print(f"spread of identical proxies (table 11.5): medians {max(medians) - min(medians):.3f} ms, "
              f"means {max(means) - min(means):.3f} ms")


main()
