"""What a soak showed: whether memory and descriptors stay, and whether nothing was lost or wrong that must not be.

*Flat.* Of each process, what it has is looked at after the first quarter, cycle by cycle of the load: the least that it had in each, which
is what it keeps when little is going on. A straight line is laid through these; its slope is given in percent of their mean an hour, with
the error at 95 % (Student's t, from how far they lie off the line). `grows`: slope less error is above the limit. `flat`: slope and
error together are below it. `undecided`: the run was too short, or its values vary too much, to say which.

*Lost* is every request without its whole and right response, but one that a server had when it was killed or stopped, if it could not be sent
to another: its response had begun (it is cut), or it is a POST.
"""

import math
import statistics

LIMIT_PERCENT = 0.1
FIRST = 0.25
# Processes with fewer cycles after that have no slope.
LEAST_CYCLES = 4
# Not the proportional set: it changes with whoever else has the same program.
VALUES = ("rss_kb", "fds")
# Two-sided, 95 %, by degrees of freedom; beyond that as the last.
STUDENT = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10, 2.09, 2.09,
           2.08, 2.07, 2.07, 2.06, 2.06, 2.06, 2.05, 2.05, 2.05, 2.04]
# From when a server was killed until nothing can be under way to it any more.
AROUND_S = 0.5


def slope(points):
    """Of (seconds, value): percent of the mean an hour, and its error."""
    times, values = [at / 3600 for at, _ in points], [value for _, value in points]
    mean, middle = statistics.mean(values), statistics.mean(times)
    spread = sum((at - middle) ** 2 for at in times)
    per_hour = sum((at - middle) * (value - mean) for at, value in zip(times, values)) / spread
    off = sum((value - mean - per_hour * (at - middle)) ** 2 for at, value in zip(times, values))
    freedom = len(points) - 2
    error = STUDENT[min(freedom, len(STUDENT)) - 1] * math.sqrt(off / freedom / spread)
    return (100 * per_hour / mean, 100 * error / mean) if mean else (0.0, 0.0)


def lowest(samples, value, cycle_s):
    """The least of each whole cycle of the load after the process's first quarter: (its middle, value)."""
    first_s, last_s = samples[0]["into_s"], samples[-1]["into_s"]
    from_s = first_s + FIRST * (last_s - first_s)
    cycles = {}
    for sample in samples:
        cycle = int(sample["into_s"] // cycle_s)
        if cycle * cycle_s >= from_s and (cycle + 1) * cycle_s <= last_s:
            cycles.setdefault(cycle, []).append(sample[value])
    return [((cycle + 0.5) * cycle_s, min(values)) for cycle, values in sorted(cycles.items())]


def flat(samples, cycle_s):
    """A row for each process that lasted: its first and last cycle, slope, error, verdict. A part is what went on without a break."""
    processes = {}
    for sample in samples:
        processes.setdefault((sample["part"], sample["process"], sample["pid"]), []).append(sample)
    rows = []
    for (part, name, _), own in sorted(processes.items()):
        for value in VALUES:
            points = lowest(own, value, cycle_s)
            if len(points) < LEAST_CYCLES:
                continue
            percent, error = slope(points)
            verdict = "grows" if percent - error > LIMIT_PERCENT else "flat" if percent + error < LIMIT_PERCENT else "undecided"
            rows.append({"part": part, "process": name, "value": value, "first": points[0][1], "last": points[-1][1],
                         "most": max(sample[value] for sample in own), "cycles": len(points),
                         "percent_an_hour": round(percent, 3), "error": round(error, 3), "verdict": verdict})
    return rows


def may_fail(failure, harms):
    """Whether a server had the request when it was harmed, and it could not be repeated."""
    is_repeatable = failure["kind"] != "cut" and failure["request"].startswith("GET ")
    met = any(failure["at"] - AROUND_S <= harm["at"] <= failure["until"] + AROUND_S for harm in harms)
    return failure["kind"] != "wrong" and not is_repeatable and met


def lost(events):
    """Failures that must not be."""
    harms = [event for event in events if event["event"] in ("killed", "stopped")]
    return [event for event in events if event["event"] == "failed" and not may_fail(event, harms)]


def self_test():
    """What must be seen is seen: a leak, a lost request, a wrong response; and what is well is not complained of."""
    def series(leak_kb_an_hour, noise):
        return [{"part": 0, "process": "p", "pid": 1, "into_s": at, "rss_kb": 20_000 + leak_kb_an_hour * at / 3600 + noise(at),
                 "fds": 20} for at in range(0, 8 * 3600, 30)]

    def verdicts(samples):
        return {row["value"]: row["verdict"] for row in flat(samples, 240)}

    wave = lambda at: 800 * (1 + math.sin(at / 37)) + (at * 7919 % 13)
    assert verdicts(series(0, wave)) == {"rss_kb": "flat", "fds": "flat"}, verdicts(series(0, wave))
    assert verdicts(series(60, wave))["rss_kb"] == "grows", verdicts(series(60, wave))
    assert verdicts(series(0, lambda at: 3000 * (at * 7919 // 240 % 17)))["rss_kb"] == "undecided"
    more = [sample | {"fds": 20 + sample["into_s"] // 3600} for sample in series(0, wave)]
    assert verdicts(more)["fds"] == "grows"
    # What grows in the first quarter only may.
    early = [sample | {"rss_kb": 20_000 + min(sample["into_s"], 7200)} for sample in series(0, wave)]
    assert verdicts(early)["rss_kb"] == "flat"
    killed = {"event": "killed", "at": 100.0}
    failed = {"event": "failed", "at": 99.0, "until": 100.2, "request": "GET /o/1-5", "kind": "lost"}
    assert lost([killed, failed]) == [failed], "a GET can be repeated"
    assert not lost([killed, failed | {"kind": "cut"}]), "not once its response has begun"
    assert not lost([killed, failed | {"request": "POST /post"}]), "a POST cannot"
    assert lost([failed | {"request": "POST /post"}]), "nothing was killed"
    assert lost([killed, failed | {"at": 300.0, "until": 301.0, "kind": "cut"}]), "that was later"
    assert lost([killed, failed | {"kind": "wrong"}]), "wrong is never right"
    print("judge: a leak, a lost and a wrong request are seen")
