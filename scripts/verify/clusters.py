"""`assay simulate` against queues whose law is known, and the figures of its document against the repetitions' own."""

import json
import math
import tomllib

import laws
from checks import UNTOUCHED, Check, equal, summed_up, within
from lab import ROOT

SERVICE_S = 0.010
FILE = """
policies = ["{policy}"]
repetitions = {repetitions}
warm-up = "20s"
measure = "{measure_s}s"
{load}
[node]
{node}
[[cluster]]
nodes = {nodes}
[[service]]
name = "work"
processor = "10ms"
law = "{law}"
"""


def erlang_c(servers, offered):
    """The probability to wait in M/M/c."""
    last = offered**servers / math.factorial(servers) / (1 - offered / servers)
    return last / (sum(offered**k / math.factorial(k) for k in range(servers)) + last)


def erlang_arrivals_mean(k, load):
    """Mean time in E_k/M/1, from the root of sigma = (k load / (k load + 1 - sigma)) ** k."""
    sigma = 0.5
    for _ in range(10_000):
        sigma = (k * load / (k * load + 1 - sigma)) ** k
    return SERVICE_S / (1 - sigma)


def md1_time(share, load):
    return laws.md1_quantile(share, load, SERVICE_S) + SERVICE_S


# name: what differs from four queues of one worker with exponential work behind `rand`; load; mean time in s, and its p99.
OPEN = {
    "M/M/1": ({}, 0.8, SERVICE_S / 0.2, -math.log(0.01) * SERVICE_S / 0.2),
    "M/D/1": ({"law": "constant"}, 0.8, SERVICE_S + laws.md1_mean_wait(0.8, SERVICE_S), md1_time(0.99, 0.8)),
    "M/M/1, processor shared": ({"node": ""}, 0.7, SERVICE_S / 0.3, None),
    "M/D/1, processor shared": ({"node": "", "law": "constant"}, 0.7, SERVICE_S / 0.3, None),
    "M/M/3, processors shared": ({"node": "processors = 3"}, 0.8, SERVICE_S * (1 + erlang_c(3, 2.4) / (3 - 2.4)), None),
    "E4/M/1, behind round robin": ({"policy": "rr"}, 0.8, erlang_arrivals_mean(4, 0.8), None),
}
# Clients without think time; work of constant length: nodes, clients, responses per second.
CLOSED = {
    "one node, 7 clients": (1, 7, 100.0),
    "four nodes in turn, 4 clients": (4, 4, 400.0),
    "four nodes in turn, 12 clients": (4, 12, 400.0),
}


def simulated(lab, name, **what):
    file = lab.directory / f"{''.join(c if c.isalnum() else '-' for c in name)}.toml"
    given = {
        "policy": "rand",
        "repetitions": 4,
        "measure_s": 1000,
        "node": "workers = 1",
        "nodes": 4,
        "law": "exponential",
    }
    file.write_text(FILE.format(**given | what))
    (point,) = json.loads(lab.assay("simulate", file, "--json", codes=(0,)))["points"]
    return point


def open_rows(name, point, load, servers, mean_s, p99_s):
    """Some 1.3 million requests: their mean is known to about 1.5 % at 80 % load, and their p99 to about as much."""
    rate = 4 * servers * load / SERVICE_S
    yield within(f"{name}, responses/s", rate, point["responses_per_s"], 0.01 * rate)
    yield within(f"{name}, mean time in ms", mean_s * 1e3, point["response_us"]["mean"] / 1e3, 0.05 * mean_s * 1e3)
    if p99_s:
        yield within(f"{name}, p99 in ms", p99_s * 1e3, point["response_us"]["p99"] / 1e3, 0.07 * p99_s * 1e3)
    for node in point["nodes"]:
        yield within(f"{name}, use of a processor", load, node["processor"], 0.02)


def closed_rows(name, point, nodes, clients, per_second):
    """Nothing is left to chance: each node is never idle, and clients wait for those before them."""
    yield within(f"{name}, responses/s", per_second, point["responses_per_s"], 0.2)
    yield within(f"{name}, mean time in ms", clients / per_second * 1e3, point["response_us"]["mean"] / 1e3, 0.02)


def queues(lab):
    for name, (what, load, mean_s, p99_s) in OPEN.items():
        servers = 3 if "M/M/3" in name else 1
        point = simulated(lab, name, load=f'rates = ["{4 * servers * load / SERVICE_S}/s"]', **what)
        yield from merged(name, open_rows(name, point, load, servers, mean_s, p99_s))
    for name, (nodes, clients, per_second) in CLOSED.items():
        point = simulated(
            lab, name, nodes=nodes, load=f"clients = [{clients}]", policy="rr", law="constant", measure_s=100
        )
        yield from closed_rows(name, point, nodes, clients, per_second)


def merged(name, rows):
    """Rows as they are, but those of nodes as one."""
    rows = list(rows)
    nodes = [row for row in rows if row.what.endswith("processor")]
    yield from (row for row in rows if row not in nodes)
    yield summed_up(f"{name}, use of each node's processor within 0.02", nodes)


# The document's own arithmetic.


def student(values):
    """Mean, and half of its 95 % interval."""
    n, mean = len(values), sum(values) / len(values)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1))
    return mean, laws.student_quantile(0.975, n - 1) * deviation / math.sqrt(n), deviation


def load_of(point):
    return point["mix"], point["cluster"], point["clients"], point["rate_per_s"]


def document_rows(document):
    """Means, intervals and gains of all points, from the repetitions' own rates."""
    first = {}
    for point in document["points"]:
        first.setdefault(load_of(point), point)
    for point in document["points"]:
        rates, base = point["responses_per_s_by_repetition"], first[load_of(point)]
        name = f"{point['policy']}, {point['clients']}"
        mean, half, deviation = student(rates)
        near = lambda what, ours, said: within(f"{name}, {what}", ours, said, 1e-9 + 1e-7 * abs(ours))
        yield near("mean", mean, point["responses_per_s"])
        yield near("half width", half, point["responses_per_s_half_width"])
        yield near("deviation", deviation, point["responses_per_s_deviation"])
        if base is point:
            yield equal(f"{name}, gain over itself", None, point["gain"])
        else:
            others = base["responses_per_s_by_repetition"]
            _, half, _ = student([rate / other for rate, other in zip(rates, others, strict=True)])
            yield near("gain", mean / student(others)[0], point["gain"])
            yield near("half width of the gain", half, point["gain_half_width"])


def measured(file):
    """What the study measured: {(mix, cluster, policy, clients): responses per second}, and the policies in their order."""
    data = tomllib.loads(file.read_text())
    return {
        (r["mix"], r["cluster"], r["policy"], clients): rate
        for r in data.get("reference", ())
        for clients, rate in zip(r["clients"], r["per-second"], strict=True)
    }, data["policies"]


def reference_rows(document, reference, policies):
    """What was measured stands beside each point; and how far the simulated gain is from the one that was measured."""
    for point in document["points"]:
        key = (point["mix"], point["cluster"], point["policy"], point["clients"])
        name = f"{point['policy']}, {point['clients']}"
        yield equal(f"{name}, measured", reference.get(key), point["reference_per_s"])
        base = reference.get((*key[:2], policies[0], key[3]))
        if key in reference and base and point["policy"] != policies[0]:
            gain = reference[key] / base
            yield within(f"{name}, gain that was measured", gain, point.get("reference_gain"), 1e-6)
            yield within(f"{name}, gain off", point["gain"] - gain, point.get("gain_off"), 1e-6)


def study(lab):
    for file in sorted((ROOT / "clusters").glob("figure-*.toml")):
        reference, policies = measured(file)
        document = json.loads(lab.assay("simulate", file, "--json", "--measure", "2s", codes=(0,)))
        yield summed_up(f"{file.stem}, means, intervals and gains", list(document_rows(document)))
        if reference:
            yield summed_up(
                f"{file.stem}, what was measured, and its gains", list(reference_rows(document, reference, policies))
            )


# Self-tests: data that is right, and data that is wrong.


def test_queues(lab):
    point = {
        "responses_per_s": 320.0,
        "response_us": {"mean": 50_000.0, "p99": 230_259.0},
        "nodes": [{"processor": 0.8}] * 4,
    }
    rows = lambda **wrong: list(open_rows("M/M/1", point | wrong, 0.8, 1, *OPEN["M/M/1"][2:]))
    yield UNTOUCHED, rows()
    yield "requests share the processor, of constant length", rows(response_us={"mean": 30_000.0, "p99": 100_000.0})
    yield "a node that is idle", rows(nodes=[{"processor": 0.8}, {"processor": 0.7}])
    closed = {"responses_per_s": 400.0, "response_us": {"mean": 30_000.0}}
    yield UNTOUCHED, list(closed_rows("closed", closed, 4, 12, 400.0))
    yield "a client that pauses", list(closed_rows("closed", closed | {"responses_per_s": 399.0}, 4, 12, 400.0))


def test_study(lab):
    point = {
        "mix": "m",
        "cluster": "c",
        "clients": 4,
        "rate_per_s": None,
        "policy": "rand",
        "responses_per_s_by_repetition": [10.0, 12.0, 14.0],
        "responses_per_s": 12.0,
        "responses_per_s_half_width": 4.968275,
        "responses_per_s_deviation": 2.0,
        "gain": None,
        "gain_half_width": None,
        "reference_per_s": 11.0,
    }
    other = point | {
        "policy": "cap",
        "responses_per_s_by_repetition": [11.0, 13.2, 15.4],
        "responses_per_s": 13.2,
        "reference_per_s": 12.0,
        "responses_per_s_half_width": 5.4651027,
        "responses_per_s_deviation": 2.2,
        "gain": 1.1,
        "gain_half_width": 0.0,
        "reference_gain": 12 / 11,
        "gain_off": 1.1 - 12 / 11,
    }
    reference = {("m", "c", "rand", 4): 11.0, ("m", "c", "cap", 4): 12.0}
    rows = lambda **wrong: [
        *document_rows({"points": [point, other | wrong]}),
        *reference_rows({"points": [point, other | wrong]}, reference, ["rand", "cap"]),
    ]
    yield UNTOUCHED, rows()
    yield "another gain", rows(gain=1.11)
    yield "a normal law in place of Student's", rows(responses_per_s_half_width=2.4895)
    yield "another gain that was measured", rows(reference_gain=1.2)
    yield "no gain that was measured", rows(reference_gain=None)


CHECKS = [
    Check(
        "cluster-queues",
        "A simulated cluster waits as queueing theory says.",
        "closed forms of M/M/1, M/D/1, M/M/3, E4/M/1 and shared processors; closed loops of constant work",
        "assay simulate FILE --json",
        queues,
        test_queues,
    ),
    Check(
        "cluster-study",
        "Intervals and gains follow from repetitions, and the study's from its own data.",
        "Student's intervals and ratios from responses_per_s_by_repetition; gains from clusters/figure-*.toml",
        "assay simulate figure-3 --json",
        study,
        test_study,
    ),
]
