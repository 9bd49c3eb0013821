"""Do requests come due as the theory wants them? Poisson arrivals, or the law of `req_inter_arrival`; from due times in
xacts.parquet, where every launch is, sent or not.

Left out, because they have another law: embedded objects, robots without a rate, sessions, load that adapts, ramps.
"""

import numpy as np
import pandas as pd

import laws
from checks import UNTOUCHED, Check, Row, between, summed_up
from mix import bundled
from mix import wants as want_bundled

# Two worlds, two kinds of robots, private interests; a third of the time each at recurrence 0, 50 % and 100 %.
PHASE_S = 30
RATE = 1000
SLOW, FAST = (400, 1), (200, 3)  # robots, and the rate of each
FLAT = f"""
Content A = {{ kind = "a"; mime = {{ type = "image/gif"; extensions = [".gif"]; }}; size = const(300Byte); cachable = 80%; }};
Content B = {{ kind = "b"; mime = {{ type = "text/css"; extensions = [".css"]; }}; size = const(400Byte); cachable = 80%; }};
Server S = {{ kind = "sa"; contents = [A]; direct_access = contents; pconn_use_lmt = const(100000); addresses = ['10.1.0.1:80']; }};
Server T = S;
T.kind = "sb"; T.contents = [B]; T.direct_access = [B]; T.addresses = ['10.1.0.2:80'];
Robot R = {{ kind = "slow"; req_rate = {SLOW[1]}/sec; recurrence = 100%; interests = ["public": 90%, "private"]; pop_model = {{ pop_distr = popUnif(); }};
            pconn_use_lmt = const(100000); idle_pconn_tout = 60sec; origins = [S.addresses: 70%, T.addresses]; addresses = ['10.2.0.1' ** {SLOW[0]}]; }};
Robot Q = R;
Q.kind = "fast"; Q.req_rate = {FAST[1]}/sec; Q.addresses = ['10.2.0.1' ** {FAST[0]}];
Phase none = {{ name = "none"; goal.duration = {PHASE_S}sec; recur_factor_beg = 0; recur_factor_end = 0; }};
Phase half = {{ name = "half"; goal.duration = {PHASE_S}sec; recur_factor_beg = 0.5; recur_factor_end = 0.5; }};
Phase full = {{ name = "full"; goal.duration = {PHASE_S}sec; recur_factor_beg = 1; recur_factor_end = 1; }};
schedule(none, half, full);
use(S, T, R, Q);
"""

RENEWAL_S, MEAN_S, ROBOTS = 15, 0.1, 40
RENEWALS = {
    "const": ("const(100ms)", None),
    "unif": ("unif(50ms, 150ms)", laws.uniform(0.05, 0.15)),
    "exp": ("exp(100ms)", laws.exponential(0.1)),
    "norm": ("norm(100ms, 20ms)", laws.normal(0.1, 0.02)),
    "logn": ("logn(100ms, 50ms)", laws.log_normal(0.1, 0.05)),
}
RENEWAL = (
    """
Content A = { kind = "a"; mime = { type = "image/gif"; extensions = [".gif"]; }; size = const(300Byte); cachable = 80%; };
Server S = { kind = "s"; contents = [A]; direct_access = contents; pconn_use_lmt = const(100000); addresses = ['10.1.0.1:80']; };
Robot Base = { recurrence = 50%; open_conn_lmt = 10; pop_model = { pop_distr = popUnif(); }; pconn_use_lmt = const(100000); idle_pconn_tout = 60sec;
               origins = S.addresses; addresses = ['10.2.0.1' ** ROBOTS]; };
""".replace("ROBOTS", str(ROBOTS))
    + "".join(
        f'Robot {name.title()} = Base; {name.title()}.kind = "{name}"; {name.title()}.req_inter_arrival = {law};\n'
        for name, (law, _) in RENEWALS.items()
    )
    + f"""
Phase one = {{ name = "one"; goal.duration = {RENEWAL_S}sec; }};
schedule(one);
use(S, {", ".join(name.title() for name in RENEWALS)});
"""
)


def want_flat(lab):
    lab.want("flat", FLAT, "--direct", "--no-pin", limit_s=240)


def launches_of(xacts):
    """Due times in seconds, sorted, with robot, type and phase."""
    launches = xacts[xacts.place == 0].sort_values("due_us", kind="stable")
    return launches[["robot", "content", "phase"]].assign(due=launches.due_us / 1e6)


def dispersion_row(what, times, begin, end, window):
    index, windows = laws.dispersion(times, begin, end, window)
    mean = len(times) / (end - begin) * window
    return between(f"{what}, {window:g} s windows", *laws.dispersion_bounds(windows, mean), index, 3)


def gap_row(what, gaps, mean=None):
    """Gaps against the exponential law: with the rate that is declared, or with their own."""
    limit = laws.kolmogorov_limit(len(gaps)) if mean else laws.fitted_limit() / np.sqrt(len(gaps))
    far = laws.kolmogorov(gaps, laws.exponential(mean or gaps.mean()))
    return Row(f"{what}, {len(gaps):,} gaps", f"KS <= {limit:.4f}", f"{far:.4f}", far <= limit)


def flat_rows(launches):
    """One row for each scope and phase, of counts and gaps."""
    groups = {"slow": launches.robot < SLOW[0], "fast": launches.robot >= SLOW[0]}
    scopes = {
        "all": (launches, RATE),
        "world a": (launches[launches.content == 0], 0.7 * RATE),
        "world b": (launches[launches.content == 1], 0.3 * RATE),
        "slow robots": (launches[groups["slow"]], SLOW[0] * SLOW[1]),
        "fast robots": (launches[groups["fast"]], FAST[0] * FAST[1]),
    }
    for phase, recurrence in enumerate(("0", "50 %", "100 %")):
        begin, end = phase * PHASE_S, (phase + 1) * PHASE_S
        for scope, (of, rate) in scopes.items():
            times = of.due[of.phase == phase].to_numpy()
            rows = [dispersion_row("dispersion", times, begin, end, window) for window in (0.01, 0.1, 1.0)]
            rows.append(gap_row("all of one", np.diff(times), 1 / rate))
            expected = rate * PHASE_S
            rows.append(
                between("launches", *(expected + laws.NORMAL * s * np.sqrt(expected) for s in (-1, 1)), len(times), 6)
            )
            yield summed_up(f"recurrence {recurrence}, {scope}", rows)
    yield dispersion_row("all, the whole run", launches.due.to_numpy(), 0, 3 * PHASE_S, 10.0)
    for name, (robots, rate) in (("slow", SLOW), ("fast", FAST)):
        gaps = first_gaps(launches[groups[name]], int(0.6 * rate * 3 * PHASE_S))
        yield gap_row(f"each {name} robot's own", gaps, 1 / rate)


def first_gaps(launches, count):
    """The first gaps of each robot: as many as it surely has, since gaps that fit in before the end are too short on average.
    The time until the first launch is not among them."""
    gaps = launches.groupby("robot").due.apply(lambda due: np.diff(due.to_numpy()[: count + 1]))
    return np.concatenate(gaps.to_list())


def flat(lab):
    yield from flat_rows(launches_of(lab.get("flat").xacts))


# Bundled workloads.


def is_poisson(workload):
    """Robots with a rate, and nothing that gives them another law."""
    if any("rate" not in robots["pace"] or robots["session"] for robots in workload["robots"]):
        return False
    return not any(phase["thermostat"] or phase["script"] for phase in workload["schedule"]["phases"])


def even_phases(workload, phases):
    """(number, begin, end) in seconds of phases in which the rate does not change."""
    for number, (phase, planned) in enumerate(zip(phases, workload["schedule"]["phases"])):
        even = len(set(phase["load"])) == 1 and planned["population"]["begin"] == planned["population"]["end"]
        if even and phase["start_ms"] is not None:
            yield number, phase["start_ms"] / 1000, phase["end_ms"] / 1000


def phase_rows(times, begin, end):
    rows = [
        dispersion_row("dispersion", times, begin, end, window)
        for window in (0.01, 0.1, 1.0)
        if (end - begin) / window >= 8
    ]
    return [*rows, gap_row("fitted", np.diff(times))]


def of_bundled(lab):
    for name, xacts, workload, phases in bundled(lab):
        launches = launches_of(xacts)
        for number, begin, end in even_phases(workload, phases) if is_poisson(workload) else ():
            times = launches.due[launches.phase == number].to_numpy()
            if len(times) >= 200:
                recurrence = workload["robots"][0]["recurrence"] * phases[number]["recurrence"][0]
                yield summed_up(
                    f"{name}, {phases[number]['name']} (recurrence {recurrence:.2f}), {len(times):,} launches",
                    phase_rows(times, begin, end),
                )


# Renewal laws.


def renewal_rows(launches):
    for number, (name, (text, law)) in enumerate(RENEWALS.items()):
        mine = launches[(launches.robot >= number * ROBOTS) & (launches.robot < (number + 1) * ROBOTS)]
        gaps = first_gaps(mine, 100)
        variation = gaps.std() / gaps.mean()
        if law is None:
            yield Row(
                f"{text}, gaps",
                f"all of {MEAN_S} s, variation < 0.0001",
                f"mean {gaps.mean():.4f}, variation {variation:.4f}",
                bool(np.abs(gaps - MEAN_S).max() < 1e-5),
            )
        else:
            limit, far = laws.kolmogorov_limit(len(gaps)), laws.kolmogorov(gaps, law)
            yield Row(
                f"{text}, {len(gaps):,} gaps",
                f"KS <= {limit:.4f}",
                f"{far:.4f} (variation {variation:.3f})",
                far <= limit,
            )


def renewal(lab):
    yield from renewal_rows(launches_of(lab.get("renewal").xacts))


# A queue behind them, in virtual time.

LOAD = 0.9
SAMPLES = 2000


def wait_ranges(count, service):
    """Mean wait and its 99th percentile of M/D/1 from an empty start, over so many arrivals: lowest and highest of SAMPLES."""
    rng = np.random.default_rng(11)
    means, tails = [], []
    for _ in range(SAMPLES):
        waits = laws.waits(np.cumsum(rng.exponential(service / LOAD, count)), service)
        means.append(waits.mean())
        tails.append(np.partition(waits, int(0.99 * count))[int(0.99 * count)])
    return (min(means), max(means)), (min(tails), max(tails))


def queue_rows(launches):
    """Due times into one server that needs 0.9 / rate for each; against Pollaczek and Khinchin, and Erlang's law of waits."""
    service = LOAD / RATE
    theory = laws.md1_mean_wait(LOAD, service), laws.md1_quantile(0.99, LOAD, service)
    ranges = wait_ranges(RATE * PHASE_S, service)
    for phase, recurrence in enumerate(("0", "50 %", "100 %")):
        waits = laws.waits(launches.due[launches.phase == phase].to_numpy(), service)
        found = waits.mean(), np.quantile(waits, 0.99)
        for what, expected, (low, high), value in zip(("mean wait", "p99 of waits"), theory, ranges, found):
            yield Row(
                f"recurrence {recurrence}, {what}",
                f"{expected * 1e3:.2f} ms ({low * 1e3:.2f} to {high * 1e3:.2f})",
                f"{value * 1e3:.2f} ms",
                bool(low <= value <= high),
            )


def queue(lab):
    yield from queue_rows(launches_of(lab.get("flat").xacts))


# Self-tests: data that is right, and data that is wrong.


def synthetic(first_visits=None):
    """Poisson launches as FLAT declares them; or with a share of them spaced evenly, as first visits once were."""
    rng = np.random.default_rng(5)
    parts = []
    for phase in range(3):
        for robots, offset, rate in ((*SLOW[:1], 0, SLOW[1]), (*FAST[:1], SLOW[0], FAST[1])):
            n = rng.poisson(robots * rate * PHASE_S)
            due = np.sort(rng.uniform(phase * PHASE_S, (phase + 1) * PHASE_S, n))
            if first_visits:
                even = rng.random(n) < first_visits
                due[even] = np.linspace(phase * PHASE_S, (phase + 1) * PHASE_S, even.sum(), endpoint=False)
            parts.append(
                pd.DataFrame(
                    {
                        "robot": offset + rng.integers(0, robots, n),
                        "phase": phase,
                        "due": due,
                        "content": (rng.random(n) >= 0.7).astype(int),
                    }
                )
            )
    return pd.concat(parts).sort_values("due")


def test_flat(lab):
    yield UNTOUCHED, list(flat_rows(synthetic()))
    yield "every launch evenly spaced", list(flat_rows(synthetic(1.0)))
    yield "a third evenly spaced", list(flat_rows(synthetic(0.33)))
    launches = synthetic()
    yield (
        "3 % more launches",
        list(
            flat_rows(pd.concat([launches, launches.iloc[::33].assign(due=lambda x: x.due + 0.003)]).sort_values("due"))
        ),
    )
    yield "due times in whole milliseconds", list(flat_rows(launches.assign(due=launches.due.round(3))))


def test_bundled(lab):
    launches = synthetic()
    times = launches.due[launches.phase == 0].to_numpy()[:2000]
    yield UNTOUCHED, phase_rows(times, 0, times[-1])
    yield (
        "half of them evenly spaced",
        phase_rows(np.sort(np.concatenate([times[::2], np.linspace(0, times[-1], 1000)])), 0, times[-1]),
    )
    yield "bursts", phase_rows(np.sort(np.concatenate([times, times[::4] + 1e-5])), 0, times[-1])


def test_renewal(lab):
    rng = np.random.default_rng(6)
    spread = np.sqrt(np.log(1.25))
    draws = {
        "const": lambda n: np.full(n, 0.1),
        "unif": lambda n: rng.uniform(0.05, 0.15, n),
        "exp": lambda n: rng.exponential(0.1, n),
        "norm": lambda n: rng.normal(0.1, 0.02, n),
        "logn": lambda n: rng.lognormal(np.log(0.1) - spread**2 / 2, spread, n),
    }

    def launches(**other):
        drawn = [
            (number * ROBOTS + robot, np.cumsum(other.get(name, draw)(140)))
            for number, (name, draw) in enumerate(draws.items())
            for robot in range(ROBOTS)
        ]
        return pd.concat(pd.DataFrame({"robot": robot, "due": due}) for robot, due in drawn)

    yield UNTOUCHED, list(renewal_rows(launches()))
    for name in draws:
        wrong = draws["exp"] if name != "exp" else draws["logn"]
        yield f"another law in place of {name}", list(renewal_rows(launches(**{name: wrong})))


def test_queue(lab):
    yield UNTOUCHED, list(queue_rows(synthetic()))
    yield "half of them evenly spaced", list(queue_rows(synthetic(0.5)))


CHECKS = [
    Check(
        "arrivals-flat",
        "Requests of each kind of robot, of each world and all together are Poisson arrivals of the declared rate.",
        "variance over mean of counts in windows of 10 ms to 10 s; Kolmogorov-Smirnov of gaps against the exponential law; at "
        "recurrence 0, 50 % and 100 %",
        "assay run --direct --xact-log",
        flat,
        test_flat,
        want_flat,
    ),
    Check(
        "arrivals-bundled",
        "So are those of bundled workloads, in phases of an even rate.",
        "the same, in windows of 10 ms to 1 s, gaps with their own mean",
        "assay run WORKLOAD --rehearse 15s --xact-log",
        of_bundled,
        test_bundled,
        want_bundled,
    ),
    Check(
        "arrivals-renewal",
        "Gaps of robots with req_inter_arrival follow the law that is given.",
        "coefficient of variation and Kolmogorov-Smirnov of each robot's gaps, for five laws",
        "assay run --direct --xact-log",
        renewal,
        test_renewal,
        lambda lab: lab.want("renewal", RENEWAL, "--direct", "--no-pin"),
    ),
    Check(
        "queue-md1",
        "A queue behind these arrivals waits as M/D/1 does at 90 % load.",
        f"Lindley's recursion over due times against Pollaczek-Khinchin and Erlang's law; in brackets the range of {SAMPLES:,} samples "
        "of as many Poisson arrivals",
        "assay run --direct --xact-log",
        queue,
        test_queue,
        want_flat,
    ),
]
