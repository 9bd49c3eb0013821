#!/usr/bin/env python3
"""How do caching proxies compare on the same clients, and does prefetching help?

The two experiments of chapter 11 of Davison's thesis with the proxies of today, in front of an origin of its own that is as far
away as a real one: every connection and every request costs a round trip, each object its own time to be made, and a body
comes as fast as TCP's window grows.

  artificial  a list of pages, each requested about twice, by connections that arrive at random (table 11.6)
  reverse     users that browse a site: pages, what they are shown with, six connections each, time to read, links that are
              followed; as a log that `assay replay` replays in real time (table 11.7)

Prints the report of `assay spe report`, the same as the document's tables in Markdown, and what became of the first request
for each object: without prefetching, that is never in a cache.

usage: spe_experiments.py ASSAY artificial|reverse [--proxy NAME]... [--seconds N] [--dir DIR] [--after] [--forward] [--seed N]
"""

import argparse
import asyncio
import heapq
import json
import math
import multiprocessing
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading

ROUND_TRIP_S = 0.040
"""Between the Collector and the origin."""
FIRST_WINDOW, SEGMENT = 10, 1460
"""What TCP sends before the first acknowledgement."""
PARALLEL = 6
"""Connections of a browser."""
PROXIES = ["squid", "httpd", "nginx", "varnish", "trafficserver", "builtin", "builtin:embedded", "builtin:links"]
FORWARD_PROXIES = ["squid", "httpd", "trafficserver", "builtin", "builtin:embedded", "builtin:links"]
"""Those that speak to clients as proxies."""
LINE = re.compile(r":RESULT: (\S+): (\d+):(\d+) (\d+):(\d+) (\d+) \{(\S+)\} (\S+) \S+ \S+ GET (\S+)")
HIT_MS = ROUND_TRIP_S * 500
"""Half a round trip: a proxy that responds sooner has not sent a request to the origin."""


class Site:
    """Pages with images of their own, things that all pages show, and links; everything follows from the seed."""

    def __init__(self, pages, seed):
        chance = random.Random(seed)
        self.thinks_s, self.bodies, self.shown, self.links = {}, {}, {}, {}
        shared = ["/style.css", "/script.js", "/logo.png", "/menu.png"]
        for path in shared:
            self.add(path, chance, self.filler(chance, 9.0, 0.5), 0.02)
        popular = [self.page(int(pages * chance.random() ** 2)) for _ in range(30)]
        for number in range(pages):
            own = [f"/image-{number}-{n}.png" for n in range(chance.randint(2, 14))]
            for path in own:
                self.add(path, chance, self.filler(chance, 9.2, 0.9), 0.03)
            near = [self.page((number + step) % pages) for step in (1, 2, 3)]
            links = list(dict.fromkeys(near + chance.sample(popular, 3)))
            words = " ".join(f"word{chance.randint(0, 999)}" for _ in range(chance.randint(300, 2000)))
            html = "".join([
                "<!DOCTYPE html><html><head><title>", str(number), "</title><link rel=stylesheet href=/style.css>",
                "<script src=/script.js></script></head><body><img src=/logo.png><img src=/menu.png>",
                *(f'<img src="{path}">' for path in own), *(f'<a href="{path}">more</a> ' for path in links),
                "<p>", words, "</p></body></html>",
            ])
            path = self.page(number)
            self.add(path, chance, html.encode(), 0.08)
            self.shown[path], self.links[path] = shared + own, links
        self.pages = [self.page(number) for number in range(pages)]

    @staticmethod
    def page(number):
        return f"/page-{number}.html"

    @staticmethod
    def filler(chance, mu, sigma):
        return bytes(min(200_000, int(chance.lognormvariate(mu, sigma))))

    def add(self, path, chance, body, median_s):
        self.bodies[path] = body
        self.thinks_s[path] = median_s * chance.lognormvariate(0, 0.6)

    def windows(self, path):
        """The parts in which a body comes, one every round trip."""
        body, at, window = self.bodies[path], 0, FIRST_WINDOW * SEGMENT
        while at < len(body):
            yield body[at:at + window]
            at, window = at + window, window * 2

    def takes_s(self, path):
        """A fetch on a connection of its own."""
        return 2 * ROUND_TRIP_S + self.thinks_s[path] + ROUND_TRIP_S * max(0, len(list(self.windows(path))) - 1)

    def kind(self, path):
        return {"html": "text/html", "css": "text/css", "js": "text/javascript"}.get(path.rsplit(".")[-1], "image/png")

    async def serve(self, reader, writer, requested):
        try:
            await asyncio.sleep(ROUND_TRIP_S)
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                path = head.split(b" ", 2)[1].decode()
                if path not in self.bodies:
                    writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                    continue
                requested[path] = requested.get(path, 0) + 1
                await asyncio.sleep(ROUND_TRIP_S + self.thinks_s[path])
                writer.write(
                    f"HTTP/1.1 200 OK\r\nContent-Type: {self.kind(path)}\r\nCache-Control: public, max-age=3600\r\n"
                    f"Last-Modified: Tue, 03 Nov 2026 10:00:00 GMT\r\nETag: \"{len(path)}-{len(self.bodies[path])}\"\r\n"
                    f"Content-Length: {len(self.bodies[path])}\r\n\r\n".encode())
                for number, window in enumerate(self.windows(path)):
                    if number:
                        await asyncio.sleep(ROUND_TRIP_S)
                    writer.write(window)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


def origin(pages, seed, address, tell):
    """A process: serves until it is told to stop, and then says how often each path was requested."""
    site, requested = Site(pages, seed), {}

    async def all_day():
        server = await asyncio.start_server(lambda r, w: site.serve(r, w, requested), *address, backlog=1024)
        tell.send("ready")
        await asyncio.get_running_loop().run_in_executor(None, tell.recv)
        server.close()

    try:
        asyncio.run(all_day())
    except KeyboardInterrupt:
        pass
    tell.send(requested)


def visits(site, seconds, chance):
    """What users request: (second, client, path), in order."""
    requests, start, client = [], 0.0, 0
    while (start := start + chance.expovariate(0.7)) < seconds:
        client += 1
        at, page, has = start, site.pages[int(len(site.pages) * chance.random() ** 2.5)], set()
        while at < seconds:
            if page not in has:
                requests.append((at, client, page))
                at += site.takes_s(page)
            has.add(page)
            # Read, laid out, and then what it is shown with, on as many connections as a browser has.
            free = [at + chance.uniform(0.03, 0.08)] * PARALLEL
            for path in site.shown[page]:
                if path not in has:
                    begin = heapq.heappop(free)
                    requests.append((begin, client, path))
                    heapq.heappush(free, begin + site.takes_s(path))
                    has.add(path)
            at = max(free) + chance.lognormvariate(math.log(3), 0.8)
            if chance.random() < 0.2:
                break
            page = chance.choice(site.links[page])
    return sorted(request for request in requests if request[0] < seconds)


def write_log(requests, path, host):
    with path.open("w") as log:
        for at, client, what in requests:
            ip = f"10.1.{client // 250}.{client % 250 + 1}"
            log.write(f"{1_790_000_000 + at:.3f} 0 {ip} TCP_MISS/200 1 GET http://{host}{what} - HIER_DIRECT/- -\n")


def command(options, site, work, origin_name, listen):
    """What sends the requests."""
    to = [options.assay, "replay", "--to", listen, "--quiet", "--host", origin_name]
    if options.forward:
        to.append("--forward")
    chance = random.Random(options.seed)
    if options.experiment == "reverse":
        log = work / "access.log"
        write_log(visits(site, options.seconds, chance), log, origin_name)
        return [*to, "--format", "squid", str(log)]
    urls = work / "urls"
    listed = chance.sample(site.pages, len(site.pages))
    urls.write_text("".join(f"http://{origin_name}{path}\n" for path in listed))
    # As many connections as the document's, for as many URLs: 1000 of two requests for 1054.
    connections = round(len(site.pages) * 1000 / 1054)
    return [*to, "--urls", "--connections", str(connections), "--per-connection", "2",
            "--rate", f"{connections / options.seconds:.3f}", str(urls)]


def evaluate(options, site, work, origin_name):
    """Runs it; the directory of the evaluation."""
    net = f"127.{random.randrange(120, 127)}.{random.randrange(1, 250)}"
    listen, directory = f"{net}.1:8080", work / "spe"
    words = [word for proxy in options.proxy for word in ("--proxy", proxy)]
    way = ["--forward"] if options.forward else ["--origin", origin_name]
    when = "--after" if options.after else "--at-once"
    spe = subprocess.Popen(
        [options.assay, "spe", "--listen", listen, *way, *words, when, "--text-log", "--dir", str(directory),
         "--memory", "64MB", "--disk", "200MB"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = []
    for line in spe.stderr:
        said.append(line)
        if line.startswith("ready"):
            break
    else:
        sys.exit("".join(said))
    threading.Thread(target=lambda: said.extend(spe.stderr), daemon=True).start()
    replay = subprocess.run(command(options, site, work, origin_name, listen), capture_output=True, text=True)
    print(replay.stdout or replay.stderr)
    spe.send_signal(signal.SIGINT)
    out, _ = spe.communicate(timeout=120)
    print("".join(said[-1:]), out)
    report = subprocess.run([options.assay, "spe", "report", str(directory)], capture_output=True, text=True)
    print(report.stdout or report.stderr)
    return directory


def responses(directory):
    """From the text log: target to [(milliseconds, client, url)], in order."""
    of = {}
    for line in (directory / "responses.log").open():
        if match := LINE.search(line):
            name, s1, us1, s2, us2, _, verdict, client, url = match.groups()
            if "," in verdict or verdict == "DUMMY,":
                taken = (int(s1) + int(s2)) * 1e3 + (int(us1) + int(us2)) / 1e3
                of.setdefault(name, []).append((taken, client, url))
    return of


def percent(share):
    return "–" if share is None else f"{share * 100:.2f}%"


def tables(directory, options):
    """The document's table, and what became of first requests."""
    summary = json.loads((directory / "summary.json").read_text())
    print("| Proxy name | Bytes sent | Bytes received | Resp. delivered | % resp. match | % not match | Mean lat. | Median lat. |")
    print("|---|---|---|---|---|---|---|---|")
    for row in summary["targets"]:
        name = "(direct)" if row["label"] == "direct" else row["label"]
        cells = [name, percent(row["bytes_sent_ratio"]), percent(row["bytes_received_ratio"])]
        cells += [percent(row[key]["value"]) for key in ("delivered_ratio", "matching", "not_matching")]
        cells += [f"{row['response_ms'][key]['value']:.1f} ms" for key in ("mean", "p50")]
        print("| " + " | ".join(cells) + " |")
    print("\n| Proxy name | first requests for pages | of these in the cache | Mean lat. | for what they show | of these in the cache "
          "| Mean lat. | later requests | Mean lat. |")
    print("|---|---|---|---|---|---|---|---|---|")
    of = responses(directory)
    for target in summary["targets"]:
        name = "Collector" if target["label"] == "direct" else target["label"]
        pages, shown, later, known = [], [], [], set()
        for taken, _, url in of[name]:
            (later if url in known else pages if url.endswith(".html") else shown).append(taken)
            known.add(url)
        cells = ["(direct)" if name == "Collector" else name]
        for kind in (pages, shown):
            hits = sum(taken < HIT_MS for taken in kind)
            cells += [len(kind), f"{hits} ({percent(hits / len(kind))})" if kind else "–", mean(kind)]
        print("| " + " | ".join(map(str, [*cells, len(later), mean(later)])) + " |")


def mean(taken):
    return f"{statistics.fmean(taken):.1f} ms" if taken else "–"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("assay")
    parser.add_argument("experiment", choices=["artificial", "reverse"])
    parser.add_argument("--proxy", action="append")
    parser.add_argument("--seconds", type=int, default=180)
    parser.add_argument("--pages", type=int)
    parser.add_argument("--after", action="store_true")
    parser.add_argument("--forward", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dir", type=pathlib.Path)
    options = parser.parse_args()
    is_artificial = options.experiment == "artificial"
    # The artificial list is in no order that users would follow: there is nothing to prefetch for.
    usual = FORWARD_PROXIES if options.forward else PROXIES
    options.proxy = options.proxy or [proxy for proxy in usual if not (is_artificial and ":" in proxy)]
    pages = options.pages or (1054 if is_artificial else 400)
    site = Site(pages, options.seed)
    address = (f"127.{random.randrange(100, 119)}.{random.randrange(1, 250)}.9", 8000)
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=origin, args=(pages, options.seed, address, theirs), daemon=True)
    server.start()
    ours.recv()
    with tempfile.TemporaryDirectory() as name:
        work = options.dir or pathlib.Path(name)
        work.mkdir(exist_ok=True)
        directory = evaluate(options, site, work, "%s:%d" % address)
        tables(directory, options)
    ours.send("stop")
    requested = ours.recv()
    print(f"\nthe origin got {sum(requested.values())} requests for {len(requested)} objects, at most {max(requested.values())} "
          "for one")


if __name__ == "__main__":
    main()
