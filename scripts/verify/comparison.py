"""The statistics of `assay compare`, from the values of single runs that its document holds, and from the runs' own files.

The document says which values each subject's runs had; Student's intervals, ratios, Hedges' g, probabilities and Holm's
correction are computed from them here.
"""

import hashlib
import json
import math

import numpy as np

from checks import UNTOUCHED, Check, Row, equal, summed_up, within
from laws import student_distribution, student_quantile

REPETITIONS = 5
SUBJECTS = {"nothing": "direct", "cache": "builtin"}
WORKLOAD = """
Content C = { kind = "c"; mime = { type = "image/gif"; extensions = [".gif"]; }; size = exp(6KB); cachable = 75%; };
Server S = { kind = "s"; contents = [C]; direct_access = contents; xact_think = norm(10ms, 3ms); pconn_use_lmt = const(1000); addresses = ['10.1.0.1:80']; };
Robot R = { kind = "r"; req_rate = 2/sec; recurrence = 70%; pop_model = { pop_distr = popZipf(0.7); }; pconn_use_lmt = const(1000);
            origins = S.addresses; addresses = ['10.2.0.1' ** 50]; };
Phase one = { name = "one"; goal.duration = 3sec; };
schedule(one);
use(S, R);
"""


def run_names():
    return {label: [f"compare-{label}-{seed}" for seed in range(1, REPETITIONS + 1)] for label in SUBJECTS}


def wants(lab):
    for label, names in run_names().items():
        for seed, name in enumerate(names, 1):
            lab.want(name, WORKLOAD, "--proxy", SUBJECTS[label], "--seed", seed, "--no-pin")


def without_own_errors(path):
    """Runs that disturbed each other have numbers with wide intervals, which widen those of the comparison; its arithmetic is
    checked with numbers as they were seen, as it is for runs of before own errors were recorded."""
    info = json.loads((path / "run.json").read_text())
    info["own_errors"] = False
    info["verdict"]["doubts"] = []
    for phase in info["phases"]:
        phase["disturbed"] = False
    (path / "run.json").write_text(json.dumps(info))
    sums = path / "SHA256SUMS"
    names = [line.split("  ", 1)[1] for line in sums.read_text().splitlines()]
    sums.write_text("".join(f"{hashlib.sha256((path / name).read_bytes()).hexdigest()}  {name}\n" for name in names))


def compared(lab):
    """The document, and the runs of each subject."""
    runs = {label: [lab.get(name) for name in names] for label, names in run_names().items()}
    for run in sum(runs.values(), []):
        without_own_errors(run.path)
    named = [f"{label}={run.path}" for label, of in runs.items() for run in of]
    return json.loads(lab.assay("compare", *named, "--json", codes=(0,))), runs


# One difference.


def tail(t, freedom):
    """P(|T| >= t)."""
    return 2 * (1 - student_distribution(abs(t), freedom))


def estimate(base, other):
    """Difference with interval, ratio with interval, Hedges' g and p, of pairs of runs."""
    base, other = np.array(base, dtype=float), np.array(other, dtype=float)
    n = len(base)
    width = student_quantile(0.975, n - 1)

    def around(values):
        error = values.std(ddof=1) / math.sqrt(n)
        return values.mean(), error, [values.mean() - width * error, values.mean() + width * error]

    difference, error, interval = around(other - base)
    found = {
        "difference": difference,
        "interval": interval,
        "p": 1.0 if difference == 0 else tail(difference / error, n - 1),
    }
    if (base > 0).all() and (other > 0).all():
        logarithm, _, ends = around(np.log(other / base))
        found |= {"ratio": math.exp(logarithm), "ratio_interval": [math.exp(end) for end in ends]}
    spread = math.sqrt((base.var(ddof=1) + other.var(ddof=1)) / 2)
    half = (n - 1) / 2
    if spread:
        found["effect_size"] = difference / spread * math.gamma(half) / math.gamma(half - 0.5) / math.sqrt(half)
    return found


def contrast_rows(name, said, base, other):
    """Ours against the document's. Where runs hardly differ, chance is taken to be no smaller than the values' own rounding
    (0.1 % of a time at most), which the document does not hold: there, an interval may be wider than ours, never narrower."""
    ours, rows = estimate(base, other), []
    coarse = np.std(np.array(other) - np.array(base), ddof=1) < 0.005 * abs(np.mean(base)) or not np.any(
        np.array(other) - base
    )
    alike = lambda what, ours, theirs: within(f"{name}.{what}", ours, theirs, 1e-9 + 1e-6 * abs(ours), 6)
    rows.append(alike("difference", ours["difference"], said["difference"]))
    if coarse:
        low, high = said["interval"]
        wide = low <= ours["interval"][0] + 1e-9 and high >= ours["interval"][1] - 1e-9
        return [*rows, Row(f"{name}.interval", "no narrower than Student's", str(said["interval"]), wide)]
    rows += [alike(f"interval.{end}", ours["interval"][end], said["interval"][end]) for end in (0, 1)]
    if said["p"] is not None:
        rows.append(alike("p", ours["p"], said["p"]))
    if said["ratio"] is not None:
        rows.append(alike("ratio", ours["ratio"], said["ratio"]))
        rows += [
            alike(f"ratio_interval.{end}", ours["ratio_interval"][end], said["ratio_interval"][end]) for end in (0, 1)
        ]
    if said["effect_size"] is not None:
        rows.append(alike("g", ours["effect_size"], said["effect_size"]))
    return rows


def student_rows(document, common):
    """Every row of every table; `common`: per table scope, pairs of mean response times of common requests."""
    rows = []
    for table in document["tables"]:
        for metric in table["rows"]:
            said = metric["contrasts"][0]
            values = [values["runs"] for values in metric["values"]]
            if said["common_xacts"] is not None:
                values = common
            if said["pairs"] < 3 or said["may_be_more"] or said["may_be_less"] or any(len(of) != said["pairs"] for of in values):
                continue
            rows += contrast_rows(metric["metric"], said, *values)
    return rows


def student(lab):
    document, runs = compared(lab)
    rows = student_rows(document, common_means(*runs.values()))
    yield equal("runs that count", 2 * REPETITIONS, sum(run["counts"] for run in document["runs"]))
    yield Row("figures compared", "50 at least", str(len(rows)), len(rows) >= 50)
    yield summed_up("differences, intervals, ratios, g and p", rows)


def common_means(base, other):
    """Mean response times in ms of the requests that both runs of a pair completed."""
    means = ([], [])
    for pair in zip(base, other):
        tables = []
        for run in pair:
            done = run.xacts[run.xacts.error.isna() & run.xacts.last_byte_us.notna()]
            tables.append(done.set_index(["robot", "number", "place"]).eval("last_byte_us - due_us"))
        both = tables[0].index.intersection(tables[1].index)
        for means_of, table in zip(means, tables):
            means_of.append(table[both].mean() / 1000)
    return means


# A table of them.


def holm(probabilities):
    """Step down: the smallest of m is multiplied by m, the next by m - 1 …, and none comes out smaller than the one before."""
    adjusted, floor = [None] * len(probabilities), 0.0
    for rank, place in enumerate(sorted(range(len(probabilities)), key=probabilities.__getitem__)):
        floor = max(floor, min(1.0, probabilities[place] * (len(probabilities) - rank)))
        adjusted[place] = floor
    return adjusted


def holm_rows(document):
    """All cells of the scenarios are a family; each table is one, without what stands in the scenarios."""
    first = [c for scenario in document["scenarios"] for cell in scenario["cells"] for c in cell["contrasts"]]
    rows = family_rows("scenarios", first)
    for table in document["tables"]:
        own = [
            c for metric in table["rows"] if not (metric["headline"] and table["judged"]) for c in metric["contrasts"]
        ]
        rows += family_rows(f"table of {table['scope']}", own)
        rows.append(
            equal(f"tests in the table of {table['scope']}", sum(c["p"] is not None for c in own), table["tests"])
        )
    return rows


def family_rows(name, contrasts):
    tested = [c for c in contrasts if c["p"] is not None]
    rows = []
    for number, (said, ours) in enumerate(zip(tested, holm([c["p"] for c in tested]))):
        rows.append(within(f"{name}, p {number}", ours, said["p_adjusted"], 1e-9))
        if said["verdict"] in ("better", "worse"):
            rows.append(Row(f"{name}, verdict {number}", "p <= 0.05", f"{ours:.3g}", ours <= 0.05))
    return rows


def correction(lab):
    document, _ = compared(lab)
    rows = holm_rows(document)
    verdicts = [
        c["verdict"] for scenario in document["scenarios"] for cell in scenario["cells"] for c in cell["contrasts"]
    ]
    yield summed_up("corrected probabilities, and verdicts that rest on them", rows)
    yield Row(
        "a cache is told from none",
        "some better or worse",
        f"{sum(v in ('better', 'worse') for v in verdicts)}",
        any(verdict in ("better", "worse") for verdict in verdicts),
    )


def values(lab):
    """What the document says of single runs, against their own summaries."""
    document, runs = compared(lab)
    rows = []
    of_phase = {
        "throughput_per_s": lambda s: s["rate"]["measured"],
        "offered_per_s": lambda s: s["rate"]["offered"],
        "response_mean_ms": lambda s: s["response_time_ms"]["completed"]["mean"],
        "dhr": lambda s: s["dhr"]["measured"],
        "response_p50_ms": lambda s: s["response_time_ms"]["all"]["p50"],
        "bhr": lambda s: s["bhr"]["measured"],
        "response_p99_ms": lambda s: s["response_time_ms"]["all"]["p99"],
    }
    for metric in (row for table in document["tables"] for row in table["rows"] if row["metric"] in of_phase):
        for subject, of in zip(metric["values"], runs.values()):
            for run, value in zip(of, subject["runs"], strict=True):
                summary = of_phase[metric["metric"]](run.summary["phases"][0])
                rows.append(within(f"{metric['metric']} of {run.path.name}", summary, value, 0.0006))
    yield Row(
        "values compared",
        f"{len(of_phase) * 2 * REPETITIONS}",
        str(len(rows)),
        len(rows) == len(of_phase) * 2 * REPETITIONS,
    )
    yield summed_up("values of single runs are those of their summaries", rows)


# Self-tests: data that is right, and data that is wrong.


def synthetic(**wrong):
    """A contrast as the document has it; the data are Student's own of 1908 (hours of sleep, ten patients, two drugs)."""
    said = {
        "pairs": 10,
        "difference": 1.58,
        "interval": [0.7001142, 2.4598858],
        "p": 0.00283289,
        "ratio": None,
        "effect_size": 0.7605094,
        "may_be_more": False,
        "may_be_less": False,
        "common_xacts": None,
        "verdict": "better",
    }
    values = [
        [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0],
        [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4],
    ]
    said |= wrong
    return {"tables": [{"rows": [{"metric": "sleep", "contrasts": [said], "values": [{"runs": of} for of in values]}]}]}


def test_student(lab):
    yield UNTOUCHED, student_rows(synthetic(), None)
    yield "a normal law in place of Student's", student_rows(synthetic(interval=[0.81767, 2.34233]), None)
    yield "a p with one side", student_rows(synthetic(p=0.00141645), None)
    yield "an effect without Hedges' correction", student_rows(synthetic(effect_size=0.8322), None)


def test_correction(lab):
    def document(adjusted, verdicts):
        cells = [
            {"contrasts": [{"p": p, "p_adjusted": a, "verdict": v}]}
            for p, a, v in zip((0.01, 0.04, 0.03), adjusted, verdicts)
        ]
        return {"scenarios": [{"cells": cells}], "tables": []}

    calm = ["better", "no_difference_seen", "no_difference_seen"]
    yield UNTOUCHED, holm_rows(document([0.03, 0.06, 0.06], calm))
    yield "Bonferroni's", holm_rows(document([0.03, 0.12, 0.09], calm))
    yield "not corrected", holm_rows(document([0.01, 0.04, 0.03], calm))
    yield "a verdict too many", holm_rows(document([0.03, 0.06, 0.06], ["better", "worse", "no_difference_seen"]))


def test_values(lab):
    rows = lambda value: [within("dhr", 0.5, value, 0.0006)]
    yield UNTOUCHED, rows(0.5)
    yield "another run's value", rows(0.51)


CHECKS = [
    Check(
        "compare-values",
        "A comparison uses the values of its runs.",
        "values in the document against each run's summary.json",
        "assay compare --json",
        values,
        test_values,
        wants,
    ),
    Check(
        "compare-student",
        "Differences, 95 % intervals, ratios, Hedges' g and p follow from the values of runs.",
        "Student's law by Simpson's rule, formulas in numpy; mean response time over common requests from xacts.parquet",
        "assay compare --json",
        student,
        test_student,
        wants,
    ),
    Check(
        "compare-holm",
        "Probabilities are corrected after Holm over each table, and verdicts rest on the corrected ones.",
        "Holm's procedure over the document's own probabilities",
        "assay compare --json",
        correction,
        test_correction,
        wants,
    ),
]
