#!/usr/bin/env python3
"""What does the Multiplier add for a client, and is every place in the order as good as any other?

Tables 11.3 to 11.5 of Davison's thesis, on loopback: a client asks an origin directly and through `assay spe` in turn, each
URL once, over connections that are kept; behind the Multiplier are dummy proxies, which are Multipliers without proxies that
do nothing but pass requests to their doors. Prints medians and means in milliseconds.

usage: spe_cost.py ASSAY [--requests N] [--dummies N] [--bytes N] [--delay-ms MS]
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
    """Starts an origin; its port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)

    def accept():
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=serve, args=(connection, body, delay_s), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


def ask(connection, path, length):
    """One request and its whole answer; how long it took, in milliseconds."""
    began = time.perf_counter_ns()
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: origin\r\n\r\n".encode())
    answer = b""
    while b"\r\n\r\n" not in answer or len(answer.split(b"\r\n\r\n", 1)[1]) < length:
        more = connection.recv(65536)
        assert more, "the connection ended"
        answer += more
    return (time.perf_counter_ns() - began) / 1e6


def connect(port, host="127.0.0.1"):
    connection = socket.create_connection((host, port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def dummy(assay, work, index, listen, door):
    """A Multiplier without proxies; its process."""
    directory = work / f"dummy-{index}"
    directory.mkdir()
    spec = {
        "listen": listen, "collector": door, "proxies": [], "forward": False, "when": "after", "turns": "fixed",
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("assay")
    parser.add_argument("--requests", type=int, default=500)
    parser.add_argument("--dummies", type=int, default=4)
    parser.add_argument("--bytes", type=int, default=13000)
    parser.add_argument("--delay-ms", type=float, default=20)
    options = parser.parse_args()
    net = f"127.{random.randrange(100, 120)}.{random.randrange(1, 250)}"
    body = b"x" * options.bytes
    port = origin(body, options.delay_ms / 1000)
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        dummies = [dummy(options.assay, work, n, f"{net}.{n + 1}:4100", f"{net}.200:{4201 + n}")
                   for n in range(options.dummies)]
        proxies = [word for n in range(options.dummies) for word in ("--proxy", f"d{n}={net}.{n + 1}:4100")]
        spe = subprocess.Popen(
            [options.assay, "spe", "--listen", f"{net}.201:4000", "--origin", f"127.0.0.1:{port}", "--doors",
             f"{net}.200:4200", "--text-log", "--dir", str(work / "spe"), *proxies],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for line in spe.stderr:
            if line.startswith("ready"):
                break
        threading.Thread(target=lambda: list(spe.stderr), daemon=True).start()
        directly, through = connect(port), connect(4000, f"{net}.201")
        times = []
        for number in range(options.requests):
            pair = [lambda: ask(directly, f"/d{number}", len(body)), lambda: ask(through, f"/p{number}", len(body))]
            first = number % 2
            taken = {first: pair[first](), 1 - first: pair[1 - first]()}
            times.append((taken[0], taken[1]))
            time.sleep(0.01)
        spe.send_signal(signal.SIGINT)
        print(spe.communicate(timeout=60)[0])
        for process in dummies:
            process.stdin.close()
            process.wait()
        report(times, (work / "spe" / "answers.log").read_text())


def report(times, log):
    added = [through - directly for directly, through in times]
    print(f"what the whole adds for a client (table 11.4): median {statistics.median(added):.3f} ms, "
          f"mean {statistics.fmean(added):.3f} ms")
    of = {}
    for name, s1, us1, s2, us2, _, _ in (match.groups() for match in LINE.finditer(log)):
        of.setdefault(name, []).append((int(s1) + int(s2)) * 1e3 + (int(us1) + int(us2)) / 1e3)
    for name, taken in of.items():
        print(f"{name:<10} {len(taken):>6} answers, median {statistics.median(taken):.3f} ms, "
              f"mean {statistics.fmean(taken):.3f} ms")
    dummies = [taken for name, taken in of.items() if name != "Collector"]
    if len(dummies) > 1:
        medians = [statistics.median(taken) for taken in dummies]
        means = [statistics.fmean(taken) for taken in dummies]
        print(f"spread of identical proxies (table 11.5): medians {max(medians) - min(medians):.3f} ms, "
              f"means {max(means) - min(means):.3f} ms")


main()
