"""Every number of a run's summary, from its Parquet tables and run.json alone.

    python recompute.py RUN_DIR

holds the run's summary.json against what comes out, figure by figure, and fails when any differs or was not recomputed.
Nothing of Assay is used: only pandas, and what docs/reference/run-directory.md says of the tables.
"""

import json
import math
import pathlib
import sys

import pandas as pd

RUN = pathlib.Path(sys.argv[1])
run = json.loads((RUN / "run.json").read_text())
table = lambda name: pd.read_parquet(RUN / f"{name}.parquet")
robots, origins, classes, errors = map(table, ["robots", "origins", "classes", "errors"])
times, histograms, host, proxy = map(table, ["times", "histograms", "host", "proxy"])
threads, stalls, baselines, network = map(table, ["threads", "stalls", "baselines", "network"])
machine, disks, blocks, seeks = map(table, ["machine", "disks", "blocks", "seeks"])
ROLES = ["robots", "origins"]
MB = 2.0**20


def rounded(value, digits):
    """Halves away from zero."""
    scale = 10.0**digits
    return math.copysign(math.floor(abs(value) * scale + 0.5), value) / scale


def ratio(part, whole, digits=6):
    return rounded(part / whole, digits) if whole > 0 else None


# Distributions: merge the buckets, then take percentiles.


ENDED = ("hit", "miss", "other")


def select(phase, side, metric, classes=(*ENDED, "timed_out", "all"), interval=None):
    def of(t):
        wanted = (t.side == side) & t.metric.isin(metric) & t["class"].isin(classes)
        wanted &= True if phase is None else t.phase == phase
        return t[wanted if interval is None else wanted & t.interval.isin(interval)]

    heads, buckets = of(times), of(histograms).groupby("high_us")["count"].sum()
    return int(heads["count"].sum()), int(heads.sum_us.sum()), heads.max_us.max(), buckets


def quantile(chosen, share):
    count, _, largest, buckets = chosen
    if count == 0:
        return None
    return int(min(buckets.index[(buckets.cumsum() >= share * count).argmax()], largest))


SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}


def milliseconds(chosen):
    count, total, largest, _ = chosen
    if count == 0:
        return {"count": 0, "mean": None, "max": None} | dict.fromkeys(SHARES)
    at = {name: quantile(chosen, share) / 1000 for name, share in SHARES.items()}
    return at | {"count": count, "mean": rounded(total / count / 1000, 4), "max": int(largest) / 1000}


def censored(every, ended):
    """Times some of which have no end: `every` has them as long as they had waited, `ended` is without them."""
    figures = milliseconds(every)
    count, _, _, shortest = every
    if count == ended[0]:
        return figures
    upto = ended[3].cumsum()
    at_least = ["mean", "max"]
    for name, share in SHARES.items():
        # If the others never ended, all of them would come last.
        reached = upto >= share * count
        latest = upto.index[reached.argmax()] if reached.any() else math.inf
        earliest = shortest.index[(shortest.cumsum() >= share * count).argmax()]
        at_least += [name] if latest != earliest else []
    return figures | {"at_least": at_least}


def lags(chosen, shares=SHARES):
    at = {name: quantile(chosen, share) for name, share in shares.items()}
    return at | {"count": chosen[0], "max": int(chosen[2]) if chosen[0] else None}


def lateness(chosen):
    at = lags(chosen)
    return {name: at[name] for name in ("p50", "p99", "max")}


# A phase (by its number), or the whole run (None).


def figures(phase, span):
    r = robots if phase is None else robots[robots.phase == phase]
    o = origins if phase is None else origins[origins.phase == phase]
    c, e = ((t if phase is None else t[t.phase == phase]) for t in (classes, errors))
    n = r.drop(columns="due_digest").sum()  # the digest wraps around
    m = o.sum()
    seconds = (span[1] - span[0]) / 1000 if span else None
    per_second = lambda count: rounded(count / seconds, 3) if seconds else None
    megabits = lambda count: rounded(count * 8 / 1e6 / seconds, 3) if seconds else None
    times_of = lambda metric, *which: select(phase, "robots", metric, which)
    by_class = lambda metric, *waits: {
        "all": censored(times_of([metric, *waits], *ENDED, "timed_out", "all"), times_of([metric], *ENDED)),
        "completed": milliseconds(times_of([metric], *ENDED)),
    } | {name: milliseconds(times_of([metric], name)) for name in ENDED}
    # Hits that the origin says were validated, beyond those whose response showed it.
    hidden = min(max(m.validated_basic - n.revalidated, 0), n.hits + n.collapsed)
    hidden_bytes = max(m.validated_basic_bytes - n.revalidated_bytes, 0)
    hidden_bytes = min(hidden_bytes, n.hit_bytes + n.collapsed_bytes)
    peak = lambda t, column: int(t[column].max()) if len(t) else 0
    used = resources(span)
    spared = lambda at_origins, at_robots: rounded(1 - at_origins / at_robots, 6) if at_robots else None
    class_counts = lambda by: {k: int(v) for k, v in c[c.by == by].groupby("value")["count"].sum().items()}
    as_they_are = ["due", "completed", "basic", "unsent", "unsent_late", "not_reached", "retries", "on_reused_connection", "pages"]
    return {name: int(n[name]) for name in as_they_are} | {
        "duration_s": seconds,
        "requests": int(n.sent),
        "due_digest": f"{sum(map(int, r.due_digest)) % 2**64:016x}",
        "rate": {"offered": per_second(n.due), "measured": per_second(n.completed)},
        "dhr": {
            "offered": ratio(n.offered_hits, n.due_basic),
            "ideal": ratio(n.ideal_hits, n.ideal_basic),
            "measured": ratio(n.hits + n.collapsed - hidden, n.basic),
        },
        "bhr": {
            "offered": ratio(n.offered_hit_bytes, n.due_basic_bytes),
            "ideal": ratio(n.ideal_hit_bytes, n.ideal_basic_bytes),
            "measured": ratio(n.hit_bytes + n.collapsed_bytes - hidden_bytes, n.basic_bytes),
        },
        "offload": {"requests": spared(m.requests, n.sent), "bytes": spared(m.body_bytes_out, n.body_bytes_in)},
        "outcomes": {
            "hit": int(n.hits - min(hidden, n.hits)),
            "collapsed": int(n.collapsed - (hidden - min(hidden, n.hits))),
            "revalidated": int(n.revalidated + hidden),
            "miss": int(n.misses),
        },
        "response_time_ms": by_class("response", "unsent_wait"),
        "service_time_ms": by_class("service"),
        "ttfb_ms": by_class("ttfb"),
        "lateness_us": lateness(select(phase, "robots", ["lateness"])),
        "errors": {
            "total": int(e["count"].sum()),
            "by_kind": {k: int(v) for k, v in e.groupby("kind")["count"].sum().items()},
        },
        "bandwidth_mbit_s": {
            "client_in": megabits(n.wire_bytes_in),
            "client_out": megabits(n.wire_bytes_out),
            "origin_in": megabits(m.wire_bytes_in),
            "origin_out": megabits(m.wire_bytes_out),
        },
        "connections": {
            "client_opened": int(n.connections_opened),
            "client_peak": peak(r, "connections"),
            "origin_opened": int(m.connections_opened),
            "origin_peak": peak(o, "connections"),
        },
        "waiting_peak": peak(r, "waiting"),
        "in_flight_peak": peak(r, "in_flight"),
        "resources": {role: what for role, (what, _) in used.items()},
        "cpu_us_per_request": {
            role: rounded(cpu_us / n.sent, 3) if n.sent else None
            for role, (_, cpu_us) in used.items()
            if role != "host"
        },
        "disk": disk(span),
        "origins": {name: int(m[name]) for name in ["requests", "not_modified", "validations", "refused", "broken"]}
        | {
            "rate": per_second(m.requests),
            "body_bytes": int(m.body_bytes_out),
            "service_time_ms": milliseconds(select(phase, "origins", ["service"])),
            "lateness_us": lateness(select(phase, "origins", ["lateness"])),
        },
        "by_method": class_counts("method"),
        "by_type": class_counts("type"),
        "by_status": class_counts("status"),
        "special": special(n, m),
    }


def special(n, m):
    ours = ["parts", "multiparts", "unsatisfied", "coded", "redirected", "refused", "faults_passed", "faults_hidden"]
    theirs = ["challenges", "authenticated", "wrong_credentials", "cookies_set", "continued", "expectations_refused"]
    made = ["fault_statuses", "fault_resets", "fault_slow_starts", "fault_slow_bodies"]
    counts = {name: int(n[name]) for name in ours + ["broken_off", "broken_off_by_origin"]}
    counts |= {name: int(m[name]) for name in theirs + ["retried"]}
    return counts | {"faults": sum(int(m[name]) for name in made)}


# What processes, the machine and its disk did: a second that reaches over an end counts with its share.


def within(t, span):
    if span is None:
        return t.head(0), pd.Series(dtype=float)
    begin, end = t.start_ms.clip(lower=span[0]), (t.start_ms + t.length_ms).clip(upper=span[1])
    share = ((end - begin).clip(lower=0) / t.length_ms).fillna(0)
    return t[share > 0], share[share > 0]


def resources(span):
    used = {}
    seen, shares = within(host.astype({"start_ms": "int64", "length_ms": "int64"}), span)
    for role, t in seen.groupby("role"):
        share = shares[t.index]
        part = lambda column: float((t[column].astype(float) * share).sum())
        watched = part("length_ms")
        mean = lambda column: rounded(part(column) / 1000 / watched, 4) if watched > 0 else None
        told_apart = part("user_us") + part("system_us") > 0
        has_threads = watched > 0 and (t.threads > 0).any()
        switches = lambda column: rounded(part(column) * 1000 / watched, 1) if has_threads else None
        largest = lambda column: int(t[column].max()) if t[column].notna().any() else None
        moved = lambda column: int(part(column) + 0.5) if t[column].notna().any() else None
        used[role] = {
            "cpu_cores": mean("cpu_us"),
            "rss_peak_bytes": largest("rss_bytes"),
            "starved_threads": mean("run_delay_us"),
            "descriptors_peak": largest("descriptors"),
            "stolen_cores": mean("steal_us") if role == "host" else None,
            "user_cores": mean("user_us") if told_apart else None,
            "system_cores": mean("system_us") if told_apart else None,
            "pss_peak_bytes": largest("pss_bytes"),
            "cache_peak_bytes": largest("cache_bytes"),
            "voluntary_switches_per_s": switches("voluntary_switches"),
            "involuntary_switches_per_s": switches("involuntary_switches"),
            "disk_read_bytes": moved("disk_read_bytes"),
            "disk_written_bytes": moved("disk_written_bytes"),
        }, part("cpu_us")
    return used


def disk(span):
    store = disks[disks.holds == "store"].astype({"start_ms": "int64", "length_ms": "int64"})
    t, share = within(store, span)
    if t.empty:
        return None
    part = lambda column: float((t[column].astype(float) * share).sum())
    seconds = part("length_ms") / 1000
    per = lambda value, digits: rounded(value / seconds, digits) if seconds > 0 else 0.0
    return {
        "read_mb_s": per(part("read_bytes") / MB, 3),
        "written_mb_s": per(part("written_bytes") / MB, 3),
        "reads_per_s": per(part("reads"), 2),
        "writes_per_s": per(part("writes"), 2),
        "busy_share": per(part("busy_ms") / 1000, 4),
        "queue": per(part("queue_ms") / 1000, 3),
        "seeks": traced(span),
    }


def traced(span):
    t = blocks[(blocks.start_ms >= span[0]) & (blocks.start_ms < span[1])]
    if t.empty:
        return None
    far = seeks[seeks.block.isin(t.index)].groupby("high_sectors")["count"].sum().cumsum()
    at = lambda q: far.index[(far >= max(math.ceil(far.iloc[-1] * q), 1)).argmax()] if len(far) else None
    megabytes = lambda q: None if at(q) is None else rounded(float(at(q)) * 512 / MB, 4)
    return {
        "requests": int(t.requests.sum()),
        "sequential_share": ratio(t.sequential.sum(), t.requests.sum()) or 0.0,
        "p50_mb": megabytes(0.5),
        "p90_mb": megabytes(0.9),
        "lost": int(t.lost.sum()),
    }


# Assay itself.


def health(total_span):
    used = resources(total_span)
    roles = sorted(set(threads.role) | set(stalls.role) | set(baselines.role) | (set(used) & set(ROLES)))
    each = {role: watch(role, None) for role in roles}
    pairs = {(t.role, int(t.thread)) for source in (threads, stalls, baselines) for t in source.itertuples()}
    return {
        "roles": {role: role_health(role, sums, used) for role, sums in each.items()},
        "threads": [thread_health(role, thread, watch(role, thread)) for role, thread in sorted(pairs)],
        "longest_stall": longest_stall(),
        "processor_share": processor_share(used),
        "stolen_share": stolen_share(used, total_span),
        "metering_share": ratio(machine.metering_us.sum() / 1000, machine.length_ms.sum(), 5),
        "network": network_health(),
    }


def watch(role, thread):
    mine = lambda t: t[(t.role == role) & (True if thread is None else t.thread == thread)]
    t, s, b = mine(threads), mine(stalls), mine(baselines)
    watched_us = int(t.length_ms.sum()) * 1000
    long = t[t.length_ms >= 500]  # in a shorter one, a few ticks of the kernel's clock make a peak
    share = lambda column: ratio(int(t[column].sum()), watched_us, 4)
    top = lambda column: float((long[column] / (long.length_ms * 1000.0)).max()) if len(long) else 0.0
    peak = lambda column: rounded(top(column), 4) if watched_us else None
    cpus = [*t.cpu.dropna(), *b.cpu.dropna()]
    return {
        "timer_lag_us": lags(select(None, "threads", ["timer_lag"], interval=set(t.interval))),
        "baseline_us": lags(select(None, "baseline", ["timer_lag"], interval=set(b.interval))),
        "stalls": len(s),
        "stalled_us": int(s.length_us.sum()),
        "longest_stall_us": int(s.length_us.max()) if len(s) else None,
        "processor_share": share("cpu_us"),
        "processor_share_peak": peak("cpu_us"),
        "run_delay_share": share("run_delay_us"),
        "run_delay_share_peak": peak("run_delay_us"),
        "queue": (int(t.accept_queue.max()), int(t.accept_queue_limit.max())) if len(t) else (0, 0),
        "cpu": int(cpus[-1]) if cpus else None,
    }


def role_health(role, sums, used):
    kept = ["timer_lag_us", "baseline_us", "stalls"]
    kept += ["processor_share", "processor_share_peak", "run_delay_share", "run_delay_share_peak"]
    queue, limit = sums["queue"]
    return {name: sums[name] for name in kept} | {
        "lateness_us": lags(select(None, role, ["lateness"])),
        "stalled_ms": rounded(sums["stalled_us"] / 1000, 3),
        "descriptors_peak": used[role][0]["descriptors_peak"] if role in used else 0,
        "accept_queue_peak": queue if limit else None,
        "accept_queue_limit": limit if limit else None,
    }


def thread_health(role, thread, sums):
    kept = ["cpu", "baseline_us", "timer_lag_us", "processor_share", "run_delay_share", "stalls", "longest_stall_us"]
    return {"role": role, "thread": thread} | {name: sums[name] for name in kept}


def longest_stall():
    if stalls.empty:
        return None
    # The last of the longest.
    found = stalls[stalls.length_us == stalls.length_us.max()].iloc[-1]
    return {name: int(found[name]) for name in ["thread", "at_ms", "length_us"]}


def processor_share(used):
    placed = [place for place in run["placement"] if place["role"] in ROLES]
    pinned = {cpu for place in placed for cpu in place["cpus"]}
    count = len(pinned) if all(place["cpus"] for place in placed) else run["host"]["cpus"]
    exact = [cores(role, whole(SPANS), "cpu_us") for role in ROLES if role in used]
    return rounded(sum(exact) / count, 4) if exact and count else None


def stolen_share(used, span):
    cpus = run["host"]["cpus"]
    return rounded(cores("host", span, "steal_us") / cpus, 4) if "host" in used and cpus else None


def cores(role, span, column):
    t, share = within(host[host.role == role].astype({"start_ms": "int64", "length_ms": "int64"}), span)
    return float((t[column] * share).sum()) / 1000 / float((t.length_ms * share).sum())


def network_health():
    if network.empty:
        return None
    sums = ["segments_out", "retransmitted", "listen_overflows", "listen_drops", "backlog_drops"]
    sums += ["receive_drops", "memory_pressures"]
    levels = network.groupby("start_ms")[["sockets", "time_wait", "buffer_bytes"]].sum().max()
    return {name: int(network[name].sum()) for name in sums} | {
        f"{name}_peak": int(level) for name, level in levels.items()
    }


# All of it.


def whole(spans):
    ran = [span for span in spans if span]
    return (min(span[0] for span in ran), max(span[1] for span in ran)) if ran else None


def calibration(phases):
    known = run["calibration"]
    if known is None:
        return None
    busiest = max((phase["rate"]["measured"] or -1.0 for phase in phases), default=-1.0)
    rate = busiest if busiest >= 0 else None
    share = rate / known["requests_per_s"] if rate is not None else None
    kept = {name: known[name] for name in ["requests_per_s", "body_bytes_per_s", "made_unix_ms"]}
    return kept | {"rate": rate, "share": None if share is None else rounded(share, 4)}


SPANS = [(p["start_ms"], p["end_ms"]) if p["start_ms"] is not None else None for p in run["phases"]]
phases = [
    figures(number, span) | {name: phase[name] for name in ["start_ms", "end_ms", "load", "recurrence"]}
    for number, (phase, span) in enumerate(zip(run["phases"], SPANS))
]
copied = ["seed", "started_unix_ms", "stream_version", "stream_digest_requests", "target", "host", "placement", "bed"]
recomputed = {name: run[name] for name in copied} | {
    "workload_info": run["workload"],
    "doubts": run["verdict"]["doubts"],
    "examples": json.loads((RUN / "examples.json").read_text()),
    "counters": {name: float(t.value.iloc[-1]) for name, t in proxy.groupby("counter")},
    "total": figures(None, whole(SPANS)),
    "phases": phases,
    "health": health(whole(SPANS)),
    "calibration": calibration(phases),
}

# Every number, null and digest of the summary, against ours. What is left out, and why:
EXEMPT = {
    ".requirements": "the value of a requirement is one of the figures below, looked up by the name that it is written with",
}
compared, different = 0, []


def compare(path, summary, ours):
    global compared
    if path in EXEMPT:
        return
    if isinstance(summary, dict):
        if "p999" in summary:
            # Which figures are lower bounds; left out where none is.
            ours = dict(ours or {})
            compared += 1
            open_ones = [sorted(t.pop("at_least", [])) for t in (summary, ours)]
            if open_ones[0] != open_ones[1]:
                different.append(f"{path}: lower bounds are {open_ones[0]} in the summary, {open_ones[1]} by the tables")
        for name, value in summary.items():
            compare(f"{path}.{name}", value, ours.get(name) if isinstance(ours, dict) else None)
    elif isinstance(summary, list):
        for number, value in enumerate(summary):
            known = isinstance(ours, (list, tuple)) and number < len(ours)
            compare(f"{path}[{number}]", value, ours[number] if known else None)
    elif summary is None or path.endswith("due_digest") or type(summary) in (int, float):
        compared += 1
        numbers = summary is not None and ours is not None and not isinstance(summary, str)
        equal = abs(summary - ours) <= 1e-9 * max(abs(summary), 1) if numbers else summary == ours
        if not equal:
            different.append(f"{path}: the summary says {summary}, the tables {ours}")


compare("", json.loads((RUN / "summary.json").read_text()), recomputed)
print(f"{compared} figures compared, {len(different)} differ", *different, sep="\n")
sys.exit(bool(different))
