"""`assay logs` against counts of our own, over logs that are written here, line by line, from known requests."""

import collections
import json
import math
import random

from checks import UNTOUCHED, Check, equal, summed_up, within

LINES, URLS = 120_000, 12_000  # up to 20,000 different texts are counted exactly
BEGIN_S = 1_750_000_000
LRU_MB = 20
OUTCOMES = {  # Squid's words: class of docs/reference/logs.md
    "TCP_MEM_HIT": "memory-hit",
    "TCP_HIT": "disk-hit",
    "TCP_IMS_HIT": "hit",
    "TCP_REFRESH_UNMODIFIED": "revalidated",
    "TCP_MISS": "miss",
    "TCP_DENIED": "denied",
}
LOCAL_HITS = {"memory-hit", "disk-hit", "hit", "joined"}
Request = collections.namedtuple("Request", "at_s ms client outcome status bytes method url type")


def requests():
    """Requests with popular and rare objects; an object is always of the same size, and so is its response."""
    rng = random.Random(4)
    objects = [
        (
            f"http://h{rng.randrange(40)}.example/{'img' if number % 2 else 'doc'}/{number}",
            int(rng.lognormvariate(9, 1)) + 50,
            "image/png" if number % 2 else "text/html",
        )
        for number in range(URLS)
    ]
    weights = [1 / (rank + 1) ** 0.7 for rank in range(URLS)]
    at_s = float(BEGIN_S)
    for url, size, kind in rng.choices(objects, weights, k=LINES):
        at_s += rng.expovariate(50)
        outcome = rng.choices(list(OUTCOMES), (20, 15, 5, 5, 50, 5))[0]
        status = 403 if outcome == "TCP_DENIED" else rng.choices((200, 304, 404), (85, 10, 5))[0]
        method = "POST" if outcome == "TCP_MISS" and rng.random() < 0.05 else "GET"
        yield Request(
            round(at_s, 3),
            int(rng.lognormvariate(3, 1.2)),
            f"10.0.{rng.randrange(8)}.{rng.randrange(250)}",
            outcome,
            status,
            400 if status in (304, 403) else size,
            method,
            url,
            kind,
        )


def squid_line(r):
    peer = "HIER_DIRECT/192.0.2.1" if r.outcome in ("TCP_MISS", "TCP_REFRESH_UNMODIFIED") else "HIER_NONE/-"
    return f"{r.at_s:.3f} {r.ms:6} {r.client} {r.outcome}/{r.status} {r.bytes} {r.method} {r.url} - {peer} {r.type}\n"


# Our own counts.


def figures(of):
    """Counts, ratios, mean and longest time; percentiles by rank."""
    of, n = list(of), len(of)
    hits = [r for r in of if OUTCOMES[r.outcome] in LOCAL_HITS]
    size = sum(r.bytes for r in of)
    times = sorted(r.ms for r in of)
    return {
        "requests": n,
        "bytes": size,
        "local_hits": len(hits),
        "revalidated": sum(OUTCOMES[r.outcome] == "revalidated" for r in of),
        "dhr": len(hits) / n,
        "bhr": sum(r.bytes for r in hits) / size if size else None,
        "mean_ms": sum(times) / n,
        "max_ms": times[-1],
        **{
            name: times[math.ceil(share * n) - 1]
            for name, share in {"p50_ms": 0.5, "p90_ms": 0.9, "p99_ms": 0.99}.items()
        },
    }


def figure_rows(name, ours, said, within_share):
    said = said | said["response"]
    rows = [equal(f"{name}.{key}", ours[key], said[key]) for key in ("requests", "bytes", "local_hits", "revalidated")]
    rows += [
        within(f"{name}.{key}", ours[key], said[key], 1e-9 + 1e-9 * (ours[key] or 0))
        for key in ("dhr", "bhr", "mean_ms", "max_ms")
    ]
    return rows + [
        within(f"{name}.{key}", ours[key], said[key], ours[key] * within_share + 1e-3)
        for key in ("p50_ms", "p90_ms", "p99_ms")
    ]


def by(of, key):
    groups = collections.defaultdict(list)
    for r in of:
        groups[key(r)].append(r)
    return groups


def lru(of, capacity=math.inf):
    """What a cache of so many bytes would have hit: (share of requests, share of bytes). Last used goes last."""
    kept, used, hits, hit_bytes = collections.OrderedDict(), 0, 0, 0
    for r in of:
        if r.method != "GET" or r.status not in (200, 304, 404):
            continue
        if r.url in kept:
            kept.move_to_end(r.url)
            hits, hit_bytes = hits + 1, hit_bytes + r.bytes
        elif r.status != 304 and r.bytes <= capacity:
            kept[r.url] = r.bytes
            used += r.bytes
            while used > capacity:
                used -= kept.popitem(last=False)[1]
    return hits / len(of), hit_bytes / sum(r.bytes for r in of)


def document_rows(of, document):
    """All that a document says of a log."""
    groups = {grouping["by"]: {g["name"]: g["figures"] for g in grouping["groups"]} for grouping in document["groups"]}
    yield summed_up("the whole log", figure_rows("all", figures(of), document["all"], 0.016))
    plain = [r for r in of if r.method == "GET" and r.status == 200]
    yield summed_up("plain GETs", figure_rows("plain", figures(plain), document["plain"], 0.016))
    classes = {c["class"]: c["figures"] for c in document["by_class"]}
    keys = {
        "method": lambda r: r.method,
        "status": lambda r: str(r.status),
        "content-type": lambda r: r.type,
        "outcome": lambda r: r.outcome,
        "host": lambda r: r.url.split("/")[2],
    }
    yield group_row("class", by(of, lambda r: OUTCOMES[r.outcome]), classes, 0.001)
    for name, key in keys.items():
        yield group_row(name, by(of, key), groups[name], 0.016)
    steps = by(of, lambda r: r.at_s * 1000 // document["every_ms"] * document["every_ms"])
    yield group_row("step in time", steps, {step["from_unix_ms"]: step["figures"] for step in document["time"]}, 0.016)
    said = document["distinct"]
    yield equal(
        "different URLs, hosts, clients",
        tuple(len({key(r) for r in of}) for key in (lambda r: r.url, keys["host"], lambda r: r.client)),
        tuple(int(said[k]["count"]) for k in ("urls", "hosts", "clients")),
    )
    counts = collections.Counter(r.url for r in of)
    top = [(row["url"], row["requests"]) for row in document["top"]["by_requests"]]
    yield equal("requests of the ten most popular URLs", [n for _, n in counts.most_common(10)], [n for _, n in top])
    yield equal("and these are theirs", [counts[url] for url, _ in top], [n for _, n in top])
    failed = collections.Counter((r.status, r.url) for r in of if r.status >= 400)
    said = {(s["status"], u["url"]): u["requests"] for s in document["failed"]["by_status"] for u in s["urls"]}
    yield equal("requests of URLs that failed, by status", [failed[key] for key in said], [*said.values()])
    most = {status: max(n for (own, _), n in failed.items() if own == status) for status, _ in failed}
    first = {s["status"]: s["urls"][0]["requests"] for s in document["failed"]["by_status"]}
    yield equal("the most of each status", most, first)


def group_row(name, ours, said, within_share):
    if ours.keys() != said.keys():
        return equal(f"names by {name}", sorted(map(str, ours)), sorted(map(str, said)))
    rows = [row for key, of in ours.items() for row in figure_rows(str(key), figures(of), said[key], within_share)]
    return summed_up(f"by {name}, {len(ours)} groups", rows)


def cache_rows(of, document):
    """With as many objects as here, all are followed."""
    for said, capacity in zip(document["caches"]["caches"], (math.inf, LRU_MB * 2**20), strict=True):
        for what, value in zip(("dhr", "bhr"), lru(of, capacity)):
            yield within(f"{said['kind']} cache, {what}", value, said[what], 1e-9)


def squid(lab):
    of = list(requests())
    log = lab.directory / "squid.log"
    lines = [squid_line(r) for r in of]
    corrupted = [*lines[:1000], "not a line of a log\n", *lines[1000:], "1750009999.000 12 10.0.0.1 TCP_M"]
    log.write_text("".join(corrupted))
    document = json.loads(lab.assay("logs", log, "--json", "--cache", f"{LRU_MB}MB", codes=(0,)))
    yield equal(
        "lines read, requests, malformed, cut off",
        (LINES + 2, LINES, 1, 1),
        tuple(document["lines"][k] for k in ("read", "requests", "malformed", "cut")),
    )
    yield from document_rows(of, document)
    yield from cache_rows(of, document)


# One host under several spellings.

SPELLINGS = {  # URL: the host, with the port unless it is the usual one of the scheme
    "http://h.example/1": "h.example",
    "http://h.example:80/2": "h.example",
    "https://h.example/3": "h.example",
    "https://h.example:443/4": "h.example",
    "http://h.example:443/5": "h.example:443",
    "http://h.example:8080/6": "h.example:8080",
    "https://[2001:db8::1]:443/7": "[2001:db8::1]",
    "http://[2001:db8::1]/8": "[2001:db8::1]",
    "http://k.example:180/9": "k.example:180",
}


def host_row(document, times):
    said = next(g["groups"] for g in document["groups"] if g["by"] == "host")
    ours = collections.Counter()
    for host in SPELLINGS.values():
        ours[host] += times
    return equal(
        "requests by host",
        dict(sorted(ours.items())),
        dict(sorted((g["name"], g["figures"]["requests"]) for g in said)),
    )


def hosts(lab):
    log = lab.directory / "hosts.log"
    log.write_text(
        "".join(
            squid_line(Request(BEGIN_S + n, 5, "10.0.0.1", "TCP_MISS", 200, 900, "GET", url, "text/html"))
            for n, url in enumerate([*SPELLINGS] * 7)
        )
    )
    yield host_row(json.loads(lab.assay("logs", log, "--json", codes=(0,))), 7)


# Who sent requests, in Combined: outcomes are not in it.

AGENTS = {  # User-Agent: its kind
    "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0": "browser",
    "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)": "bot",
    "curl/8.11.0": "tool",
    "inventory 1.0": "unknown",
    "-": "none",
}
SITES = ("-", "https://news.example/x", "https://search.example:443/?q=1")
SENDERS = 9_007  # the last step in time is not complete


def senders():
    """Agent, site and second of each request: ten a second."""
    rng = random.Random(9)
    for n in range(SENDERS):
        yield rng.choice(list(AGENTS)), rng.choice(SITES), n // 10


def combined_line(agent, site, second):
    at = f"10/Oct/2025:13:{second // 60:02}:{second % 60:02} +0000"
    return f'192.0.2.7 - - [{at}] "GET / HTTP/1.1" 200 5 "{site}" "{agent}"\n'


def sender_rows(of, document):
    said = {g["by"]: {row["name"]: row["figures"]["requests"] for row in g["groups"]} for g in document["groups"]}
    kinds = collections.Counter(AGENTS[agent] for agent, _, _ in of)
    yield equal("requests by kind of user agent", dict(sorted(kinds.items())), dict(sorted(said["agent-kind"].items())))
    sites = collections.Counter(site.split("/")[2].removesuffix(":443") for _, site, _ in of if site != "-")
    yield equal("requests by referring site", dict(sorted(sites.items())), dict(sorted(said["referrer"].items())))
    steps = collections.Counter()
    for step in document["time"]:
        steps.update(step["by_agent_kind"])
    yield equal("and all steps in time together", dict(sorted(kinds.items())), dict(sorted(steps.items())))
    covered_s = sum(step["covered_ms"] for step in document["time"]) / 1000
    yield equal("seconds that the steps cover", max(second for *_, second in of) + 1, covered_s)
    names = ("local_hits", "revalidated", "dhr", "bhr", "response")
    yield equal("figures that the log does not give", [None] * len(names), [document["all"].get(name) for name in names])


def sent(lab):
    of = list(senders())
    log = lab.directory / "combined.log"
    log.write_text("".join(combined_line(*request) for request in of))
    yield from sender_rows(of, json.loads(lab.assay("logs", log, "--json", codes=(0,))))


# Self-tests: data that is right, and data that is wrong.


def document_of(of):
    """A document with our own figures in it, as Assay would write it."""
    shaped = lambda part: (lambda f: f | {"response": {k: f[k] for k in f if k.endswith("_ms")}})(figures(part))
    group = lambda key: [{"name": name, "figures": shaped(part)} for name, part in by(of, key).items()]
    counts = collections.Counter(r.url for r in of)
    return {
        "all": shaped(of),
        "plain": shaped([r for r in of if r.method == "GET" and r.status == 200]),
        "every_ms": 60_000.0,
        "by_class": [{"class": g["name"], "figures": g["figures"]} for g in group(lambda r: OUTCOMES[r.outcome])],
        "groups": [
            {"by": name, "groups": group(key)}
            for name, key in {
                "method": lambda r: r.method,
                "status": lambda r: str(r.status),
                "content-type": lambda r: r.type,
                "outcome": lambda r: r.outcome,
                "host": lambda r: r.url.split("/")[2],
            }.items()
        ],
        "time": [
            {"from_unix_ms": g["name"], "figures": g["figures"]}
            for g in group(lambda r: r.at_s * 1000 // 60_000 * 60_000)
        ],
        "distinct": {
            "urls": {"count": len(counts)},
            "hosts": {"count": len({r.url.split("/")[2] for r in of})},
            "clients": {"count": len({r.client for r in of})},
        },
        "top": {"by_requests": [{"url": url, "requests": n} for url, n in counts.most_common(10)]},
        "failed": {"by_status": [failed(of, status) for status in sorted({r.status for r in of if r.status >= 400})]},
    }


def failed(of, status):
    """The ten URLs that got a status most often."""
    counts = collections.Counter(r.url for r in of if r.status == status)
    return {"status": status, "urls": [{"url": url, "requests": n} for url, n in counts.most_common(10)]}


def test_squid(lab):
    of = list(requests())[:3000]
    document = document_of(of)
    yield UNTOUCHED, list(document_rows(of, document))
    yield "one line is lost", list(document_rows(of[1:], document))
    wrong = [
        r._replace(outcome="TCP_HIT") if n == 7 else r._replace(outcome="TCP_MISS") if n == 8 else r
        for n, r in enumerate(of)
    ]
    yield "two outcomes are changed", list(document_rows(wrong, document))
    gone = next(n for n, r in enumerate(of) if r.status == 404 and r.url == failed(of, 404)["urls"][0]["url"])
    found = [r._replace(status=200) if n == gone else r for n, r in enumerate(of)]
    yield "a URL that failed once less", list(document_rows(found, document))
    yield "a time of 2 ms more", list(document_rows([of[0]._replace(ms=of[0].ms + 2), *of[1:]], document))
    yield "a line one minute later", list(document_rows([of[0]._replace(at_s=of[0].at_s + 60), *of[1:]], document))
    caches = lambda share: {
        "caches": {
            "caches": [
                {"kind": "ideal", "dhr": lru(of)[0], "bhr": lru(of)[1]},
                {"kind": "lru", "dhr": lru(of, LRU_MB * 2**20)[0] + share, "bhr": lru(of, LRU_MB * 2**20)[1]},
            ]
        }
    }
    yield UNTOUCHED, list(cache_rows(of, caches(0)))
    yield "a hit more in an LRU cache", list(cache_rows(of, caches(1 / len(of))))


def test_hosts(lab):
    said = lambda names: {
        "groups": [
            {
                "by": "host",
                "groups": [{"name": n, "figures": {"requests": c}} for n, c in collections.Counter(names).items()],
            }
        ]
    }
    yield UNTOUCHED, [host_row(said(SPELLINGS.values()), 1)]
    yield "hosts as they are written", [host_row(said(url.split("/")[2] for url in SPELLINGS), 1)]


def test_sent(lab):
    of = list(senders())[:300]
    group = lambda by, counts: {"by": by, "groups": [{"name": n, "figures": {"requests": c}} for n, c in counts.items()]}
    kinds = collections.Counter(AGENTS[agent] for agent, _, _ in of)
    sites = collections.Counter(site.split("/")[2].removesuffix(":443") for _, site, _ in of if site != "-")
    document = {
        "groups": [group("agent-kind", kinds), group("referrer", sites)],
        "time": [{"by_agent_kind": kinds, "covered_ms": 30_000.0}],
        "all": {},
    }
    yield UNTOUCHED, list(sender_rows(of, document))
    yield "one request is lost", list(sender_rows(of[1:], document))
    yield "a hit ratio of 0", list(sender_rows(of, document | {"all": {"dhr": 0.0}}))
    yield "an end that is a whole step", list(
        sender_rows(of, document | {"time": [{"by_agent_kind": kinds, "covered_ms": 60_000.0}]})
    )


CHECKS = [
    Check(
        "logs-counts",
        "What `assay logs` says of a log is what is in it; ideal and LRU caches too.",
        f"{LINES:,} lines in Squid's format, counted, ranked and replayed through a cache in plain Python",
        "assay logs FILE --json",
        squid,
        test_squid,
    ),
    Check(
        "logs-hosts",
        "A host with the usual port of its scheme is the same host.",
        "nine spellings of five hosts",
        "assay logs FILE --json",
        hosts,
        test_hosts,
    ),
    Check(
        "logs-senders",
        "Requests by user agent and referrer are those of the log, and what it does not say is not known.",
        f"{SENDERS:,} lines in Combined, counted in plain Python",
        "assay logs FILE --json",
        sent,
        test_sent,
    ),
]
