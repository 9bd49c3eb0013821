"""Is what robots requested what the workload declares? Shares of content types, sizes, what may be cached, recurrence,
popularity; from xacts.parquet and workload.json of all bundled workloads, and of one made for popularity.
"""

import math

import numpy as np
import pandas as pd

import laws
from checks import UNTOUCHED, Check, Row, between, summed_up

# Objects are introduced, then frozen; after a pause in which the last ones become known to all, robots only revisit.
POPULARITY = """
Content C = { kind = "c"; mime = { type = "image/gif"; extensions = [".gif"]; }; size = const(500Byte); cachable = 100%; };
Server S = { kind = "s"; contents = [C]; direct_access = contents; pconn_use_lmt = const(1000); addresses = ['10.1.0.1:80']; };
Robot R = { kind = "r"; req_rate = 4/sec; recurrence = 100%; pop_model = { pop_distr = LAW; }; pconn_use_lmt = const(1000);
            origins = S.addresses; addresses = ['10.2.0.1' ** 100]; };
Phase fill = { name = "fill"; goal.duration = 2sec; recur_factor_beg = 0; recur_factor_end = 0; };
Phase rest = { name = "rest"; goal.duration = 2sec; load_factor_beg = 0.01; load_factor_end = 0.01; recur_factor_beg = 1; recur_factor_end = 1; };
Phase ask = { name = "ask"; goal.duration = 8sec; load_factor_beg = 1; load_factor_end = 1; };
schedule(fill, rest, ask);
working_set_length(2sec);
use(S, R);
"""
SKEW = 0.8
POPULARITIES = {"uniform": ("popUnif()", 0.0), "zipf": (f"popZipf({SKEW})", SKEW)}
FEWEST = 30  # of which it makes sense to look at a distribution


def wants(lab):
    for workload in lab.bundled():
        lab.want_bundled(workload)


def bundled(lab):
    """Name, requests and workload.json of each bundled workload."""
    for workload in lab.bundled():
        run = lab.get(lab.want_bundled(workload))
        yield workload, run.xacts, run.workload, run.info["phases"]


def binomial(what, share, n, hits):
    """A row: a share of n independent trials, within the deviations that `laws.ERROR` allows (and one trial, for small n)."""
    margin = laws.NORMAL * math.sqrt(share * (1 - share) / n) + 1 / n
    return between(what, share - margin, share + margin, hits / n)


# Content types.


def declared_shares(workload):
    """Share of each content type in launches, of workloads whose robots are of one kind."""
    shares = {}
    for origin, weight in workload["robots"][0]["origins"]["items"]:
        server = workload["servers"][workload["origins"][origin]["server"]]
        for content, share in server["direct_access"]["items"]:
            shares[content] = shares.get(content, 0) + weight * share
    return {content: share / sum(shares.values()) for content, share in shares.items()}


def share_rows(xacts, workload):
    """Launches (not what pages contain) are independent choices of a type. Where robots have no rate, a revisit repeats what
    was requested before, whatever its type: there, only first visits choose."""
    launches = xacts[xacts.place == 0]
    if workload["robots"][0]["pace"] == "best_effort":
        launches = launches[~launches.revisit]
    kinds, seen = workload["contents"], launches.content.value_counts()
    declared = declared_shares(workload)
    rows = [
        binomial(kinds[c]["kind"], share, len(launches), seen.get(c, 0)) for c, share in declared.items() if share < 1
    ]
    others = set(seen.index) - declared.keys()
    return [
        *rows,
        Row("types that are not declared", "none", ", ".join(kinds[c]["kind"] for c in others) or "none", not others),
    ]


def shares(lab):
    for name, xacts, workload, _ in bundled(lab):
        # Closed loops of servers of several speeds, each with types of its own: who responds sooner gets more requests.
        if len(workload["servers"]) > 1 and workload["robots"][0]["pace"] == "best_effort":
            continue
        yield summed_up(f"{name}, {len(xacts):,} requests", share_rows(xacts, workload))


# Sizes, and what may be cached.


def size_law(declared):
    """A distribution function."""
    ((name, of),) = declared.items()
    if name == "constant":
        return lambda x: (x >= of).astype(float)
    named = {
        "exponential": laws.exponential,
        "uniform": laws.uniform,
        "log_normal": laws.log_normal,
        "normal": laws.normal,
    }
    return named[name](**of)


def objects_of(xacts):
    """A row per object of which a whole body came."""
    whole = xacts[(xacts.method == "GET") & (xacts.status == 200) & (xacts.type != "range") & xacts.error.isna()]
    return whole.groupby("object").agg(
        content=("content", "first"),
        size=("body_bytes", "first"),
        cachable=("cachable", "first"),
        sizes=("body_bytes", "nunique"),
    )


def object_rows(xacts, workload):
    """Sizes by Kolmogorov and Smirnov, over objects and not over requests. Coded bodies have other lengths: left out."""
    rows, objects = [], objects_of(xacts)
    for number, content in enumerate(workload["contents"]):
        of = objects[objects.content == number]
        if len(of) < FEWEST:
            continue
        rows.append(binomial(f"{content['kind']}, cachable", content["cachable"], len(of), of.cachable.sum()))
        if not content["body"]["codings"]:
            sizes = of["size"].to_numpy(float)
            if "constant" in content["size_bytes"]:
                far, limit = float((sizes != content["size_bytes"]["constant"]).mean()), 0.0
            else:
                far, limit = laws.kolmogorov(sizes, size_law(content["size_bytes"])), laws.kolmogorov_limit(len(of))
            rows.append(Row(f"{content['kind']}, sizes of {len(of)}", f"KS <= {limit:.3f}", f"{far:.3f}", far <= limit))
            rows.append(
                Row(f"{content['kind']}, one size for an object", "1", str(of.sizes.max()), of.sizes.max() == 1)
            )
    return rows


def objects(lab):
    for name, xacts, workload, _ in bundled(lab):
        if rows := object_rows(xacts, workload):
            yield summed_up(name, rows)


# Recurrence.


def recurrence_row(xacts, workload, phases):
    """Share of revisits in the last long phase at full recurrence. With private interests, or with many worlds, there is not
    yet something to revisit everywhere in a short rehearsal: there the declared share is a bound from above."""
    robots = workload["robots"][0]
    full = [n for n, phase in enumerate(phases) if phase["recurrence"] == [1.0, 1.0] and phase["load"] == [1.0, 1.0]]
    launches = xacts[(xacts.place == 0) & (xacts.phase == (full or [-1])[-1])]
    if len(launches) < FEWEST:
        return None
    row = binomial(f"{len(launches):,} launches", robots["recurrence"], len(launches), launches.revisit.sum())
    worlds = len(robots["origins"]["items"]) * len(declared_shares(workload))
    if robots["private_share"] == 0 and worlds <= 3:
        return row
    high = float(row.expected.split(" to ")[1])
    return Row(row.what, f"at most {high}", row.found, float(row.found) <= high)


def recurrence(lab):
    for name, xacts, workload, phases in bundled(lab):
        # In closed loops, who is ahead finds nothing to revisit yet.
        if workload["robots"][0]["pace"] != "best_effort" and (row := recurrence_row(xacts, workload, phases)):
            yield Row(f"{name}, {row.what}", row.expected, row.found, row.ok)


# Popularity.


def want_popularity(lab):
    for name, (law, _) in POPULARITIES.items():
        lab.want(f"popularity_{name}", POPULARITY.replace("LAW", law), "--direct", "--no-pin")


def rank_rows(launches, skew):
    """Objects by age, the newest first. Uniform (skew 0): all alike. Else Web Polygraph's popZipf: of n objects the one of rank
    floor((n + 1) ** (U ** skew)) is taken, U uniform, so that P(rank <= k) = (ln(k + 1) / ln(n + 1)) ** (1 / skew)."""
    fill, ask = launches[launches.phase == 0], launches[launches.phase == 2]
    born = fill.groupby("object").due_us.min().sort_values(ascending=False)
    ranks = pd.Series(np.arange(1, len(born) + 1), index=born.index)
    asked = ask.object.map(ranks)
    upto, n = ranks.to_numpy(), len(born)
    weights = upto / n if skew == 0 else (np.log(upto + 1) / math.log(n + 1)) ** (1 / skew)
    seen = np.bincount(asked.dropna().astype(int), minlength=len(born) + 1)[1:].cumsum() / len(ask)
    far = np.abs(seen - weights).max()  # of a discrete law: the limit is on the safe side
    limit = laws.kolmogorov_limit(len(ask))
    return [
        Row("objects that were introduced", "500 at least", str(len(born)), len(born) >= 500),
        Row("revisits of what was not introduced", "0", str(int(asked.isna().sum())), not asked.isna().any()),
        Row(f"ranks of {len(ask):,} revisits", f"KS <= {limit:.4f}", f"{far:.4f}", far <= limit),
    ]


def popularity(lab):
    for name, (_, skew) in POPULARITIES.items():
        for row in rank_rows(lab.get(f"popularity_{name}").xacts, skew):
            yield Row(f"{name}, {row.what}", row.expected, row.found, row.ok)


# Self-tests: data that is right, and data that is wrong.


def synthetic(n=4000):
    """Requests as this workload declares them."""
    rng = np.random.default_rng(7)
    workload = {
        "contents": [
            {"kind": "a", "size_bytes": {"exponential": {"mean": 5000.0}}, "cachable": 0.8, "body": {"codings": []}},
            {
                "kind": "b",
                "size_bytes": {"log_normal": {"mean": 9000.0, "deviation": 4000.0}},
                "cachable": 1.0,
                "body": {"codings": []},
            },
        ],
        "servers": [{"direct_access": {"items": [[0, 0.7], [1, 0.3]]}}],
        "origins": [{"server": 0}],
        "robots": [{"origins": {"items": [[0, 1.0]]}, "recurrence": 0.6, "private_share": 0.0, "pace": {"rate": {}}}],
    }
    content = (rng.random(n) >= 0.7).astype(int)
    spread = math.sqrt(math.log(1 + (4 / 9) ** 2))
    second = rng.lognormal(math.log(9000) - spread**2 / 2, spread, n)
    xacts = pd.DataFrame(
        {
            "place": 0,
            "phase": 0,
            "method": "GET",
            "type": "basic",
            "status": 200,
            "error": None,
            "object": np.arange(n),
            "content": content,
            "body_bytes": np.where(content == 0, rng.exponential(5000, n), second).astype(int),
            "cachable": (rng.random(n) < 0.8) | (content == 1),
            "revisit": rng.random(n) < 0.6,
        }
    )
    return xacts, workload


def test_shares(lab):
    xacts, workload = synthetic()
    yield UNTOUCHED, share_rows(xacts, workload)
    other = xacts.content.where(xacts.index % 16 != 0, 1)
    yield "6 % of the requests are of the other type", share_rows(xacts.assign(content=other), workload)


def test_objects(lab):
    xacts, workload = synthetic()
    yield UNTOUCHED, object_rows(xacts, workload)
    yield (
        "bodies are a tenth longer",
        object_rows(xacts.assign(body_bytes=(xacts.body_bytes * 1.1).astype(int)), workload),
    )
    more = xacts.cachable | (xacts.index % 6 == 0)
    yield "one in six is cachable whatever its type says", object_rows(xacts.assign(cachable=more), workload)
    yield "an object of two sizes", object_rows(xacts.assign(object=xacts.object.replace(1, 0)), workload)


def test_recurrence(lab):
    xacts, workload = synthetic()
    phases = [{"recurrence": [1.0, 1.0], "load": [1.0, 1.0]}]
    yield UNTOUCHED, [recurrence_row(xacts, workload, phases)]
    yield (
        "5 points more",
        [recurrence_row(xacts.assign(revisit=xacts.revisit | (xacts.index % 8 == 0)), workload, phases)],
    )


def test_popularity(lab):
    rng = np.random.default_rng(9)
    ranks = np.floor(801 ** (rng.random(3000) ** SKEW)).astype(int) - 1
    launches = pd.DataFrame(
        {
            "phase": [0] * 800 + [2] * 3000,
            "object": np.concatenate([np.arange(800)[::-1], ranks]),
            "due_us": np.arange(3800),
        }
    )
    yield UNTOUCHED, rank_rows(launches, SKEW)
    yield (
        "uniform in place of Zipf",
        rank_rows(launches.assign(object=[*range(799, -1, -1), *rng.integers(0, 800, 3000)]), SKEW),
    )
    yield "the oldest is the most popular", rank_rows(launches.assign(object=[*range(800), *ranks]), SKEW)
    yield "skew 0.8 in place of 0.7", rank_rows(launches, 0.7)


CHECKS = [
    Check(
        "mix-types",
        "Content types are requested as often as the workload declares.",
        "binomial bounds over the launches of each rehearsed workload",
        "assay run WORKLOAD --rehearse 15s --xact-log",
        shares,
        test_shares,
        wants,
    ),
    Check(
        "mix-objects",
        "Objects have the sizes that are declared, and as many may be cached.",
        "Kolmogorov-Smirnov over the objects' sizes; binomial bounds",
        "the same",
        objects,
        test_objects,
        wants,
    ),
    Check(
        "mix-recurrence",
        "Objects are revisited as often as the workload declares.",
        "binomial bounds over launches at full recurrence",
        "the same",
        recurrence,
        test_recurrence,
        wants,
    ),
    Check(
        "mix-popularity",
        "Revisits follow the declared popularity.",
        "Kolmogorov-Smirnov over the ranks of revisits in a frozen working set: uniform, and Zipf as Web Polygraph has it",
        "assay run --xact-log",
        popularity,
        test_popularity,
        want_popularity,
    ),
]
