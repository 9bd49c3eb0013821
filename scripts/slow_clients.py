"""Do slow clients and slow servers cost others anything? The 99th percentile of a normal load without them, with 10,000 of them
elsewhere on the machine, and with 10,000 of them at the product.

The product (the switch, or the built-in caching proxy) has one processor and one thread; everything else has the other. Behind it is nginx. The
normal load is `assay replay`: connections that come at random and send ten requests each, so that accepting is part of it. Each run measures
the same product three times, in an order that changes from run to run: without slow ones, with them *elsewhere* (at a process that accepts them, on
the product's processor, and then neither reads nor writes), and with them. What slow ones cost elsewhere is the system's and their own process's
share of the machine, and no product can cost less. Figures are medians of ratios over runs, and how far they spread is said.

What the slow ones do, each a byte a second:

- `head`: a request's head that never ends; `body`: a request's body that never ends; `handshake`: a TLS handshake that never ends;
- `reader`: a response of 1 MB, taken through the smallest receive buffer that there is;
- `server`: they take all that comes, and the server behind sends a byte a second;
- `mixed`: a fifth of each.

One that is ended comes again, 100 a second at most. Memory is that of the product with them less that without, over the connections
that it had. Everything is on loopback addresses of its own. Runs are kept, a line each, and what was interrupted is gone on with.

    scripts/slow-clients.sh [--times RUNS] [--slow N] [--seconds S] [--json FILE] [CASE]...      CASE: switch-head, proxy-mixed, …
    ASSAY=path/to/assay: measure that one instead of building it

The exit code is 1 if the median of a case, with them to without, is above 1.10, or a response of the normal load was lost.
"""

import collections
import itertools
import json
import os
import re
import resource
import select
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import kept_runs
import paired_runs
from kept_runs import HERE

sys.path.insert(0, os.path.join(HERE, "scripts/benchmarks"))
from machine import ASSAY, CLIENT, PATH, SERVER, STARTED, Role, cpu_seconds, on, start, stop, wait_for

KINDS = ("head", "body", "handshake", "reader", "server")
# How a product is measured: without slow ones, with them at another process, and with them.
WAYS = ("without", "elsewhere", "with")
ORDERS = list(itertools.permutations(WAYS))
CASES = [f"{product}-{kind}" for product in ("switch", "proxy") for kind in (*KINDS, "mixed")]
LISTEN, SECURE = ("127.66.8.1", 8080), ("127.66.8.1", 8443)
METRICS = ("127.66.8.1", 9100)
NODES = [("127.66.8.2", 8081), ("127.66.8.2", 8082)]
DRIPPING, SINK = ("127.66.8.3", 8083), ("127.66.8.3", 8084)
INERT = ("127.66.8.4", 8085)
MOST_RATIO = 1.10
# Requests a second of the normal load: connections, and requests of each.
CONNECTIONS_PER_S, PER_CONNECTION = 100, 10
# How fast slow ones come at first, and how fast those come again that were ended.
OPENED_PER_S, AGAIN_PER_S = 2000, 100
STEP_S = 0.001
HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"


def write(path, text):
    with open(path, "w") as file:
        file.write(text)
    return path


class Slow:
    """The slow ones, in a process of their own: so many connections of a kind, each of which gets or sends a byte a second."""

    def __init__(self, kind, count, are_elsewhere):
        self.are_elsewhere = are_elsewhere
        self.kinds = KINDS if kind == "mixed" else (kind,)
        self.count, self.poll = count, select.epoll()
        self.open, self.turns, self.begun, self.dripped = {}, collections.deque(), 0, 0
        self.ends = collections.Counter()
        self.listeners = {}
        for address, drips in ((DRIPPING, True), (SINK, False)):
            listener = socket.create_server(address, backlog=4096)
            listener.setblocking(False)
            self.listeners[listener.fileno()] = (listener, drips)
            self.poll.register(listener, select.EPOLLIN)

    def begin(self):
        """One more connection of a client."""
        kind = self.kinds[self.begun % len(self.kinds)]
        self.begun += 1
        client = socket.socket()
        client.setblocking(False)
        client.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
        client.bind((f"127.66.{16 + self.begun % 8}.1", 0))
        if kind == "reader":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        client.connect_ex(INERT if self.are_elsewhere else SECURE if kind == "handshake" else LISTEN)
        self.join(client, kind)
        self.poll.register(client, select.EPOLLOUT)

    def join(self, one, kind):
        self.open[one.fileno()] = (one, kind)
        self.turns.append((time.monotonic() + 1.0, one.fileno(), one))

    def connected(self, client, kind):
        first = {
            "head": b"GET /small HTTP/1.1\r\nHost: a\r\nX-Slow: ",
            "body": b"POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n",
            "handshake": HELLO,
            "reader": b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n",
            "server": b"GET /slow/%d HTTP/1.1\r\nHost: slow\r\n\r\n" % self.begun,
        }[kind]
        self.poll.modify(client, select.EPOLLRDHUP if kind == "reader" else select.EPOLLIN)
        client.send(first)

    def end(self, one, how):
        self.ends[how] += 1
        self.open.pop(one.fileno(), None)
        one.close()

    def happened(self, number, events):
        if number in self.listeners:
            listener, drips = self.listeners[number]
            for _ in range(64):
                try:
                    one = listener.accept()[0]
                except BlockingIOError:
                    return
                one.setblocking(False)
                self.poll.register(one, select.EPOLLIN)
                self.join(one, "dripping" if drips else "sink")
            return
        one, kind = self.open.get(number, (None, None))
        if one is None:
            return
        try:
            if events & select.EPOLLOUT:
                return self.connected(one, kind)
            if events & select.EPOLLRDHUP:
                return self.end(one, f"{kind} ended")
            came = one.recv(65536)
            if kind == "dripping" and came:
                return one.send(b"HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 100000\r\n\r\n")
            status = re.match(rb"HTTP/1\.\d (\d+)", came)
            if status and status[1] != b"200":
                return self.end(one, f"{kind} {int(status[1])}")
            if not came:
                self.end(one, f"{kind} ended" if kind in KINDS else f"{kind} gone")
        except OSError as error:
            self.end(one, f"{kind} {error.__class__.__name__}" if kind in KINDS else f"{kind} gone")

    def a_byte(self, one, kind):
        self.dripped += 1
        try:
            if kind == "reader":
                one.recv(1)
            elif kind in ("head", "body", "handshake", "dripping"):
                one.send(b"x")
        except BlockingIOError:
            pass
        except OSError as error:
            self.end(one, f"{kind} {error.__class__.__name__}" if kind in KINDS else f"{kind} gone")

    def clients(self):
        return sum(kind in KINDS for _, kind in self.open.values())

    def run(self):
        """Says once a second how many there are and what became of others."""
        said = credit_at = time.monotonic()
        credit, is_up = 0.0, False
        while True:
            for number, events in self.poll.poll(STEP_S):
                self.happened(number, events)
            now = time.monotonic()
            while self.turns and self.turns[0][0] <= now:
                due, number, one = self.turns.popleft()
                if self.open.get(number, (None,))[0] is one:
                    self.a_byte(one, self.open[number][1])
                    self.turns.append((due + 1.0, number, one))
            is_up = is_up or self.begun >= self.count
            credit = min(credit + (now - credit_at) * (AGAIN_PER_S if is_up else OPENED_PER_S), 20.0)
            credit_at = now
            clients = self.begun - sum(count for how, count in self.ends.items() if "gone" not in how)
            while credit >= 1 and clients < self.count:
                self.begin()
                credit, clients = credit - 1, clients + 1
            if now - said >= 1:
                said = now
                print(json.dumps({"open": clients, "begun": self.begun, "is_up": is_up, "ends": self.ends, "at_s": now, "dripped": self.dripped}), flush=True)


def inert():
    """Accepts connections, and leaves them alone: to who sends a request first, it writes as much as there is room for. This goes on until it is killed."""
    listener = socket.create_server(INERT, backlog=4096)
    poll, kept = select.epoll(), {}
    poll.register(listener, select.EPOLLIN)
    while True:
        for number, _ in poll.poll():
            if number == listener.fileno():
                one = listener.accept()[0]
                one.setblocking(False)
                one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
                kept[one.fileno()] = one
                poll.register(one, select.EPOLLIN)
            else:
                poll.unregister(number)
                try:
                    if kept[number].recv(16, socket.MSG_PEEK).startswith(b"GET /big"):
                        kept[number].send(b"b" * (1 << 20))
                except OSError:
                    pass  # as much as there was room for, or nobody is there any more


class Drivers:
    """The process of the slow ones, as it is started and listened to."""

    def __init__(self, kind, count, way):
        command = [sys.executable, "-B", os.path.abspath(__file__), "--drive", kind, str(count), way]
        calm = lambda: (on(CLIENT)(), os.nice(19))
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=calm)
        self.last = {}
        # All are there, and nothing is left of their coming.
        for line in self.process.stdout:
            self.last = json.loads(line)
            if self.last["is_up"]:
                break
        self.listen(3)
        self.first = self.last

    def per_second(self):
        """How many bytes they have sent or taken in a second: about as many as they are."""
        return (self.last["dripped"] - self.first["dripped"]) / (self.last["at_s"] - self.first["at_s"])

    def listen(self, seconds):
        for _ in range(seconds):
            self.last = json.loads(self.process.stdout.readline())

    def now(self):
        """What it says next, without what was said while nobody listened."""
        os.set_blocking(self.process.stdout.fileno(), False)
        while self.process.stdout.readline():
            pass
        os.set_blocking(self.process.stdout.fileno(), True)
        self.listen(1)
        return self.last

    def end(self):
        self.process.kill()
        self.process.wait()


class Switch:
    def __init__(self, directory):
        nodes = "".join(f'[[server]]\nname = "n{port}"\naddress = "{host}:{port}"\n' for host, port in NODES)
        conf = write(os.path.join(directory, "switch.toml"), f"""
listen = "{LISTEN[0]}:{LISTEN[1]}"
metrics = "{METRICS[0]}:{METRICS[1]}"
policy = "lc"
[tls]
listen = "{SECURE[0]}:{SECURE[1]}"
[[certificate]]
file = "cert.pem"
key = "key.pem"
{nodes}
[[server]]
name = "slow"
address = "{DRIPPING[0]}:{DRIPPING[1]}"
[[class]]
name = "slow"
prefix = "/slow/"
servers = ["slow"]
[[class]]
name = "usual"
servers = [{", ".join(f'"n{port}"' for _, port in NODES)}]
""")
        self.process = start([ASSAY, "switch", "--quiet", conf], SERVER, directory)
        wait_for(LISTEN, self.process)
        self.pids = [self.process.pid]

    def counters(self):
        with socket.create_connection(METRICS, 5) as there:
            there.sendall(b"GET /metrics HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % METRICS[0].encode())
            text = b"".join(iter(lambda: there.recv(65536), b"")).decode()
        names = {"clients": "clients", "slow": "slow_total", "dismissed": "dismissed_total", "in_flight": "in_flight"}
        found = {name: re.search(rf"^assay_switch_{metric} (\d+)", text, re.MULTILINE) for name, metric in names.items()}
        return {name: int(value[1]) for name, value in found.items() if value}

    def end(self):
        self.process.kill()
        self.process.wait()


class Proxy:
    def __init__(self, directory):
        certificate = {"certificate": os.path.join(directory, "cert.pem"), "key": os.path.join(directory, "key.pem")}
        at = lambda address: f"{address[0]}:{address[1]}"
        spec = {"threads": 1, "cpus": [SERVER], "memory_bytes": 64 << 20, "origins": [
            {"authority": "a", "address": at(NODES[0])}, {"authority": "slow", "address": at(DRIPPING)}]}
        # One for clients in the clear, and one for those that speak TLS.
        self.role = Role("proxy", spec | {"listen": at(LISTEN)}, [SERVER], directory)
        self.secure = Role("proxy", spec | {"listen": at(SECURE), "tls": certificate}, [SERVER], directory)
        self.pids = [self.role.process.pid, self.secure.process.pid]

    def of(self, role):
        for event in role.events():
            if event["event"] == "proxy":
                return {"slow": event.get("slow_clients", 0), "dismissed": event.get("dismissed_clients", 0)}

    def counters(self):
        for role in (self.role, self.secure):
            os.set_blocking(role.process.stdout.fileno(), False)
            while role.process.stdout.readline():
                pass
            os.set_blocking(role.process.stdout.fileno(), True)
        return dict(collections.Counter(self.of(self.role)) + collections.Counter(self.of(self.secure)))

    def end(self):
        self.role.end()
        self.secure.end()


PRODUCTS = {"switch": Switch, "proxy": Proxy}


def nodes(directory):
    """nginx, with what the normal load and slow readers request; it waits for all of a body, and passes on what is to be slow."""
    os.makedirs(os.path.join(directory, "html"))
    os.chmod(directory, 0o755)
    write(os.path.join(directory, "html/big"), "b" * (1 << 20))
    for number in range(100):
        write(os.path.join(directory, f"html/small-{number}"), "s" * 1000)
    listens = "".join(f"listen {host}:{port} backlog=4096 sndbuf=64k;" for host, port in NODES)
    conf = write(os.path.join(directory, "nginx.conf"), f"""
daemon off; worker_processes 1; pid nginx.pid; error_log error.log crit; {"user root;" if os.geteuid() == 0 else ""}
worker_rlimit_nofile 20000; events {{ worker_connections 18000; }}
http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 3600s; tcp_nodelay on; client_body_timeout 3600s; send_timeout 3600s;
  client_body_temp_path body; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s; client_max_body_size 0;
  server {{ {listens} root html;
    location /small- {{ add_header Cache-Control max-age=3600; }}
    location /upload {{ proxy_pass http://{SINK[0]}:{SINK[1]}; }}
  }}
}}""")
    process = start([shutil.which("nginx", path=PATH), "-p", directory + "/", "-c", conf, "-e", "error.log"], CLIENT, directory)
    wait_for(NODES[0], process)


def memory(pids):
    """Bytes that processes have for themselves."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            total += int(re.search(r"^Pss: +(\d+)", file.read(), re.MULTILINE)[1]) * 1024
    return total


def measured(directory, seconds):
    """The normal load: its percentiles in milliseconds."""
    count = seconds * CONNECTIONS_PER_S
    command = [ASSAY, "replay", "--urls", os.path.join(directory, "urls"), "--to", f"{LISTEN[0]}:{LISTEN[1]}", "--connections", str(count)]
    command += ["--per-connection", str(PER_CONNECTION), "--rate", str(CONNECTIONS_PER_S), "--timeout", "5s", "--json", "-q"]
    ran = subprocess.run(command, capture_output=True, text=True, preexec_fn=on(CLIENT))
    # 1: nothing was served, which is a result.
    if ran.returncode not in (0, 1) or not ran.stdout:
        sys.exit(f"the normal load ended with {ran.returncode}: {ran.stderr[-2000:]}")
    found = json.loads(ran.stdout)
    lost = count * PER_CONNECTION - found["statuses"].get("200", 0)
    return {"p50_ms": found["response_ms"]["p50"], "p99_ms": found["response_ms"]["p99"], "connect_p99_ms": found["connect_ms"]["p99"],
            "requests": found["requests"], "lost": lost}


def run(case, seed, args, directory):
    """One product, in each way."""
    product, kind = case.split("-", 1)
    one = PRODUCTS[product](directory)
    wait_for(INERT, start([sys.executable, "-B", os.path.abspath(__file__), "--inert"], SERVER, directory))
    try:
        measured(directory, 2)
        found = {}
        for way in ORDERS[seed % len(ORDERS)]:
            before = memory(one.pids)
            slow = Drivers(kind, args.slow, way) if way != "without" else None
            used = sum(map(cpu_seconds, one.pids))
            now = found[way] = measured(directory, args.seconds)
            now["cpu_share"] = round((sum(map(cpu_seconds, one.pids)) - used) / args.seconds, 3)
            if slow:
                last, counters = slow.now(), one.counters()
                now["open"] = last["open"]
            if way == "with":
                connections = counters.get("clients", last["open"])
                found |= {"begun": last["begun"], "ends": last["ends"], "counters": counters,
                          "per_second": round(slow.per_second()),
                          "bytes_each": round((memory(one.pids) - before) / max(connections, 1))}
            if slow:
                slow.end()
                time.sleep(2)
    finally:
        one.end()
    return found


def ratios(records, to):
    """Of the 99th percentile with slow ones to that of another way."""
    return [record["with"]["p99_ms"] / record[to]["p99_ms"] for record in records]


def report(records, cases):
    """A table, and whether all is as it must be."""
    is_well = True
    print("| case | runs | p99 without, ms | elsewhere, ms | with, ms | with to without (from, to) | with to elsewhere (from, to) | lost | slow at once | "
          "ended as slow, dismissed | bytes each |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for case in cases:
        mine = [record for record in records if record["case"] == case]
        if not mine:
            continue
        middle = lambda value: statistics.median(value(record) for record in mine)
        lost = sum(record[way]["lost"] for record in mine for way in WAYS)
        counts = [record["counters"] for record in mine]
        times = " | ".join(f"{middle(lambda r: r[way]['p99_ms']):.3f}" for way in WAYS)
        spread = " | ".join(f"{statistics.median(found):.3f} ({min(found):.3f}, {max(found):.3f})" for found in (ratios(mine, to) for to in WAYS[:2]))
        print(f"| {case} | {len(mine)} | {times} | {spread} | {lost} | {middle(lambda r: r['with']['open']):,.0f} | "
              f"{sum(c.get('slow', 0) for c in counts):,}, {sum(c.get('dismissed', 0) for c in counts):,} | {middle(lambda r: r['bytes_each']):,.0f} |")
        is_well = is_well and statistics.median(ratios(mine, "without")) <= MOST_RATIO and not lost
    for case in cases:
        mine = [record for record in records if record["case"] == case]
        ends = collections.Counter()
        for record in mine:
            ends.update(record["ends"])
        told = ", ".join(f"{how}: {count}" for how, count in sorted(ends.items()) if "gone" not in how)
        if told:
            print(f"{case}: {told}")
        if len(mine) > 1:
            for to in WAYS[:2]:
                print(f"{case}, with to {to}: {paired_runs.words(ratios(mine, to))}")
    return is_well


def main():
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if sys.argv[1:2] == ["--drive"]:
        return Slow(sys.argv[2], int(sys.argv[3]), sys.argv[4] == "elsewhere").run()
    if sys.argv[1:2] == ["--inert"]:
        return inert()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    made = kept_runs.parser(__doc__, CASES, 7, "slow-clients.jsonl")
    made.add_argument("--slow", type=int, default=10_000, help="slow ones at once")
    made.add_argument("--seconds", type=int, default=8, help="seconds of each measurement")
    args = kept_runs.parse(made, CASES)
    kept = kept_runs.Kept(args.json)
    for seed in range(1, args.times + 1):
        for case in (case for case in args.case if not kept.has(case, seed)):
            with tempfile.TemporaryDirectory(prefix="slow-clients-") as directory:
                nodes(directory)
                write(os.path.join(directory, "urls"), "".join(f"/small-{number}\n" for number in range(100)))
                subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", os.path.join(directory, "key.pem"), "-out",
                                os.path.join(directory, "cert.pem"), "-days", "30", "-subj", "/CN=slow"], check=True, capture_output=True)
                try:
                    kept.add({"case": case, "seed": seed} | run(case, seed, args, directory))
                finally:
                    while STARTED:
                        process = STARTED.pop()
                        if process.poll() is None:
                            stop(process)
    return 0 if report(kept.records, args.case) else 1


if __name__ == "__main__":
    sys.exit(main())
