"""How are processes run under callgrind, and made to find the same work at once each time they are counted?

What a request takes depends on how many others are found with it when a worker wakes up. So whoever is counted is stopped
while its sockets are filled, and finds all of it when it goes on: the same in every run, on any machine, however busy.
"""

import contextlib
import glob
import json
import os
import re
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time

from machine import ASSAY, STARTED

# How long anything may take; a program under callgrind is some fifty times slower, on a busy machine more.
PATIENCE_S = 120


class Counted:
    """A process of the binary, under callgrind or plainly."""

    def __init__(self, arguments, directory, counted=True, keep=None, first_thread=False, kind=None):
        self.first_thread, self.kind = first_thread, kind
        self.counts = os.path.join(keep or directory, "callgrind.out") if counted else None
        under = ["valgrind", "--quiet", "--tool=callgrind", "--separate-threads=yes",
                 f"--callgrind-out-file={self.counts}"] if counted else []
        # Shown only where something goes wrong.
        self.said = tempfile.TemporaryFile()
        self.process = subprocess.Popen([*under, ASSAY, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.said, cwd=directory)
        STARTED.append(self.process)

    @classmethod
    def role(cls, kind, spec, directory, counted=True, keep=None, first_thread=False):
        path = os.path.join(directory, f"{kind}.json")
        with open(path, "w") as file:
            json.dump(spec, file)
        made = cls(["role", kind, path], directory, counted, keep, first_thread, kind)
        made.event("ready")
        return made

    def event(self, name):
        for line in self.process.stdout:
            if json.loads(line)["event"] == name:
                return
        self.fail(f"a process ended before it said {name!r}")

    def fail(self, why):
        self.said.seek(0)
        sys.exit(f"{why}\n{self.said.read().decode(errors='replace')}")

    def say(self, **command):
        self.process.stdin.write((json.dumps(command) + "\n").encode())
        self.process.stdin.flush()

    def start(self, at, unix_s):
        self.say(command="start", at_monotonic_ns=at, at_unix_s=unix_s)

    @contextlib.contextmanager
    def stopped(self):
        """It does not run meanwhile."""
        os.kill(self.process.pid, signal.SIGSTOP)
        _, status = os.waitpid(self.process.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            self.fail(f"what was counted ended early ({status})")
        try:
            yield
        finally:
            os.kill(self.process.pid, signal.SIGCONT)

    def end(self, told=None):
        """Ends it, by the end of its input or by a signal; gives the instructions of its threads. Of the first one only
        where it answers requests too: elsewhere it starts, reports once a second and ends, however many requests there are."""
        if told is not None:
            self.process.send_signal(told)
        self.process.stdin.close()
        self.process.stdout.read()
        if self.process.wait(PATIENCE_S) != 0:
            self.fail(f"what was counted ended with {self.process.returncode}")
        if self.counts is None:
            return 0
        if self.kind == "robots" and (names := not_called(glob.glob(self.counts + "-*"))):
            self.fail(f"robots called none of what is counted apart as {', '.join(names)}: see APART in counted.py")
        return sum(map(total, glob.glob(self.counts + "-*"))) - (0 if self.first_thread else total(self.counts + "-01"))


# A histogram of response times grows for the slowest one of a second, and each second has histograms of its own. How many seconds
# there are, and how slow that one is, depends on how busy the machine is, and it has nothing to do with how many requests there are.
APART = ["assay_measurement::histogram::Histogram::grow", "assay_load::tally::recorders::Recorders::take"]


def number(text, name):
    """By which callgrind names a function in a file, where it was called."""
    found = re.search(rf"^c?fn=(\(\d+\)) {re.escape(name)}$", text, re.MULTILINE)
    return found and found.group(1)


def total(path):
    """All instructions in a file of callgrind's, but for what is counted apart."""
    with open(path) as file:
        text = file.read()
    whole = int(re.search(r"^(?:totals|summary): (\d+)", text, re.MULTILINE).group(1))
    for called in filter(None, (number(text, name) for name in APART)):
        whole -= sum(map(int, re.findall(rf"^cfn={re.escape(called)}.*\ncalls=.*\n\S+ (\d+)$", text, re.MULTILINE)))
    return whole


def not_called(paths):
    """What is to be counted apart, and is in none of these files: it has another name now, or is part of its caller."""
    texts = []
    for path in paths:
        with open(path) as file:
            texts.append(file.read())
    return [name for name in APART if not any(number(text, name) for text in texts)]


class Message:
    """What has come of one request or response."""

    def __init__(self):
        self.bytes = b""

    def is_whole(self):
        head, ended, body = self.bytes.partition(b"\r\n\r\n")
        if not ended:
            return False
        length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
        return len(body) >= (int(length.group(1)) if length else 0)

    def read(self, connection):
        """More of it; false where the other side has closed."""
        more = connection.recv(1 << 20)
        self.bytes += more
        return bool(more)


class Clients:
    """Connections that send together: all requests lie there before the process goes on."""

    def __init__(self, address, number):
        self.connections = [connect(address) for _ in range(number)]

    def send(self, counted, requests, serve=None):
        """One request on each connection; meanwhile `serve` may serve the requests that the process sends to others."""
        with counted.stopped():
            for connection, request in zip(self.connections, requests):
                connection.sendall(request)
        if serve:
            serve(len(self.connections))
        for connection in self.connections:
            response = Message()
            while not response.is_whole():
                if not response.read(connection):
                    sys.exit("a connection was closed in the middle of a response")
            if not response.bytes.startswith(b"HTTP/1.1 200"):
                sys.exit(f"not what was requested: {response.bytes[:200]}")

    def fetch(self, request):
        """The whole response to one request, from a process that is not counted."""
        self.connections[0].sendall(request)
        response = Message()
        while not response.is_whole():
            if not response.read(self.connections[0]):
                sys.exit("a connection was closed in the middle of a response")
        return response.bytes

    def close(self):
        for connection in self.connections:
            connection.close()


def connect(address):
    """A connection, once somebody listens there."""
    patient_until = time.monotonic() + PATIENCE_S
    while True:
        try:
            made = socket.create_connection(address, PATIENCE_S)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return made
        except OSError:
            if time.monotonic() > patient_until:
                sys.exit(f"nothing listens on {address}")
            time.sleep(0.05)


class Server:
    """Responds once so many requests are there, to all of them at once; the responses come from `source`."""

    def __init__(self, addresses, source):
        self.addresses, self.source, self.responses, self.requested = addresses, source, {}, {}
        self.waiting = selectors.DefaultSelector()
        for address in addresses:
            listener = socket.create_server(address, backlog=4096)
            self.waiting.register(listener, selectors.EVENT_READ, None)

    def gather(self, number, patience_s):
        """Requests of so many connections, or of those whose request came in time."""
        found, until = [], time.monotonic() + patience_s
        while len(found) < number:
            ready = self.waiting.select(max(0, until - time.monotonic()))
            if not ready:
                break
            for key, _ in ready:
                if key.data is None:
                    connection, _ = key.fileobj.accept()
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
                    self.waiting.register(connection, selectors.EVENT_READ, Message())
                elif not read(key):
                    self.waiting.unregister(key.fileobj)
                    key.fileobj.close()
                elif key.data.is_whole():
                    found.append((key.fileobj, key.data.bytes))
                    self.waiting.modify(key.fileobj, selectors.EVENT_READ, Message())
        return found

    def respond(self, found):
        for connection, request in found:
            path = request.split(b" ", 2)[1]
            if path not in self.responses:
                self.requested[path] = request
                self.responses[path] = self.source(path)
            closes = b"\r\nconnection: close" in request.lower()
            connection.sendall(self.responses[path])
            if closes:
                self.waiting.unregister(connection)
                connection.close()

    def serve(self, counted, number):
        """One round: waits until so many requests are there, and responds while the process is stopped."""
        found = self.gather(number, PATIENCE_S)
        if len(found) < number:
            sys.exit(f"only {len(found)} of {number} requests came")
        with counted.stopped():
            self.respond(found)

    def close(self):
        for key in list(self.waiting.get_map().values()):
            key.fileobj.close()
        self.waiting.close()


def read(key):
    try:
        return key.data.read(key.fileobj)
    except OSError:
        return False


def room():
    directory = tempfile.TemporaryDirectory(prefix="assay-instructions-")
    os.chmod(directory.name, 0o755)
    return directory
