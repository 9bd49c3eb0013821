"""Writes the benchmark page of the manual from the results of a run."""

import json
import os
import sys

from machine import HERE

sys.path.append(os.path.join(HERE, "scripts"))
import kept_json

RESULTS = os.path.join(HERE, "bench/results.json")
PAGE = os.path.join(HERE, "docs/reference/benchmarks.md")
TEXT = """# Benchmarks of Assay itself

A benchmark that is slower than what it measures measures itself. These are Assay's own costs beside those of other load
generators, servers and proxies, measured by `make bench` on loopback: servers have one processor, clients have another.
Both sides take turns in each round, ratios are made within rounds, and the table holds their median with the lowest and the
highest. Processor time is user and system time of all processes of a side, from their start to their end. Rows that miss what
the project wants say so.

Each table is one run on one machine, the latest on a processor of that kind. Ratios travel better than numbers, but not
unchanged: compare the tables, and on your machine, run it again. This page is written by `make bench`, not by hand.

{machines}

## What stands behind the rows

- *Robots* check every response: identity, version, length, every byte of the body, freshness. The others check nothing but,
  some of them, the status. All of them send requests to the same nginx, which has one worker and sends files from its cache.
- *A connection for each request* is held against a loop that connects, writes, reads and closes, and does nothing else.
- *Over TLS 1.3 and HTTP/2*: the same, with keys of P-256 and AES. Robots verify the server's certificate; wrk and h2load do not. `openssl s_time` makes
  handshakes one after the other, and requests nothing. With several streams there are 8 connections, each with so many requests at a time.
- *Switch* and *built-in proxy* with TLS in front pass requests on over HTTP/1.1 in the clear; wrk (HTTP/1.1) or h2load (HTTP/2) sends them.
- *Origins* make each body as it is requested; nginx sends the same bytes. *Forwarder* is the built-in caching proxy with
  responses that may not be stored.
- *15,000 in place of 100*: processor time of a request once all robots have their connections.
- *Memory each*: the difference between the resident memory of 15,000 robots and of 100, over their number. What the kernel
  holds for a connection is not in it.
- *Web Polygraph 4.9.0, apart*: it was measured once, on two processors of a virtual machine, with the same workload; its
  figures are good to about 15 %, and were not taken in these runs. What kind of processor it had is not on record, so that its
  times are a rough measure, as the tables show; of memory that does not matter. Both sides use both processors by turns there;
  here each has one. Through nginx's cache, nginx's disk counts as well: the fewer responses it sends at a time, the more often
  both sides have to be woken.
"""
MACHINE = """## {processor}

{processors} processors, {system}, {date}, Assay {assay}, {rounds} rounds of {seconds} s.

| what | against | ours | theirs | ratio | target | |
|---|---|---|---|---|---|---|
{lines}

{versions}"""


def figure(value):
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def line(row):
    ratio = f"**{row['median_ratio']:.2f}** ({row['least_ratio']:.2f} to {row['most_ratio']:.2f})" if row["theirs"] else ""
    theirs = figure(row["median_theirs"]) if row["theirs"] else ""
    met = "" if not row["target"] else ("met" if row["met"] else "**missed**")
    return (f"| {row['name']}, {row['unit']} | {row['against']} | {figure(row['median_ours'])} | {theirs} | {ratio} "
            f"| {row['target']} | {met} |")


def kept():
    """Results of all kinds of processors, the latest first."""
    if not os.path.exists(RESULTS):
        return []
    with open(RESULTS) as file:
        return json.load(file)


def keep(results):
    """These in place of those from a processor of the same kind."""
    others = [other for other in kept() if other["processor"] != results["processor"]]
    with open(RESULTS, "w") as file:
        file.write(kept_json.text([results, *others]) + "\n")


def machine(results):
    versions = "Versions: " + ", ".join(f"{name} {version}" for name, version in results["versions"].items()) + "."
    if results["absent"]:
        versions += f" Not there, and so not measured: {', '.join(results['absent'])}."
    return MACHINE.format_map({**results, "lines": "\n".join(map(line, results["rows"])), "versions": versions})


def write():
    with open(PAGE, "w") as file:
        file.write(TEXT.format(machines="\n\n".join(map(machine, kept()))))
