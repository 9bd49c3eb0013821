#!/usr/bin/env python3
"""Does simultaneous evaluation hold with thousands of clients at once, and whatever proxies, origins and clients do?

Clients connect, all send a request at the same moment, and go on until each has sent its share; every body is checked. The origin counts.
Behind the Multiplier are

  sound   built-in proxies, `--proxies` of them
  faulty  one sound proxy beside five of this script's: one hangs, one resets, one sends garbage, one responds two seconds late and
          one responds without end; the origin fails for some URLs, and each tenth client leaves in the middle of a response

With `--large`, more is requested than `--collector-memory` holds. Prints what became of every proxy's responses, how many requests
the origin got for one need, and each process's peak of memory and of descriptors. Exit code 1: something was lost that should not be.

usage: spe_scale.py ASSAY sound|faulty [--clients N] [--proxies N] [--requests N] [--large] [--at-once]
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import pathlib
import random
import resource
import signal
import struct
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zlib

FAULTS = ["hangs", "resets", "garbage", "late", "endless"]
SHARED = 200
"""Objects that all clients request and that may be cached."""
LARGE = 500
"""Objects of 2 MB, with `--large`."""
ABORT = struct.pack("ii", 1, 0)


def body(path):
    """What a path holds: follows from its name."""
    size = 2_000_000 if path.startswith("/large") else 500 + zlib.crc32(path.encode()) % 20_000
    return (path.encode() * (size // len(path) + 1))[:size]


def reset(writer):
    """Ends a connection with a reset."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
    writer.transport.abort()


async def serve_origin(reader, writer, requested):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode()
            requested[path] = requested.get(path, 0) + 1
            await asyncio.sleep(0.05)
            if path.startswith("/fails/reset"):
                return reset(writer)
            what = body(path)
            cache = "max-age=600" if path.startswith(("/shared", "/large")) else "no-store"
            status = "500 Sorry" if path.startswith("/fails/500") else "200 OK"
            writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(what)}\r\nCache-Control: {cache}\r\n\r\n".encode())
            if path.startswith("/fails/middle"):
                writer.write(what[:200])
                await writer.drain()
                return writer.close()
            writer.write(what)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def serve_fault(reader, writer, fault, listener):
    """A proxy that does not do as it should."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            if fault == "hangs":
                await reader.read()
                return writer.close()
            if fault == "resets":
                return reset(writer)
            if fault == "garbage":
                writer.write(b"\x00\x01\x02 this is no response\r\n\r\n")
            if fault == "endless":
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
                while True:
                    writer.write(b"x" * 65536)
                    await writer.drain()
            if fault == "late":
                await asyncio.sleep(2)
                from_listener, to_listener = await asyncio.open_connection(*listener, limit=1 << 22)
                to_listener.write(head.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
                writer.write(await from_listener.read(-1))
                await writer.drain()
                to_listener.close()
                return writer.close()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def other(address, fault, listener, tell):
    """A process: the origin, or a proxy that is not as it should be."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    requested = {}

    def serve(reader, writer):
        return serve_fault(reader, writer, fault, listener) if fault else serve_origin(reader, writer, requested)

    async def all_day():
        await asyncio.start_server(serve, *address, backlog=8192, limit=1 << 22)
        tell.send("ready")
        await asyncio.get_running_loop().run_in_executor(None, tell.recv)
        tell.send(requested)
        # Whatever is still going on ends here.
        os._exit(0)

    asyncio.run(all_day())


def start(address, fault=None, listener=None):
    """Starts one; what is said to it and by it."""
    ours, theirs = multiprocessing.Pipe()
    multiprocessing.Process(target=other, args=(address, fault, listener, theirs), daemon=True).start()
    ours.recv()
    return ours


class Clients:
    """All clients; what they saw."""

    def __init__(self, options, listen):
        self.options, self.listen = options, listen
        self.came = self.wrong = self.broken = self.left = 0
        self.paths = [self.plan(number) for number in range(options.clients)]

    def plan(self, number):
        """What a client requests: shared objects, its own, and, with faults, what fails."""
        chance = random.Random(number)
        paths = []
        for n in range(self.options.requests):
            if self.options.large:
                paths.append(f"/large/{chance.randrange(LARGE)}")
            else:
                paths.append(f"/own/{number}/{n}" if n % 3 == 2 else f"/shared/{chance.randrange(SHARED)}")
        if self.options.what == "faulty":
            kind = chance.choice(["reset", "500", "middle"])
            if number % 10 == 0:
                paths[-1] = f"/large/{number % 50}"
            elif number % 10 == 5:
                paths[-1] = f"/fails/{kind}/{number}"
        return paths

    def leaves(self, number):
        return self.options.what == "faulty" and number % 10 == 0

    async def one(self, number, ready, start):
        reader, writer = await asyncio.open_connection(*self.listen)
        ready.release()
        await start.wait()
        for path in self.paths[number]:
            writer.write(f"GET {path} HTTP/1.1\r\nHost: origin\r\n\r\n".encode())
            try:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                if path.startswith("/large") and self.leaves(number):
                    await reader.readexactly(100_000)
                    self.left += 1
                    return writer.close()
                got = await reader.readexactly(length)
            except (asyncio.IncompleteReadError, ConnectionError):
                self.broken += 1
                assert path.startswith("/fails"), path
                return writer.close()
            self.came += 1
            is_right = got == body(path) or path.startswith("/fails")
            self.wrong += not is_right
        writer.close()

    async def all(self):
        ready, start = asyncio.Semaphore(0), asyncio.Event()
        tasks = [asyncio.create_task(self.one(number, ready, start)) for number in range(self.options.clients)]
        for _ in tasks:
            await ready.acquire()
        print(f"{len(tasks)} clients are connected", flush=True)
        began = time.monotonic()
        start.set()
        await asyncio.gather(*tasks)
        print(f"{self.came} responses in {time.monotonic() - began:.1f} s, {self.wrong} wrong, {self.broken} broken off as the "
              f"origin did, {self.left} clients left half-way", flush=True)


class Watch(threading.Thread):
    """Peaks of the processes below one."""

    def __init__(self, top):
        super().__init__(daemon=True)
        self.top, self.peaks, self.done = top, {}, threading.Event()

    def run(self):
        while not self.done.wait(0.3):
            self.look()

    def look(self):
        parents = {}
        for place in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                parents[int(place.name)] = int((place / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, ValueError):
                continue
        ours = {self.top}
        while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
            ours |= more
        for pid in ours:
            try:
                place = pathlib.Path(f"/proc/{pid}")
                words = (place / "cmdline").read_text().split("\0")
                name = " ".join(words[1:3]) if words[1] == "role" else words[1]
                status = (place / "status").read_text()
                memory = int(status.split("VmHWM:")[1].split()[0]) / 1024
                descriptors = len(list((place / "fd").iterdir()))
            except (OSError, ValueError, IndexError):
                continue
            before = self.peaks.get(pid, (name, 0, 0))
            self.peaks[pid] = (name, max(memory, before[1]), max(descriptors, before[2]))


def settle(lines, seconds):
    """Waits until nothing more comes."""
    quiet, last, until = 0, None, time.monotonic() + seconds
    while quiet < 12 and time.monotonic() < until:
        time.sleep(1)
        now = [line for line in lines if " requests · " in line][-1:]
        now = [line.split(" s ", 1)[-1] for line in now]
        quiet, last = (quiet + 1 if now == last else 0), now


def run(options, work):
    net = f"127.{random.randrange(60, 99)}.{random.randrange(1, 250)}"
    origin, listen, listeners = (f"{net}.1", 8000), (f"{net}.2", 8080), (f"{net}.3", 3200)
    started, words = [start(origin)], []
    if options.what == "faulty":
        words = ["--proxy", "sound=builtin"]
        for index, fault in enumerate(FAULTS):
            address = (f"{net}.{10 + index}", 8080)
            started.append(start(address, fault, (listeners[0], listeners[1] + 2 + index)))
            words += ["--proxy", "%s=%s:%d" % (fault, *address)]
    else:
        for number in range(options.proxies):
            words += ["--proxy", f"p{number + 1}=builtin"]
    spe = subprocess.Popen(
        [options.assay, "spe", "--listen", "%s:%d" % listen, "--origin", "%s:%d" % origin, "--collector-listen", "%s:%d" % listeners,
         "--dir", str(work / "spe"), "--patience", f"{options.patience}s", "--most-waiting", str(options.most_waiting),
         "--collector-memory", options.collector_memory, *(["--at-once"] if options.at_once else []), *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = []
    for line in spe.stderr:
        lines.append(line)
        if line.startswith("ready"):
            break
    else:
        sys.exit("".join(lines))
    threading.Thread(target=lambda: lines.extend(spe.stderr), daemon=True).start()
    watch = Watch(spe.pid)
    watch.start()
    clients = Clients(options, listen)
    asyncio.run(clients.all())
    settle(lines, 120)
    watch.done.set()
    watch.look()
    print(lines[-1].strip())
    spe.send_signal(signal.SIGINT)
    print(spe.communicate(timeout=180)[0])
    for one in started:
        one.send("stop")
    return clients, started[0].recv(), watch.peaks


def judge(options, work, clients, requested, peaks):
    """Prints it all; true when nothing was lost."""
    made = subprocess.run([options.assay, "spe", "report", str(work / "spe")], capture_output=True, text=True)
    summary = json.loads((work / "spe" / "summary.json").read_text())
    needs = {}
    for path in (path for paths in clients.paths for path in paths):
        needs[path] = 1 if path.startswith(("/shared", "/large")) else needs.get(path, 0) + 1
    print("\n| process | peak of memory | of descriptors |\n|---|---|---|")
    for name, memory, descriptors in sorted(peaks.values()):
        print(f"| {name} | {memory:.0f} MB | {descriptors} |")
    print("\n| proxy | requests | whole responses | verdicts | errors | dropped |\n|---|---|---|---|---|---|")
    for row in summary["targets"]:
        verdicts = ", ".join(f"{name} {count}" for name, count in row["verdicts"].items())
        errors = ", ".join(f"{name} {count}" for name, count in row["errors"].items())
        print(f"| {row['label']} | {row['requests']} | {row['delivered']} | {verdicts} | {errors} | {row['dropped']} |")
    over = {path: count for path, count in requested.items() if count > needs.get(path, 0)}
    under = {path: count for path, count in needs.items() if requested.get(path, 0) < count}
    print(f"\nthe origin got {sum(requested.values())} requests for {sum(needs.values())} needs; "
          f"{len(over)} more often than needed, {len(under)} less often: {dict(list(over.items())[:3])} "
          f"{dict(list(under.items())[:3])}")
    sound = [row for row in summary["targets"] if row["label"] not in ("direct", *FAULTS)]
    # What an origin cut off is nobody's whole response.
    cut = lambda row: sum(row["errors"].get(kind, 0) for kind in ("truncated", "reset"))
    fine = all(row["verdicts"].get("OK", 0) + cut(row) == row["requests"] and not row["dropped"] for row in sound)
    made.check_returncode()
    # What the Collector has no room for is fetched again.
    return fine and (options.large or not over) and not under and not clients.wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("assay")
    parser.add_argument("what", choices=["sound", "faulty"])
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--proxies", type=int, default=6)
    parser.add_argument("--requests", type=int, default=6)
    parser.add_argument("--most-waiting", type=int, default=10_000)
    parser.add_argument("--patience", type=int, default=10, help="seconds")
    parser.add_argument("--large", action="store_true", help="request objects of 2 MB, 1 GB in all, and nothing else")
    parser.add_argument("--collector-memory", default="256MB")
    parser.add_argument("--at-once", action="store_true")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        is_fine = judge(options, work, *run(options, work))
    print("nothing was lost" if is_fine else "SOMETHING WAS LOST")
    sys.exit(not is_fine)


if __name__ == "__main__":
    main()
