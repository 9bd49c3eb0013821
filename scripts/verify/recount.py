"""Every figure of a summary counted again: from the tables, and from the log of single requests.

`crates/run/report/tests/recompute.py` goes from Assay's own sums (robots.parquet, histograms.parquet …) to the summary. That would not
find a sum that is wrong already. So this goes from xacts.parquet, where each request has a row with its instants, to the
same figures; and through a proxy of our own (proxy.py), which knows what it responded and which bodies it corrupted.
"""

import math
import socket
import subprocess
import sys

import numpy as np

from checks import UNTOUCHED, Check, Row, equal, summed_up, within
from lab import ROOT
from proxy import Proxy

RECOMPUTE = ROOT / "crates/run/report/tests/recompute.py"

# Pages, mixed request types and methods, and a cache that is too small for all of it.
MIXED = """
ObjLifeCycle olc = { length = const(1day); variance = 33%; with_lmt = 100%; expires = [now + const(2sec): 30%, nmt + const(0sec)]; };
Content cntPart = { kind = "part"; mime = { type = "image/gif"; extensions = [".gif"]; }; size = exp(9KB); obj_life_cycle = olc; cachable = 80%; };
Content cntPage = { kind = "page"; mime = { type = "text/html"; extensions = [".html"]; }; size = exp(8KB); obj_life_cycle = olc; cachable = 90%;
                    may_contain = [cntPart]; embedded_obj_cnt = zipf(5); };
Server S = { kind = "s"; contents = [cntPage: 40%, cntPart]; direct_access = contents; xact_think = norm(20ms, 5ms);
             pconn_use_lmt = const(100); addresses = ['10.1.0.1:80']; };
Robot R = { kind = "r"; req_rate = 2/sec; recurrence = 70%; embed_recur = 100%; pop_model = { pop_distr = popZipf(0.8); };
            interests = ["public": 80%, "private"]; req_types = ["Ims304": 10%, "Ims200": 5%, "Reload": 5%, "Basic"];
            req_methods = ["HEAD": 10%, "GET"]; pconn_use_lmt = const(100); open_conn_lmt = 6;
            origins = S.addresses; addresses = ['10.2.0.1' ** 100]; };
Phase one = { name = "one"; goal.duration = 6sec; };
Phase two = { name = "two"; goal.duration = 6sec; };
schedule(one, two);
use(S, R);
"""

# Robots with one connection each, with more requests than a server that thinks for 0.3 s can serve: many are never sent.
WAITING = """
Content C = { kind = "c"; mime = { type = "image/gif"; extensions = [".gif"]; }; size = exp(2KB); cachable = 80%; };
Server S = { kind = "s"; contents = [C]; direct_access = contents; xact_think = const(300ms); pconn_use_lmt = const(100); addresses = ['10.1.0.1:80']; };
Robot R = { kind = "r"; req_rate = 4/sec; recurrence = 40%; pop_model = { pop_distr = popUnif(); }; open_conn_lmt = 1;
            pconn_use_lmt = const(100); origins = S.addresses; addresses = ['10.2.0.1' ** 40]; };
Phase one = { name = "one"; goal.duration = 6sec; };
Phase two = { name = "two"; goal.duration = 6sec; };
schedule(one, two);
use(S, R);
"""

# Plain GETs of one kind of object that does not expire (unless it is given a life cycle).
PLAIN = """
Content C = { kind = "c"; mime = { type = "image/gif"; extensions = [".gif"]; }; size = exp(6KB); cachable = 75%; LIFE };
Server S = { kind = "s"; contents = [C]; direct_access = contents; pconn_use_lmt = const(1000); addresses = ['10.1.0.1:80']; };
Robot R = { kind = "r"; req_rate = 4/sec; recurrence = 70%; interests = ["public": 85%, "private"]; pop_model = { pop_distr = popZipf(0.7); };
            pconn_use_lmt = const(1000); origins = S.addresses; addresses = ['10.2.0.1' ** 50]; };
Phase one = { name = "one"; goal.duration = 10sec; };
schedule(one);
use(S, R);
"""


def plain(life=""):
    return PLAIN.replace("LIFE", life)


SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}


def wants(lab):
    lab.want("mixed", MIXED, "--proxy", "builtin", "--memory", "1MB", "--disk", "0", "--no-pin")
    lab.want("waiting", WAITING, "--proxy", "builtin", "--no-pin")


def percentiles(times_us):
    """In milliseconds, by rank: the smallest time that so large a share does not exceed."""
    ordered = np.sort(times_us)
    if not len(ordered):
        return {"count": 0, "mean": None, "max": None} | dict.fromkeys(SHARES)
    at = {name: ordered[math.ceil(share * len(ordered)) - 1] / 1000 for name, share in SHARES.items()}
    return at | {"count": len(ordered), "mean": ordered.mean() / 1000, "max": ordered[-1] / 1000}


def times_rows(what, times_us, summary):
    """Percentiles are bucket ends, 0.1 % wide at most; instants in the log are rounded to a microsecond each."""
    ours = percentiles(times_us)
    exact = [equal(f"{what}.count", ours["count"], summary["count"])]
    return exact + [
        within(f"{what}.{name}", ours[name], summary[name], 0.002 + 0.001 * (ours[name] or 0))
        for name in ("mean", "p50", "p90", "p99", "p999", "max")
    ]


def figures_rows(xacts, phase_end_ms, figures, hidden):
    """Rows of one phase. `hidden` are hits that the origin says were validations: (number, bytes), from origins.parquet."""
    x = xacts
    done = x[x.error.isna() & x.last_byte_us.notna()]
    unsent = x[x.sent_us.isna() & x.error.isna()]
    basic = done[(done.method == "GET") & (done.type == "basic")]
    due_basic = x[(x.method == "GET") & (x.type == "basic")]
    hits = basic[basic.outcome.isin(["hit", "collapsed"])]
    share = lambda part, whole: round(part / whole, 6) if whole else None
    counts = lambda of: {str(k): int(v) for k, v in of.value_counts().items()}
    rows = [
        equal("due", len(x) + figures["not_reached"], figures["due"]),
        equal("requests", int(x.sent_us.notna().sum()), figures["requests"]),
        equal("unsent", len(unsent), figures["unsent"]),
        equal("completed", len(done), figures["completed"]),
        equal("basic", len(basic), figures["basic"]),
        equal("by_method", counts(done.method), figures["by_method"]),
        equal("by_type", counts(done.type), figures["by_type"]),
        equal("by_status", counts(done.status.astype(int)), figures["by_status"]),
        equal("errors", counts(x.error), figures["errors"]["by_kind"]),
        within("dhr.measured", share(len(hits) - hidden[0], len(basic)), figures["dhr"]["measured"], 2e-6),
        within(
            "bhr.measured",
            share(int(hits.body_bytes.sum()) - hidden[1], int(basic.body_bytes.sum())),
            figures["bhr"]["measured"],
            2e-6,
        ),
        equal(
            "outcomes",
            {"hit and collapsed": len(hits) - hidden[0], "miss": int((basic.outcome == "miss").sum())},
            {
                "hit and collapsed": figures["outcomes"]["hit"] + figures["outcomes"]["collapsed"],
                "miss": figures["outcomes"]["miss"],
            },
        ),
    ]
    if not figures["not_reached"]:
        offered = due_basic.revisit & due_basic.cachable
        rows.append(within("dhr.offered", share(int(offered.sum()), len(due_basic)), figures["dhr"]["offered"], 2e-6))
        if not len(unsent) and not figures["errors"]["total"]:
            sizes = due_basic.body_bytes
            rows.append(
                within(
                    "bhr.offered", share(int(sizes[offered].sum()), int(sizes.sum())), figures["bhr"]["offered"], 2e-6
                )
            )
    return rows + clock_rows(x, done, unsent, phase_end_ms, figures)


# A response time begins so many microseconds, at most, after the request was due, if it was sent later than it could have been.
BEGUN_LATE_US = 50


def response_us(done):
    """Response times of requests that completed."""
    could_be_sent_us = done[["due_us", "ready_us"]].max(axis=1)
    begun_us = done.due_us + (done.sent_us - could_be_sent_us).clip(0, BEGUN_LATE_US)
    return (done.last_byte_us - begun_us).to_numpy(float)


def clock_rows(x, done, unsent, phase_end_ms, figures):
    """Times of what completed; and of all, where what was not sent counts with how long it had waited when its phase ended.
    That is the least it can have taken: a percentile that depends on it is a lower bound, and must say so."""
    response, times = response_us(done), figures["response_time_ms"]
    every, completed = times["all"], times["completed"]
    waits = (phase_end_ms * 1000 - unsent.due_us).to_numpy(float)
    rows = times_rows("response of completed", response, completed)
    rows += times_rows("response of all", np.concatenate([response, waits]), every)
    rows += times_rows(
        "service", (done.last_byte_us - done.sent_us).to_numpy(float), figures["service_time_ms"]["completed"]
    )
    rows += times_rows("ttfb", (done.first_byte_us - done.sent_us).to_numpy(float), figures["ttfb_ms"]["completed"])
    found = sorted(set(every.get("at_least", [])) & SHARES.keys())
    rows.append(equal("percentiles that are lower bounds", sorted(lower_bounds(response, waits)), found))
    return rows


def lower_bounds(ended, waits):
    """Names of percentiles that would be higher if what waits waited forever."""
    lowest, highest = (
        np.sort(np.concatenate([ended, waits])),
        np.sort(np.concatenate([ended, np.full(len(waits), np.inf)])),
    )
    ranks = {name: math.ceil(share * len(lowest)) - 1 for name, share in SHARES.items()}
    # Percentiles are told to 0.1 %: what differs by less is the same.
    return [name for name, rank in ranks.items() if highest[rank] > lowest[rank] * 1.001]


def by_outcome_rows(xacts, figures):
    """Times of hits and of misses are those of all requests with that outcome, whatever their method and type."""
    done = xacts[xacts.error.isna() & xacts.last_byte_us.notna()]
    rows = []
    for name in ("hit", "miss"):
        chosen = done[done.outcome == name]
        times = response_us(chosen)
        rows += times_rows(f"response of {name}", times, figures["response_time_ms"][name])
    return rows


def hidden_of(run, phase):
    """As docs/reference/run-directory.md has it: 304s for basic requests at the origin, beyond those that responses showed."""
    origins, robots = run.table("origins"), run.table("robots")
    o, r = origins[origins.phase == phase].sum(), robots[robots.phase == phase].sum(numeric_only=True)
    number = min(max(o.validated_basic - r.revalidated, 0), r.hits + r.collapsed)
    return int(number), int(min(max(o.validated_basic_bytes - r.revalidated_bytes, 0), r.hit_bytes + r.collapsed_bytes))


def phases(run):
    """Of a run: (number, its requests, when it ended, its figures)."""
    for number, figures in enumerate(run.summary["phases"]):
        yield number, run.xacts[run.xacts.phase == number], run.info["phases"][number]["end_ms"], figures


def from_xacts(lab):
    for name in ("mixed", "waiting"):
        run = lab.get(name)
        for number, xacts, end_ms, figures in phases(run):
            what = f"{name}, phase {number}, {len(xacts):,} requests"
            yield summed_up(what, figures_rows(xacts, end_ms, figures, hidden_of(run, number)))


def by_outcome(lab):
    for number, xacts, _, figures in phases(lab.get("mixed")):
        yield summed_up(f"mixed, phase {number}", by_outcome_rows(xacts, figures))


def from_tables(lab):
    for name in ("mixed", "waiting"):
        said = subprocess.run([sys.executable, RECOMPUTE, lab.get(name).path], capture_output=True, text=True)
        first, *differences = said.stdout.splitlines() or [said.stderr.strip()[-200:]]
        holds = said.returncode == 0 and first.endswith(" 0 differ")
        yield Row(f"{name}, figures of the summary", "0 differ", "; ".join([first, *differences[:3]]), holds)


def through_our_proxy(lab, name, workload, **what):
    """A run through our own proxy: the run, and what the proxy says that it did."""
    origin = free_address()
    proxy = Proxy(origin, **what)
    try:
        run = lab.now(name, workload, "--proxy", proxy.address, "--origin-listen", origin, "--no-pin")
    finally:
        proxy.close()
    return run, proxy.counts


def corrupted(lab):
    """Through our own proxy, which corrupts every 40th body."""
    run, counts = through_our_proxy(lab, "corrupted", plain(), corrupt_every=40)
    yield from proxy_rows(counts, run.summary["total"])


def proxy_rows(counts, total):
    outcomes = total["outcomes"]
    hits = counts.hits + counts.joined
    return [
        equal("requests that the proxy got", counts.requests, total["requests"]),
        equal("bodies with one wrong bit", {"wrong_bytes": counts.corrupted}, total["errors"]["by_kind"]),
        equal("hits, without corrupted ones", hits, outcomes["hit"] + outcomes["collapsed"]),
        equal("misses, without corrupted ones", counts.misses, outcomes["miss"]),
        within("measured DHR", round(hits / (hits + counts.misses), 6), total["dhr"]["measured"], 2e-6),
        within("measured BHR", round(counts.hit_bytes / counts.bytes, 6), total["bhr"]["measured"], 2e-6),
    ]


def free_address():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return "127.0.0.1:{}".format(listener.getsockname()[1])


# Self-tests: data that is right, and data that is wrong.


def six_requests():
    """Six requests of a phase that ended at 1 s, and what a summary says of them, worked out by hand."""
    import pandas as pd

    columns = [
        "method",
        "type",
        "cachable",
        "revisit",
        "due_us",
        "sent_us",
        "first_byte_us",
        "last_byte_us",
        "outcome",
        "error",
        "status",
        "body_bytes",
    ]
    none = float("nan")
    xacts = pd.DataFrame(
        [
            ("GET", "basic", True, False, 0, 100, 5_000, 10_000, "miss", None, 200, 1000),
            ("GET", "basic", True, True, 100_000, 100_000, 101_000, 102_000, "hit", None, 200, 3000),
            ("GET", "ims304", True, True, 200_000, 200_000, 203_000, 204_000, "hit", None, 304, 0),
            ("GET", "basic", False, False, 300_000, 300_000, 306_000, 306_000, "miss", None, 200, 2000),
            ("GET", "basic", True, True, 400_000, 400_000, 408_000, 408_000, None, "wrong_bytes", 200, 500),
            ("GET", "basic", True, True, 500_000, none, none, none, None, None, none, 0),
        ],
        columns=columns,
    )
    xacts["ready_us"] = xacts.due_us
    times = lambda count, mean, p50, p90: {
        "count": count,
        "mean": mean,
        "p50": p50,
        "p90": p90,
        "p99": p90,
        "p999": p90,
        "max": p90,
    }
    figures = {
        "due": 6,
        "requests": 5,
        "unsent": 1,
        "completed": 4,
        "basic": 3,
        "not_reached": 0,
        "by_method": {"GET": 4},
        "by_type": {"basic": 3, "ims304": 1},
        "by_status": {"200": 3, "304": 1},
        "errors": {"total": 1, "by_kind": {"wrong_bytes": 1}},
        "outcomes": {"hit": 1, "collapsed": 0, "miss": 2},
        "dhr": {"measured": 0.333333, "offered": 0.6},
        "bhr": {"measured": 0.5},
        "response_time_ms": {
            "completed": times(4, 5.4875, 4.0, 9.95),
            "hit": times(2, 3.0, 2.0, 4.0),
            "miss": times(2, 7.975, 6.0, 9.95),
            "all": times(5, 104.39, 6.0, 500.0) | {"at_least": ["mean", "p90", "p99", "p999", "max"]},
        },
        "service_time_ms": {"all": {}, "completed": times(4, 5.475, 4.0, 9.9)},
        "ttfb_ms": {"all": {}, "completed": times(4, 3.725, 3.0, 6.0)},
    }
    return xacts, figures


def test_from_xacts(lab):
    xacts, figures = six_requests()
    judge = lambda x: figures_rows(x, 1000, figures, (0, 0))
    yield UNTOUCHED, judge(xacts)
    yield "a request is missing", judge(xacts.drop(index=3))
    yield "a hit becomes a miss", judge(xacts.assign(outcome=["miss", "miss", "hit", "miss", None, None]))
    yield "a last byte comes half a per cent later", judge(xacts.assign(last_byte_us=xacts.last_byte_us * [1.005] + 0))
    yield (
        "the unsent request waited 1 ms less",
        judge(xacts.assign(due_us=xacts.due_us.mask(xacts.sent_us.isna(), 501_000))),
    )
    bounds = figures["response_time_ms"]["all"] | {"at_least": ["mean", "p99", "p999", "max"]}
    told = figures | {"response_time_ms": figures["response_time_ms"] | {"all": bounds}}
    yield "p90 is not called a lower bound", figures_rows(xacts, 1000, told, (0, 0))
    yield "one body byte more", judge(xacts.assign(body_bytes=[1001, 3000, 0, 2000, 500, 0]))


def test_by_outcome(lab):
    xacts, figures = six_requests()
    yield UNTOUCHED, by_outcome_rows(xacts, figures)
    alone = dict(figures["response_time_ms"]["hit"], count=1, mean=2.0, p90=2.0, p99=2.0, p999=2.0, max=2.0)
    only_basic = figures | {"response_time_ms": figures["response_time_ms"] | {"hit": alone}}
    yield "only basic hits are counted as hits", by_outcome_rows(xacts, only_basic)


def test_from_tables(lab):
    wants(lab)
    run = lab.get("waiting")
    yield UNTOUCHED, list(from_tables(lab))
    summary = run.path / "summary.json"
    kept = summary.read_text()
    summary.write_text(kept.replace('"completed": ', '"completed": 1', 1))
    try:
        yield "a digit before a count", list(from_tables(lab))
    finally:
        summary.write_text(kept)


def test_corrupted(lab):
    from proxy import ProxyCounts

    counts = ProxyCounts(requests=10, hits=4, joined=1, misses=4, bytes=900, hit_bytes=500, corrupted=1)
    total = {
        "requests": 10,
        "errors": {"by_kind": {"wrong_bytes": 1}},
        "outcomes": {"hit": 4, "collapsed": 1, "miss": 4},
        "dhr": {"measured": 0.555556},
        "bhr": {"measured": 0.555556},
    }
    yield UNTOUCHED, proxy_rows(counts, total)
    yield "a wrong body was not seen", proxy_rows(counts, total | {"errors": {"by_kind": {}}})
    yield "a hit too many", proxy_rows(counts, total | {"outcomes": {"hit": 5, "collapsed": 1, "miss": 3}})


CHECKS = [
    Check(
        "recount-xacts",
        "Requests, outcomes, errors, DHR, BHR and percentiles of the summary are those of the single requests.",
        "xacts.parquet counted with pandas; percentiles by rank, of what was not sent from its phase's end",
        "assay run --xact-log",
        from_xacts,
        test_from_xacts,
        wants,
    ),
    Check(
        "recount-outcomes",
        "Times of hits and misses are those of all requests with that outcome.",
        "the same, by `outcome`, whatever the method and type",
        "assay run --xact-log",
        by_outcome,
        test_by_outcome,
        wants,
    ),
    Check(
        "recount-tables",
        "Every figure of the summary follows from the tables.",
        "crates/run/report/tests/recompute.py (pandas) over two runs",
        "assay run",
        from_tables,
        test_from_tables,
        wants,
    ),
    Check(
        "corrupted-bodies",
        "Each wrong byte is found, and hits are told without asking the proxy.",
        "a caching proxy written in Python that corrupts every 40th body and counts what it does",
        "assay run --proxy HOST:PORT",
        corrupted,
        test_corrupted,
    ),
]
