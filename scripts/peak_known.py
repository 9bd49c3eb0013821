"""Is a known limit found beside other work? A target in this script lets through so many requests a second and no more; it
refuses what is too much (503), or makes it wait. Meanwhile a process of this script uses half of a processor, in bursts. Each
search should give an interval that holds the limit and whose middle is within 3 % of it. Searches that are made at once are
other work for each other.

All traffic stays on the loopback address, some hundred requests a second. Takes five minutes for each search at most. Prints a
table in Markdown; ends with 1 where fewer than all but one came to a right interval.
"""

import argparse
import asyncio
import concurrent.futures
import json
import os
import pathlib
import random
import socket
import subprocess
import sys
import tempfile
import time

WORKLOAD = """
Content C = { kind = "c"; size = const(1KB); cachable = 50%; };
Server S = { kind = "s"; contents = [C]; direct_access = contents; addresses = ['10.0.0.1:80'];
    pconn_use_lmt = const(1000000); };
Robot R = { kind = "r"; origins = S.addresses; req_inter_arrival = exp(0.2sec); recurrence = 50%;
    pconn_use_lmt = const(1000000); pop_model = { pop_distr = popUnif(); }; addresses = ['10.0.1.1' ** 50]; };
Phase only = { name = "only"; goal.duration = 5sec; };
schedule(only);
use(S, R);
"""
# A burst that the target lets through at once, in requests.
DEPTH = 10
# A target that delays has no end of its queue above its limit: that it falls behind breaks any promise.
PROMISES = {"refuses": "errors < 5%", "delays": "errors < 5%"}
REFUSED = 0.05
REFUSAL = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"


def known(kind, limit):
    """The limit of the promise: for a bucket that refuses, by drawing a long row of requests that come by chance."""
    if kind == "delays":
        return limit
    chance, draws = random.Random(1), 100_000
    gaps = [chance.expovariate(1.0) for _ in range(draws)]
    scale = draws / sum(gaps)

    def refused(rate):
        tokens, count = 0.0, 0
        for gap in gaps:
            tokens = min(DEPTH, tokens + gap * scale / rate * limit)
            if tokens < 1:
                count += 1
            else:
                tokens -= 1
        return count / draws

    low, high = limit / 2, limit * 2
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if refused(middle) < REFUSED else (low, middle)
    return (low + high) / 2


class Bucket:
    """So many tokens a second; one that delays may owe some."""

    def __init__(self, kind, limit):
        self.kind, self.limit = kind, limit
        self.tokens, self.filled = DEPTH, time.monotonic()

    def take(self):
        """Seconds to wait; None: refused."""
        now = time.monotonic()
        self.tokens = min(DEPTH, self.tokens + (now - self.filled) * self.limit)
        self.filled = now
        if self.kind == "refuses" and self.tokens < 1:
            return None
        self.tokens -= 1
        return max(0.0, -self.tokens / self.limit)


async def answer_to(reader):
    """One response of the origin, head and body."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return head + (await reader.readexactly(length) if length else b"")


async def serve(reader, writer, origin, bucket):
    """One connection of a robot; requests have no bodies."""
    try:
        behind_reader, behind_writer = await asyncio.open_connection("127.0.0.1", origin)
    except ConnectionError:
        # Assay looks whether somebody listens before it starts its origins.
        writer.close()
        return
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            wait = 0.0 if head.startswith(b"GET /assay/health") else bucket.take()
            if wait is None:
                writer.write(REFUSAL)
                continue
            if wait:
                await asyncio.sleep(wait)
            behind_writer.write(head)
            writer.write(await answer_to(behind_reader))
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()
        behind_writer.close()


async def target(port, origin, kind, limit):
    """The target, until it is ended."""
    bucket = Bucket(kind, limit)
    server = await asyncio.start_server(lambda r, w: serve(r, w, origin, bucket), "127.0.0.1", port, backlog=1024)
    async with server:
        await server.serve_forever()


def burn(seconds):
    """Half of a processor, in bursts of 20 to 200 ms."""
    ends, chance = time.monotonic() + seconds, random.Random(1)
    while time.monotonic() < ends:
        length = chance.uniform(0.02, 0.2)
        until = time.monotonic() + length
        while time.monotonic() < until:
            pass
        time.sleep(length)


def free_port():
    """A port that nobody listens at just now."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


def wait_for(port, part):
    """Until somebody listens there."""
    while part.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except ConnectionRefusedError:
            time.sleep(0.05)
    sys.exit("the target ended before it listened")


def child(*args):
    """This script again, for one part."""
    return subprocess.Popen([sys.executable, "-B", __file__, *map(str, args)])


def search(assay, kind, limit, args, directory):
    """What one search found, as its document."""
    port, origin = free_port(), free_port()
    workload = directory / "known.pg"
    workload.write_text(WORKLOAD)
    parts = [child("--part", "target", port, origin, kind, limit), child("--part", "burn", args.most + 60)]
    command = [
        assay, "run", str(workload), "--proxy", f"127.0.0.1:{port}", "--origin-listen", f"127.0.0.1:{origin}",
        "--find-peak", PROMISES[kind], "--peak-from", str(limit * 0.6), "--peak-step", f"{args.step}s", "--peak-warm", "2s",
        "--rehearse", f"{args.most}s", "--no-live", "--no-report", "--json", "--run-dir", str(directory / "run"),
    ]
    try:
        wait_for(port, parts[0])
        ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        for part in parts:
            part.terminate()
            part.wait()
    if not ran.stdout.startswith("{"):
        sys.exit(f"the search ended with {ran.returncode}:\n{ran.stderr[-2000:]}")
    return json.loads(ran.stdout)


def main():
    """All searches."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--searches", type=int, default=5)
    parser.add_argument("--step", type=int, default=4, help="seconds for each rate, far from the limit")
    parser.add_argument("--most", type=int, default=300, help="seconds for each search")
    parser.add_argument("--at-once", type=int, default=1, help="searches that are made at the same time")
    args = parser.parse_args()
    assay = os.environ.get("ASSAY", "target/release/assay")
    print("| target | limit/s | interval | middle / limit | steps, kept/broken/undecided | within | ended |\n|---|--:|---|--:|---|---|---|")

    def one(turn):
        kind, limit = list(PROMISES)[turn % 2], 150 + 50 * turn
        with tempfile.TemporaryDirectory() as place:
            return kind, known(kind, limit), search(assay, kind, limit, args, pathlib.Path(place))

    right = 0
    with concurrent.futures.ThreadPoolExecutor(args.at_once) as pool:
        for kind, truth, peak in pool.map(one, range(args.searches)):
            low, high = peak["low_per_s"], peak["high_per_s"]
            outcomes = [step["outcome"] for step in peak["steps"]]
            counts = "/".join(str(outcomes.count(name)) for name in ("kept", "broken", "undecided"))
            middle = (low + high) / 2 / truth if low and high else float("nan")
            within = bool(low and high and low <= truth <= high)
            right += within
            between = f"{low or 0:,.1f} to {high or float('inf'):,.1f}"
            cells = [kind, f"{truth:,.1f}", between, f"{middle:.3f}", f"{len(outcomes)}, {counts}", within, peak["ended"]]
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
    return right + 1 < args.searches


if sys.argv[1:2] == ["--part"]:
    part, rest = sys.argv[2], sys.argv[3:]
    if part == "target":
        asyncio.run(target(int(rest[0]), int(rest[1]), rest[2], float(rest[3])))
    else:
        burn(float(rest[0]))
else:
    sys.exit(main())
