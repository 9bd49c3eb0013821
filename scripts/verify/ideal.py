"""The ideal hit ratio, from a cache of our own: once over the log of requests, and once as a real cache with no end."""

from checks import UNTOUCHED, Check, Row, equal, within
from recount import plain, through_our_proxy

# All kinds of requests that a cache treats in its own way, of objects that do not expire.
KINDS = """
Content C = { kind = "c"; mime = { type = "image/gif"; extensions = [".gif"]; }; size = exp(4KB); cachable = 80%; };
Server S = { kind = "s"; contents = [C]; direct_access = contents; xact_think = const(20ms); pconn_use_lmt = const(1000); addresses = ['10.1.0.1-2:80']; };
Robot R = { kind = "r"; req_rate = 4/sec; recurrence = 60%; interests = ["public": 80%, "private"]; pop_model = { pop_distr = popZipf(0.7); };
            req_types = ["Ims304": 10%, "Ims200": 10%, "Reload": 10%, "Basic"]; req_methods = ["HEAD": 15%, "GET"];
            pconn_use_lmt = const(1000); origins = S.addresses; addresses = ['10.2.0.1' ** 100]; };
Phase one = { name = "one"; goal.duration = 5sec; };
Phase two = { name = "two"; goal.duration = 5sec; };
schedule(one, two);
use(S, R);
"""
EXPIRING = "obj_life_cycle = { length = const(1day); variance = 0%; with_lmt = 100%; expires = [now + const(3sec)]; };"


def wants(lab):
    lab.want("kinds", KINDS, "--proxy", "builtin", "--no-pin")


def replay(xacts):
    """An infinite cache over the requests in the order of sending: per phase (hits, requests, hit bytes, bytes) of plain GETs.

    What RFC 9111 leaves to a cache is as the built-in proxy does it: a request for what is being fetched joins the fetch; a
    HEAD stores nothing; a GET stores the object, also one that must be validated, a reload, and one with a condition.
    """
    sizes = xacts[(xacts.method == "GET") & (xacts.status == 200)].groupby("object").body_bytes.max()
    stored, phases = set(), {}
    for x in xacts[xacts.sent_us.notna()].sort_values("sent_us", kind="stable").itertuples():
        hit = x.cachable and x.object in stored
        if x.method == "GET" and x.type == "basic":
            size = int(sizes[x.object])
            sums = phases.setdefault(x.phase, [0, 0, 0, 0])
            for place, more in enumerate((hit, 1, size if hit else 0, size)):
                sums[place] += more
        if x.cachable and x.method == "GET":
            stored.add(x.object)
    return phases


def ideal_rows(xacts, figures):
    """Requests of one microsecond may have been sent in either order: that is what 2 requests allow for."""
    rows = [equal("failed requests", 0, int(xacts.error.notna().sum()))]
    for phase, (hits, requests, hit_bytes, size) in replay(xacts).items():
        said = figures[phase]
        rows.append(
            within(
                f"phase {phase}, ideal DHR of {requests:,} requests",
                hits / requests,
                said["dhr"]["ideal"],
                2 / requests,
            )
        )
        rows.append(within(f"phase {phase}, ideal BHR", hit_bytes / size, said["bhr"]["ideal"], 0.002))
    return rows


def from_log(lab):
    run = lab.get("kinds")
    yield from ideal_rows(run.xacts, run.summary["phases"])


def as_cache(lab):
    for what, life, tolerance in (("staying", "", 0), ("expiring", EXPIRING, 0.01)):
        run, counts = through_our_proxy(lab, what, plain(life))
        yield from cache_rows(f"{what} objects", counts, run.summary["total"], tolerance)


def cache_rows(what, counts, total, tolerance):
    """`tolerance` for those that expire on their way: a request is sent a little before the cache sees it."""
    hits = counts.hits + counts.joined
    return [
        Row(f"{what}, errors", "0", str(total["errors"]["total"]), total["errors"]["total"] == 0),
        within(f"{what}, ideal DHR", hits / counts.requests, total["dhr"]["ideal"], tolerance + 2 / counts.requests),
        within(f"{what}, measured DHR", hits / counts.requests, total["dhr"]["measured"], 1e-6),
        within(f"{what}, ideal BHR", counts.hit_bytes / counts.bytes, total["bhr"]["ideal"], tolerance + 0.002),
    ]


# Self-tests: data that is right, and data that is wrong.


def test_from_log(lab):
    import pandas as pd

    columns = ["phase", "method", "type", "object", "cachable", "sent_us", "status", "body_bytes", "error"]
    xacts = pd.DataFrame(
        [
            (0, "GET", "basic", 1, True, 10, 200, 100, None),
            (0, "HEAD", "basic", 2, True, 20, 200, 0, None),
            (0, "GET", "basic", 1, True, 30, 200, 100, None),
            (0, "GET", "basic", 2, True, 40, 200, 300, None),
            (0, "GET", "ims304", 3, True, 50, 304, 0, None),
            (0, "GET", "basic", 3, True, 60, 200, 500, None),
            (0, "GET", "basic", 4, False, 70, 200, 100, None),
            (0, "GET", "basic", 4, False, 80, 200, 100, None),
        ],
        columns=columns,
    )
    xacts = pd.concat([xacts] * 3, ignore_index=True)
    xacts["object"] += 10 * (xacts.index // 8)
    figures = [{"dhr": {"ideal": 2 / 6}, "bhr": {"ideal": 600 / 1200}}]
    yield UNTOUCHED, ideal_rows(xacts, figures)
    yield "hits on what may not be stored", ideal_rows(xacts, [{"dhr": {"ideal": 3 / 6}, "bhr": {"ideal": 600 / 1200}}])
    yield "HEAD stores", ideal_rows(xacts, [{"dhr": {"ideal": 3 / 6}, "bhr": {"ideal": 900 / 1200}}])
    yield "bytes of other objects", ideal_rows(xacts, [{"dhr": {"ideal": 2 / 6}, "bhr": {"ideal": 603 / 1200}}])
    yield "a request failed", ideal_rows(xacts.assign(error=["reset"] + [None] * 23), figures)


def test_as_cache(lab):
    from proxy import ProxyCounts

    counts = ProxyCounts(requests=1000, hits=400, joined=10, misses=590, bytes=100_000, hit_bytes=40_000)
    total = {"errors": {"total": 0}, "dhr": {"ideal": 0.41, "measured": 0.41}, "bhr": {"ideal": 0.4}}
    yield UNTOUCHED, cache_rows("test", counts, total, 0)
    yield (
        "ideal 0.5 points too high",
        cache_rows("test", counts, total | {"dhr": {"ideal": 0.415, "measured": 0.41}}, 0),
    )
    yield "a hit measured too many", cache_rows("test", counts, total | {"dhr": {"ideal": 0.41, "measured": 0.411}}, 0)


CHECKS = [
    Check(
        "ideal-log",
        "The ideal hit ratio is what an infinite cache would have hit of the requests that were sent.",
        "a cache of 20 lines of Python over xacts.parquet: plain, HEAD, conditional requests, reloads",
        "assay run --xact-log",
        from_log,
        test_from_log,
        wants,
    ),
    Check(
        "ideal-cache",
        "A real cache with no end reaches the ideal hit ratio, with and without expiry.",
        "a caching proxy in Python (RFC 9111, no limit) counts its own hits",
        "assay run --proxy HOST:PORT",
        as_cache,
        test_as_cache,
    ),
]
