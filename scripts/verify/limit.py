"""`assay run --find-peak` against targets whose limit is known: a proxy in Python that gives each request a token, and refuses
those that find none.
"""

import numpy as np

from checks import UNTOUCHED, Check, Row, equal
from proxy import Bucket, Proxy
from recount import free_address

PROMISE, MOST_ERRORS = "errors < 5%", 0.05
DEPTH = 5  # tokens: so few that it does not matter how many were there when a step began
LIMITS = (120, 260)  # tokens per second
NEAR = 0.03
ROBOTS = 40
WORKLOAD = f"""
Content C = {{ kind = "c"; mime = {{ type = "image/gif"; extensions = [".gif"]; }}; size = const(1KB); cachable = 50%; }};
Server S = {{ kind = "s"; contents = [C]; direct_access = contents; addresses = ['10.0.0.1:80']; pconn_use_lmt = const(1000000); }};
Robot R = {{ kind = "r"; origins = S.addresses; req_rate = 5/sec; recurrence = 100%; pconn_use_lmt = const(1000000);
            pop_model = {{ pop_distr = popUnif(); }}; addresses = ['10.0.1.1' ** {ROBOTS}]; }};
Phase only = {{ name = "only"; goal.duration = 5sec; }};
schedule(only);
use(S, R);
"""


def refused_share(rate_per_s, limit_per_s, count=60_000):
    """Of Poisson arrivals, in virtual time."""
    times = np.cumsum(np.random.default_rng(2).exponential(1 / rate_per_s, count))
    bucket = Bucket(limit_per_s, DEPTH)
    return 1 - sum(bucket.take(at) for at in times) / count


def true_limit(limit_per_s):
    """The rate at which as many are refused as the promise just allows."""
    low, high = 0.8 * limit_per_s, 1.3 * limit_per_s
    for _ in range(10):
        middle = (low + high) / 2
        low, high = (middle, high) if refused_share(middle, limit_per_s) < MOST_ERRORS else (low, middle)
    return (low + high) / 2


def peak_rows(name, truth, peak):
    """The interval must hold the truth (one of 95 % misses it now and then, by little: by NEAR at most), and tell something."""
    low, high, found = peak["low_per_s"], peak["high_per_s"], peak["peak_per_s"]
    known = None not in (low, high, found)
    # On a machine that is too busy to measure on, the search says so of each step, and cannot be expected to be close.
    undecided = sum(step["outcome"] == "undecided" for step in peak["steps"])
    busy = 2 * undecided > len(peak["steps"])
    yield Row(
        f"{name}, interval of the limit",
        f"with {truth:.0f}/s in it, ± {NEAR:.0%}",
        f"{low:.0f} to {high:.0f}" if known else "unknown",
        bool(known and low * (1 - NEAR) <= truth <= high * (1 + NEAR)),
    )
    yield Row(
        f"{name}, its width",
        "at most a fifth of the limit, or most steps undecided",
        f"{high - low:.0f}, {undecided} of {len(peak['steps'])} undecided" if known else "unknown",
        bool(known and (busy or high - low <= truth / 5)),
    )
    yield Row(
        f"{name}, highest rate that was kept",
        f"within 15 % of {truth:.0f}/s",
        f"{found:.0f}" if known else "none",
        bool(known and abs(found / truth - 1) <= 0.15),
    )
    far = [step for step in peak["steps"] if step["offered_per_s"] > 1.25 * truth and step["outcome"] == "kept"]
    yield equal(f"{name}, steps far above the limit that were called kept", 0, len(far))


def limits(lab):
    lab.wait()  # this measures
    for limit_per_s in LIMITS:
        origin = free_address()
        proxy = Proxy(origin, bucket=Bucket(limit_per_s, DEPTH))
        name = f"peak-{limit_per_s}"
        try:
            run = lab.now(
                name,
                WORKLOAD,
                "--proxy",
                proxy.address,
                "--origin-listen",
                origin,
                "--find-peak",
                PROMISE,
                "--peak-from",
                100,
                "--peak-warm",
                "2s",
                "--peak-step",
                "3s",
                "--rehearse",
                "200s",
                limit_s=300,
            )
        finally:
            proxy.close()
        yield from peak_rows(f"{limit_per_s} tokens/s", true_limit(limit_per_s), run.json("peak"))


def test_limits(lab):
    peak = {
        "low_per_s": 120.0,
        "high_per_s": 130.0,
        "peak_per_s": 124.0,
        "steps": [{"offered_per_s": 200.0, "outcome": "broken"}],
    }
    yield UNTOUCHED, list(peak_rows("test", 126.0, peak))
    yield "an interval beside it", list(peak_rows("test", 126.0, peak | {"low_per_s": 131.0, "high_per_s": 140.0}))
    yield "an interval that says nothing", list(peak_rows("test", 126.0, peak | {"low_per_s": 1.0}))
    most_undecided = peak["steps"] + 2 * [{"offered_per_s": 200.0, "outcome": "undecided"}]
    yield UNTOUCHED, list(peak_rows("test", 126.0, peak | {"low_per_s": 50.0, "steps": most_undecided}))
    yield "no limit", list(peak_rows("test", 126.0, peak | {"peak_per_s": None}))
    yield (
        "kept far above",
        list(peak_rows("test", 126.0, peak | {"steps": [{"offered_per_s": 200.0, "outcome": "kept"}]})),
    )


CHECKS = [
    Check(
        "peak-limit",
        "The search for a limit finds the one that is there.",
        f"token buckets in Python with {LIMITS[0]} and {LIMITS[1]} tokens per second; the rate at which 5 % are refused, from Poisson arrivals "
        "in virtual time",
        f"assay run --find-peak '{PROMISE}'",
        limits,
        test_limits,
    ),
]
