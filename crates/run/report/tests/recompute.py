"""Every number of a run's summary, from its Parquet tables and run.json alone.

    python recompute.py RUN_DIR

holds the run's summary.json against what comes out, figure by figure, and fails when any differs or was not recomputed.
Nothing of Assay is used: only pandas, and what docs/reference/run-directory.md says of the tables.
"""

import bisect
import collections
import functools
import itertools
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
processors = table("processors")
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
parts = lambda t: {None: t.head(0)} | dict(list(t.groupby(["side", "metric"])))
TIMES_OF, BUCKETS_OF = parts(times), parts(histograms)


def of_phases(t, phases):
    return t if phases is None else t[t.phase.isin(phases)]


def select(phases, side, metric, classes=(*ENDED, "timed_out", "all"), interval=None):
    frozen = lambda these: None if these is None else frozenset(these)
    return selected(frozen(phases), side, tuple(metric), frozen(classes), frozen(interval))


@functools.cache  # Most figures are of the same times.
def selected(phases, side, metric, classes, interval):
    def of(parts):
        t = of_phases(pd.concat([parts.get((side, name), parts[None]) for name in metric]), phases)
        wanted = t["class"].isin(classes)
        return t[wanted if interval is None else wanted & t.interval.isin(interval)]

    heads, buckets = of(TIMES_OF), of(BUCKETS_OF).groupby("high_us")["count"].sum()
    return int(heads["count"].sum()), int(heads.sum_us.sum()), heads.max_us.max(), buckets


def together(one, other):
    """Two selections of times as one."""
    counts, totals, largest, buckets = zip(one, other)
    return sum(counts), sum(totals), max(each for each in (0, *largest) if each == each), buckets[0].add(buckets[1], fill_value=0)


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


# The own error: within which interval a figure lies, whatever Assay and the lab did (docs/explanation/own-error.md).

# Xacts are recorded as disturbed from so many microseconds on; so much can be missing from all others. Hits are so from a
# sixteenth of their time on, if that is less.
UNRECORDED_US, LEAST_UNRECORDED_US = 50, 10
# A thread that waits for its processor waits for up to so long, where nobody watched for how long.
SLICE_US = 4000
# Why robots or origins can have been late.
LATE = {"stalled", "starved", "saturated", "late"}
# A thread that runs or is ready to run for this part of the time falls behind now and then.
NO_TIME_LEFT = 0.9
# Of the requests of a phase, so many must have been joined with the waits of the target for that to count.
MOSTLY = 0.9
# Responses are taken to have come up to so much before they were read, and times to begin so much after requests were due.
SOONER_US, BEGUN_LATE_US = 100, 50
# What a thread that is woken takes to run on a quiet machine is no more than this.
QUIET_US = 50
# What the kernel takes of a body at once.
AT_ONCE = 65536
TIMES, EVERYTHING = 1, 2
LEAVES_UNKNOWN = {"role-failed": EVERYTHING, "lab-failed": TIMES, "socket-memory": TIMES}


def bucket_size(us):
    """Three digits: buckets are 1 µs wide up to 2047 µs, twice as wide with each doubling from then on."""
    return 1 if us < 2048 else 1 << (int(us).bit_length() - 11)


def highest(us):
    return int(us) // bucket_size(us) * bucket_size(us) + bucket_size(us) - 1


class Spread:
    """A distribution: how many are in the bucket that ends there."""

    def __init__(self, buckets, total=0, largest=0):
        self.high = [high for high, count in sorted(buckets.items()) if count > 0]
        self.counts = [buckets[high] for high in self.high]
        self.upto = list(itertools.accumulate(self.counts))
        self.count, self.total, self.largest = sum(self.counts), total, largest

    @classmethod
    def of(cls, chosen):
        _, total, largest, buckets = chosen
        counts = {int(high): int(count) for high, count in buckets.items()}
        return cls(counts, total, int(largest) if counts else 0)

    def at(self, share):
        """The value that this share does not exceed."""
        rank = max(math.ceil(min(share, 1.0) * self.count), 1)
        return min(self.high[bisect.bisect_left(self.upto, rank)], self.largest)

    def low_at(self, share):
        us = self.at(share) if self.count else 0
        return float(us // bucket_size(us) * bucket_size(us))

    def longer_than(self, us):
        upto = bisect.bisect_right(self.high, highest(us))
        return self.count - (self.upto[upto - 1] if upto else 0)

    def beside(self, most):
        """All of them, none counting for more than that."""
        return sum(min(high // bucket_size(high) * bucket_size(high), most) * count for high, count in zip(self.high, self.counts))

    def exchange(self, taken, given):
        counts = collections.Counter(dict(zip(self.high, self.counts)))
        counts.subtract(dict(zip(taken.high, taken.counts)))
        left = max((high for high, count in counts.items() if count > 0), default=0)
        counts.update(dict(zip(given.high, given.counts)))
        largest = max(min(left, self.largest), given.largest)
        return Spread(counts, self.total - taken.total + given.total, largest)


def less_unrecorded(spread, by_time):
    counts, total, largest = collections.Counter(), 0, 0
    for high, count in zip(spread.high, spread.counts):
        missing = max(min(high // 16, UNRECORDED_US), LEAST_UNRECORDED_US) if by_time else UNRECORDED_US
        us = max(high // bucket_size(high) * bucket_size(high) - missing, 0)
        counts[highest(us)] += count
        total, largest = total + us * count, max(largest, us)
    return Spread(counts, total, largest)


def union(parts):
    counts = collections.Counter()
    for part in parts:
        counts.update(dict(zip(part.high, part.counts)))
    return Spread(counts, sum(part.total for part in parts), max((part.largest for part in parts), default=0))


def share_of(t, span):
    """Each row with the part of it that lies in the span."""
    seen, share = within(t.astype({"start_ms": "int64", "length_ms": "int64"}), [span])
    return lambda column: float((seen[column].astype(float) * share).sum())


class Influence:
    """What was done to a phase, beyond what is recorded with each request."""

    def __init__(self, number=None):
        self.taken = self.stolen = self.wait = self.touched = self.watched = 0.0
        self.waits, self.waited, self.unwatched, self.behind = Spread({}), 0.0, None, False
        self.busy, self.unknown, self.closed, self.saturated, self.late = None, 0, False, False, False
        span = SPANS[number] if number is not None else None
        if span is None:
            return
        doubts = [d for d in run["verdict"]["doubts"] if not d["phases"] or number in d["phases"]]
        self.late = any(doubt["reason"] in LATE for doubt in doubts)
        reasons = {doubt["reason"] for doubt in doubts if doubt["serious"]}
        self.unknown = max((LEAVES_UNKNOWN.get(reason, 0) for reason in reasons), default=0)
        self.closed = run["phases"][number]["expected_requests"] is None
        self.saturated = "saturated" in reasons
        self.network(span, reasons)
        self.target(span, number)
        for thread in set(threads[threads.role == "origins"].thread):
            part = share_of(threads[(threads.role == "origins") & (threads.thread == thread)], span)
            self.behind |= part("cpu_us") + part("run_delay_us") > part("length_ms") * 1000 * NO_TIME_LEFT

    def network(self, span, reasons):
        part = share_of(network, span)
        for reason, column in [("retransmissions", "retransmitted"), ("accept-backlog", "listen_overflows")]:
            self.touched += part(column) if reason in reasons else 0.0

    def target(self, span, number):
        placed = {place["role"]: place["cpus"] for place in run["placement"]}
        role = "origins" if run["target"]["mode"] == "direct" else "proxy"
        if role in placed and (host.role == role).any():
            every = len(placed[role]) if placed[role] else run["host"]["cpus"]
            used = share_of(host[host.role == role], span)("cpu_us")
            self.busy = [used, (span[1] - span[0]) * 1000.0 * max(every, 1)]
        rows = host[(host.role == "proxy") & (host.start_ms >= span[0]) & (host.start_ms < span[1])]
        if len(rows):
            seen = {i: Spread.of(select(None, "host", ["waits"], interval={i})) for i in rows.index}
            self.waits, self.waited = union(seen.values()), float(rows.run_delay_us.sum())
            self.watched = sum(float(rows.length_ms[i]) * 1000 for i in rows.index if seen[i].count)
            # Requests that completed while it waited and nobody watched how.
            mine = robots[robots.phase == number]
            for i in (i for i in rows.index if rows.run_delay_us[i] > 0 and not seen[i].count):
                begin, end = int(rows.start_ms[i]), int(rows.start_ms[i] + rows.length_ms[i])
                during = mine[(mine.start_ms < end) & (mine.start_ms + mine.length_ms > begin)]
                self.unwatched = (self.unwatched or 0) + int(during.completed.sum())
        if "proxy" not in placed:
            return
        mine = share_of(host[host.role == "proxy"], span)
        cpus = placed["proxy"]
        theirs = share_of(processors[processors.cpu.isin(cpus)] if cpus else processors, span)
        switches = mine("voluntary_switches") + mine("involuntary_switches")
        waited = max(mine("run_delay_us") - switches * quiet(), 0.0)
        busy, had = theirs("busy_us"), mine("cpu_us")
        self.stolen = theirs("steal_us") * min(had / busy, 1.0) if busy > 0 else 0.0
        self.taken = min(waited, max(busy - had, 0.0)) + self.stolen
        self.wait = waited / switches if switches > 0 else 0.0

    def and_(self, other):
        both, taken = Influence(), self.taken + other.taken
        both.taken, both.stolen, both.watched = taken, self.stolen + other.stolen, self.watched + other.watched
        both.wait = (self.wait * self.taken + other.wait * other.taken) / taken if taken > 0 else self.wait
        both.waits = union([self.waits, other.waits])
        both.waited = self.waited + other.waited
        unwatched = [part for part in (self.unwatched, other.unwatched) if part is not None]
        both.unwatched = sum(unwatched) if unwatched else None
        both.behind = self.behind or other.behind
        both.touched = self.touched + other.touched
        known = [busy for busy in (self.busy, other.busy) if busy]
        both.busy = [sum(column) for column in zip(*known)] if known else None
        both.unknown = max(self.unknown, other.unknown)
        both.closed, both.saturated = self.closed or other.closed, self.saturated or other.saturated
        both.late = self.late or other.late
        return both

    def windows(self):
        return self.waits if self.waits.count and self.unwatched is None else None

    def busy_share(self):
        return min(2 * self.busy[0] / self.busy[1] + 0.05, 1.0) if self.busy and self.busy[1] > 0 else 1.0

    def spread(self, seconds, needs, all_needs, are_joined):
        """By how much the mean can be longer because others had the target's processors, beyond what is recorded."""
        taken = self.stolen if are_joined else self.taken
        if not seconds or taken <= 0 or all_needs <= 0:
            return 0.0
        per_us = all_needs / (seconds * 1e6)
        delays = lambda wait: wait * (1 + per_us * wait / 2)
        waits = self.windows()
        if are_joined:
            every = delays(SLICE_US) * taken / SLICE_US
        elif waits:
            of_others = min(self.taken / max(self.waited, 1.0), 1.0)
            every = sum(delays(high) * count for high, count in zip(waits.high, waits.counts)) * of_others
        else:
            wait = max(self.wait, SLICE_US)
            every = delays(wait) * self.taken / wait
        return every * needs / all_needs


def quiet():
    lags = [Spread.of(select(None, "baseline", ["timer_lag"], interval={i})) for i in baselines.interval]
    return min([QUIET_US, *(lag.at(0.5) for lag in lags)]) if lags else 0.0


class Own:
    """Bounds of a class of times."""

    def __init__(self, every, disturbed, aftermath, late, influence, seconds, needs, all_needs, lost, n, by_time):
        seen, least = disturbed
        joined = max(int(n.joined) - (influence.unwatched or 0), 0) / max(int(n.completed), 1)
        are_joined = joined >= MOSTLY
        self.least, self.most = every.exchange(seen, least), every
        rest = less_unrecorded(every.exchange(seen, Spread({})), by_time)
        self.lowest = union([rest, least])
        self.spread = influence.spread(seconds, needs, all_needs, are_joined)
        self.windows, self.met = None if are_joined else influence.windows(), needs
        self.window = max(influence.watched / max(influence.waits.count, 1), 1.0)
        self.busy, self.lost = influence.busy_share(), lost
        (met, passing), self.aftermath = aftermath, union(aftermath)
        self.touched = min(influence.touched / int(n.sent), 1.0) if int(n.sent) else 0.0
        self.touched += max(1 - joined, 0.0) if are_joined else 0.0
        # Robots that wait send their next request just then: nothing is chance. Objects of a page come together.
        self.needs = None if influence.closed else needs
        self.batch = int(n.sent) / int(n.pages) if int(n.pages) else 1.0
        burst = max(self.busy, self.busy / (2 * (1 - self.busy)) if self.busy < 1 else 1.0)
        every_one = max(self.least.count, 1)
        self.moved = [(0.0, (met.count + self.at_most_by_chance(passing.count, burst)) / every_one)]
        for part in range(1, 17) if self.aftermath.count else []:
            us = highest(self.aftermath.at(part / 16))
            longer = met.longer_than(us) + self.at_most_by_chance(passing.longer_than(us), burst)
            self.moved.append((us * self.busy, longer / every_one))
        # Requests that were sent a moment late would have taken so much longer.
        self.shortened = [(0.0, 0.0)] if late is None else []
        self.most_shortened = min(late.largest, BEGUN_LATE_US) if late is not None and late.count else 0
        self.mean_shortened = 0.0
        if late is not None:
            lengths = [highest(late.at(share)) for share in (0.5, 0.75, 0.9, 0.99)] if late.count else []
            self.shortened += [(us, late.longer_than(us) / every_one) for us in lengths if us < self.most_shortened]
            busy = self.at_most_by_chance(self.least.count, self.busy) / every_one
            self.shortened += [(0.0, busy), (self.most_shortened, 0.0)]
            by_lateness = sum(min(high, BEGUN_LATE_US) * count for high, count in zip(late.high, late.counts)) / every_one
            self.mean_shortened = min(by_lateness, self.most_shortened * busy, self.most_shortened)

    def at_most_by_chance(self, times, share):
        """How many of them can have needed the target while something was the case for this share of the time."""
        if self.needs is None:
            return times
        share = min(share * self.needs, 1.0)
        return min(times * share + 3 * math.sqrt(times * share * (1 - share) * max(self.batch, 1.0)), times)

    def low(self, share):
        return max([0.0, *(self.low_unmoved(share - part) - us for us, part in self.moved)])

    def low_unmoved(self, share):
        share -= self.touched
        if share <= 0:
            return 0.0
        if self.spread <= 0:
            return self.lowest.low_at(share)
        return max(self.by_sum(share), self.by_windows(share), 0.0)

    def by_sum(self, share):
        """The delays go to those just above, which come down to a level together."""
        budget, above = self.spread * self.lowest.count, self.lowest.count * (1 - share)
        mass, level = 0.0, None
        for high, count in zip(reversed(self.lowest.high), reversed(self.lowest.counts)):
            if above >= count:
                above -= count
                continue
            low = high // bucket_size(high) * bucket_size(high)
            if level is not None:
                cost = mass * (level - low)
                if cost >= budget:
                    return max(level - budget / mass, 0.0)
                budget -= cost
            level, mass, above = float(low), mass + count - above, 0.0
        return 0.0 if level is None else max(level - budget / max(mass, 1.0), 0.0)

    def by_windows(self, share):
        """For each wait: so many met a longer one, and all others none that was longer."""
        if self.windows is None:
            return 0.0
        bounds = [0.0]
        reach = [count * (1 + high / self.window) for high, count in zip(self.windows.high, self.windows.counts)]
        longer = sum(reach)
        for high, reached in zip(self.windows.high, reach):
            longer -= reached
            left = share - min(self.met * max(longer, 0.0) / self.windows.count, 1.0)
            bounds.append((self.lowest.low_at(left) if left > 0 else 0.0) - self.met * high)
        return max(bounds)

    def quantile(self, share):
        count, rank = self.least.count, share * (self.least.count + self.lost)
        by = [(us + more, part + others) for us, part in self.moved for more, others in self.shortened]
        highs = [highest(self.most.at(rank / count + part)) + us for us, part in by if rank / count + part <= 1]
        return self.low((rank - self.lost) / count), min(highs, default=None)

    def mean(self):
        count, after = self.least.count, self.aftermath
        moved = after.total / after.count * self.busy * (after.count / count) if after.count else 0.0
        taken = self.spread + self.least.largest * self.touched + moved
        low = max((self.lowest.total / count - taken) * (count / (count + self.lost)), 0.0)
        return low, None if self.lost else self.most.total / count + moved + self.mean_shortened

    def max(self):
        after = self.aftermath
        moved = after.largest * self.busy if after.count else 0.0
        return self.low(1.0), None if self.lost else self.most.largest + moved + self.most_shortened


def interval(value, low, high, precision):
    low, high = min(low, value), None if high is None else max(high, value)
    tolerated = max(abs(value) * 0.1, precision)
    if high is None:
        certainty = "unknown" if low <= 0 else "roughly"
    else:
        certainty = "known" if max(value - low, high - value) <= tolerated else "roughly"
    return {"low": low, "high": high, "certainty": certainty}


NOT_KNOWN = {"low": None, "high": None, "certainty": "unknown"}


def with_own(figures, own, unknown):
    """The figures of a class of times, in milliseconds, with the interval of each."""
    if not figures["count"]:
        return figures
    figures, intervals = dict(figures), {}
    for name in [*SHARES, "mean", "max"]:
        bounds = own.quantile(SHARES[name]) if name in SHARES else getattr(own, name)()
        exact = own.every.total / own.every.count if name == "mean" else figures[name] * 1000
        found = interval(exact, *bounds, 100.0)
        digits = 4 if name == "mean" else 3
        for end in ("low", "high"):
            found[end] = None if found[end] is None else rounded(found[end] / 1000, digits)
        intervals[name] = NOT_KNOWN if unknown >= TIMES else found
        if intervals[name]["certainty"] == "unknown":
            intervals[name] = NOT_KNOWN if unknown >= TIMES else found
            figures[name] = None
            figures["at_least"] = [open_one for open_one in figures.get("at_least", []) if open_one != name]
    return figures | {"own": intervals}


def own_shares(of, lost, unknown):
    found = {}
    for name, (value, whole) in of.items():
        if value is None:
            continue
        every = whole + lost
        bounds = (value * whole / every, (value * whole + lost) / every) if every > 0 else (value, value)
        found[name] = NOT_KNOWN if unknown == EVERYTHING else interval(value, *bounds, 0.01)
    return found


# Some phases (by their numbers), or the whole run (None).


def figures(phases, spans):
    r, o, c, e = (of_phases(t, phases) for t in (robots, origins, classes, errors))
    n = r.drop(columns="due_digest").sum()  # the digest wraps around
    m = o.sum()
    seconds = sum(end - start for start, end in spans) / 1000 if spans else None
    per_second = lambda count: rounded(count / seconds, 3) if seconds else None
    megabits = lambda count: rounded(count * 8 / 1e6 / seconds, 3) if seconds else None
    times_of = lambda metric, *which: select(phases, "robots", metric, which)
    # What was done to them.
    influence = functools.reduce(Influence.and_, (INFLUENCES[i] for i in phases or range(len(SPANS))), Influence())
    if phases is not None and len(phases) == 1:
        influence = INFLUENCES[phases[0]]
    kinds = e.groupby("kind")["count"].sum()
    lost = int(n.unsent_late) + sum(int(kinds.get(f"{what}_exhausted", 0)) for what in ("descriptors", "ports"))
    hits = int(times_of(["response"], "hit")[0])
    others = max(int(n.completed) - hits, 0)
    of_hit = 1 + (int(n.hit_bytes) / hits / AT_ONCE if hits else 0.0)
    missed_bytes = max(int(n.body_bytes_in) - int(n.hit_bytes), 0)
    of_other = 3 + 2 * (missed_bytes / others / AT_ONCE if others else 0.0)
    needs = {"hit": of_hit, "miss": of_other, "other": of_other}
    needs["all"] = needs["completed"] = of_other if others else of_hit

    mean_and_least = None

    def by_class(metric, *waits):
        nonlocal mean_and_least
        found = {
            "all": censored(times_of([metric, *waits], *ENDED, "timed_out", "all"), times_of([metric], *ENDED)),
            "completed": milliseconds(times_of([metric], *ENDED)),
        } | {name: milliseconds(times_of([metric], name)) for name in ENDED}
        for name in found:
            which = (name,) if name in ENDED else ENDED
            every = times_of([metric, *waits], *ENDED, "timed_out", "all") if name == "all" else times_of([metric], *which)
            every = Spread.of(every)
            open_too = (*which, "timed_out") if name == "all" else which
            disturbed = [times_of([f"{metric}_{part}"], *open_too) for part in ("disturbed", "least")]
            if name == "all" and waits:
                unsent = [times_of([part], "all") for part in (*waits, "unsent_least")]
                if len({count for count, *_ in unsent}) == 1:
                    disturbed = [together(*both) for both in zip(disturbed, unsent)]
            disturbed = [Spread.of(part) for part in disturbed]
            aftermath = [Spread.of(times_of([part], *which)) for part in ("aftermath", "passing")]
            late = Spread.of(times_of(["lateness"], "all")) if metric == "response" else None
            if every.count:
                own = Own(
                    every, disturbed, aftermath, late, influence, seconds, needs[name],
                    hits * of_hit + others * of_other, lost, n, name == "hit",
                )  # fmt: skip
                own.every = every
                if name != "hit":
                    ended = int(times_of(["response"], *which)[0])
                    own.touched += 1.0 if influence.behind else min(int(m.written_late) / max(ended, 1), 1.0)
                if (metric, name) == ("response", "completed"):
                    exact = every.total / every.count
                    beside = Spread.of(times_of(["unread"], "all")).beside(SOONER_US) + late.beside(BEGUN_LATE_US)
                    mean_and_least = exact + beside / max(int(n.completed), 1), min(own.mean()[0], exact)
                found[name] = with_own(found[name], own, influence.unknown)
        return found

    # Hits that the origin says were validated, beyond those whose response showed it.
    hidden = min(max(m.validated_basic - n.revalidated, 0), n.hits + n.collapsed)
    hidden_bytes = max(m.validated_basic_bytes - n.revalidated_bytes, 0)
    hidden_bytes = min(hidden_bytes, n.hit_bytes + n.collapsed_bytes)
    peak = lambda t, column: int(t[column].max()) if len(t) else 0
    used = resources(spans)
    spared = lambda at_origins, at_robots: rounded(1 - at_origins / at_robots, 6) if at_robots else None
    class_counts = lambda by: {k: int(v) for k, v in c[c.by == by].groupby("value")["count"].sum().items()}
    as_they_are = ["due", "completed", "basic", "unsure_outcomes", "unsent", "unsent_late", "not_reached", "retries", "on_reused_connection", "pages",
                   "streams_opened", "streams_reset", "goaways", "flow_stalls", "tls_full", "tls_resumed", "working_set",
                   "working_set_bytes"]
    by_tls = class_counts("tls")
    found = {name: int(n[name]) for name in as_they_are} | {
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
        "lateness_us": lateness(select(phases, "robots", ["lateness"])),
        "handshake_ms": milliseconds(select(phases, "robots", ["handshake"])),
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
        "disk": disk(spans),
        "origins": {name: int(m[name]) for name in ["requests", "not_modified", "validations", "refused", "broken",
                                                     "streams_opened", "streams_reset", "flow_stalls",
                                                     "tls_full", "tls_resumed", "tls_failed"]}
        | {
            "rate": per_second(m.requests),
            "body_bytes": int(m.body_bytes_out),
            "service_time_ms": milliseconds(select(phases, "origins", ["service"])),
            "lateness_us": lateness(select(phases, "origins", ["lateness"])),
        },
        "by_method": class_counts("method"),
        "by_type": class_counts("type"),
        "by_status": class_counts("status"),
        "special": special(n, m),
    } | ({"by_tls": by_tls} if by_tls else {})
    return known(found, n, influence, seconds, lost, mean_and_least)


def known(found, n, influence, seconds, lost, mean_and_least):
    """The figures that are no times, with the interval of each; null where nothing bounds them."""
    # Where Assay was late, objects of pages that came too late would have been requests, too.
    lost += int(n.not_reached) if influence.late else 0
    dhr, bhr, offload = found["dhr"], found["bhr"], found["offload"]
    own = own_shares(
        {
            "dhr.measured": (dhr["measured"], int(n.basic)),
            "bhr.measured": (bhr["measured"], int(n.basic)),
            "offload.requests": (offload["requests"], int(n.sent)),
            "offload.bytes": (offload["bytes"], int(n.sent)),
        },
        lost,
        influence.unknown,
    )
    if seconds:
        rate, high = n.completed / seconds, (n.completed + lost) / seconds
        if influence.closed:
            # Robots that wait would have sent more, as much as they could have been faster.
            mean, least = mean_and_least or (1.0, 1.0)
            high = high * max(mean / least, 1.0) if least > 0 and not influence.saturated else None
        bounded = high
        stated = interval(rate, rate, bounded, 0.0)
        for end in ("low", "high"):
            stated[end] = None if stated[end] is None else rounded(stated[end], 3)
        own["rate.measured"] = NOT_KNOWN if influence.unknown >= TIMES else stated
    for name, stated in own.items():
        group, which = name.split(".")
        if stated["certainty"] == "unknown":
            found[group][which] = None
        for end in ("low", "high"):
            stated[end] = None if stated[end] is None else rounded(stated[end], 6)
    return found | {"own": own}


def special(n, m):
    ours = ["parts", "multiparts", "unchecked_parts", "unsatisfied", "coded", "redirected", "refused"]
    ours += ["faults_passed", "faults_hidden"]
    theirs = ["challenges", "authenticated", "wrong_credentials", "cookies_set", "continued", "expectations_refused"]
    made = ["fault_statuses", "fault_resets", "fault_slow_starts", "fault_slow_bodies"]
    counts = {name: int(n[name]) for name in ours + ["broken_off", "broken_off_by_origin", "reloads_from_store"]}
    counts |= {name: int(m[name]) for name in theirs + ["retried"]}
    return counts | {"faults": sum(int(m[name]) for name in made)}


# What processes, the machine and its disk did: a second that reaches over an end counts with its share.


def within(t, spans):
    share = pd.Series(0.0, index=t.index)
    for span in spans:
        begin, end = t.start_ms.clip(lower=span[0]), (t.start_ms + t.length_ms).clip(upper=span[1])
        share += ((end - begin).clip(lower=0) / t.length_ms).fillna(0)
    return t[share > 0], share[share > 0]


def resources(spans):
    used = {}
    seen, shares = within(host.astype({"start_ms": "int64", "length_ms": "int64"}), spans)
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


def disk(spans):
    store = disks[disks.holds == "store"].astype({"start_ms": "int64", "length_ms": "int64"})
    t, share = within(store, spans)
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
        "seeks": traced(spans),
    }


def traced(spans):
    inside = [(blocks.start_ms >= start) & (blocks.start_ms < end) for start, end in spans]
    t = blocks[functools.reduce(lambda one, other: one | other, inside)]
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
    used = resources([total_span])
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
    t, share = within(host[host.role == role].astype({"start_ms": "int64", "length_ms": "int64"}), [span])
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


def headline(phases):
    """The phases that measure, together: the primary ones, else those of constant full load in the statistics, else all."""
    planned, ran = run["phases"], [number for number, phase in enumerate(phases) if phase["due"] > 0]
    level = lambda phase: phase["load"][0] if phase["log_stats"] and phase["load"][0] == phase["load"][1] else 0.0
    top = max((level(planned[number]) for number in ran), default=0.0)
    measure = [number for number in ran if planned[number]["primary"]]
    measure = measure or [number for number in ran if top > 0 and level(planned[number]) >= top * 0.99] or ran
    return {"figures": figures(measure, [SPANS[number] for number in measure]) if measure else None}


SPANS = [(p["start_ms"], p["end_ms"]) if p["start_ms"] is not None else None for p in run["phases"]]
INFLUENCES = [Influence(number) for number in range(len(SPANS))]
phases = [
    figures([number], [span] if span else []) | {name: phase[name] for name in ["start_ms", "end_ms", "load", "recurrence"]}
    for number, (phase, span) in enumerate(zip(run["phases"], SPANS))
]
copied = ["seed", "started_unix_ms", "stream_version", "stream_digest_requests", "target", "host", "placement", "bed"]
recomputed = {name: run[name] for name in copied} | {
    "workload_info": run["workload"],
    "doubts": run["verdict"]["doubts"],
    "examples": json.loads((RUN / "examples.json").read_text()),
    "counters": {name: float(t.value.iloc[-1]) for name, t in proxy.groupby("counter")},
    "headline": headline(phases),
    "total": figures(None, [whole(SPANS)] if whole(SPANS) else []),
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
        if path.endswith(".own"):
            # Left out: it cannot have been touched.
            for name in sorted({*summary, *(ours or {})}):
                compare_own(f"{path}.{name}", summary.get(name), (ours or {}).get(name))
            return
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


def compare_own(path, summary, ours):
    global compared
    compared += 1
    if summary is None and ours is not None:
        equal = ours["low"] == ours["high"] and ours["certainty"] == "known"
    else:
        close = lambda one, two: one == two if None in (one, two) else abs(one - two) <= 1e-9 * max(abs(one), 1)
        ends = [close(summary[end], ours[end]) for end in ("low", "high")] if ours else [False]
        equal = all(ends) and summary["certainty"] == ours["certainty"]
    if not equal:
        different.append(f"{path}: the summary says {summary}, the tables {ours}")


compare("", json.loads((RUN / "summary.json").read_text()), recomputed)
print(f"{compared} figures compared, {len(different)} differ", *different, sep="\n")
sys.exit(bool(different))
