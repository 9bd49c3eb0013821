"""Are measured and ideal byte hit ratio taken over the same bytes? In a cache with room for everything, the measured ratio is the
ideal one, and never above it, whether bodies are coded or not.
"""

from checks import UNTOUCHED, Check, Row, within
from mix import bundled
from mix import wants as want_bundled

# Two types: one is sent coded to robots that accept it (a third of its length), the other is not.
CODED = """
Content T = { kind = "text"; mime = { type = "text/css"; extensions = [".css"]; }; size = exp(12KB); cachable = 80%; generator = "words";
              encodings = ["identity", "gzip"]; };
Content P = { kind = "picture"; mime = { type = "image/gif"; extensions = [".gif"]; }; size = exp(9KB); cachable = 60%; };
Server S = { kind = "s"; contents = [T: 50%, P]; direct_access = contents; pconn_use_lmt = const(1000); addresses = ['10.1.0.1:80']; };
Robot R = { kind = "r"; req_rate = 3/sec; recurrence = 65%; pop_model = { pop_distr = popUnif(); }; pconn_use_lmt = const(1000);
            accept_content_encodings = ["gzip"]; origins = S.addresses; addresses = ['10.2.0.1' ** 100]; };
Phase one = { name = "one"; goal.duration = 8sec; };
schedule(one);
use(S, R);
"""


def wants(lab):
    want_bundled(lab)
    lab.want("coded", CODED, "--proxy", "builtin", "--no-pin")


def ratio_rows(name, total):
    """Requests that leave at the same time may reach cache and ideal in either order: ten requests may differ."""
    dhr, bhr, allowed = total["dhr"], total["bhr"], 10 / max(total["basic"], 1)
    if dhr["measured"] is None or dhr["ideal"] is None:
        return
    yield Row(
        f"{name}, DHR",
        f"at most the ideal {dhr['ideal']:.4f}",
        f"{dhr['measured']:.4f}",
        dhr["measured"] <= dhr["ideal"] + allowed,
    )
    if dhr["measured"] == dhr["ideal"]:
        yield within(f"{name}, BHR where all that could be hit was hit", bhr["ideal"], bhr["measured"], 1e-4)
    else:
        yield Row(
            f"{name}, BHR",
            f"at most the ideal {bhr['ideal']:.4f}",
            f"{bhr['measured']:.4f}",
            bhr["measured"] <= bhr["ideal"] + allowed,
        )


def basis(lab):
    run = lab.get("coded")
    coded = run.summary["total"]["special"]["coded"]
    yield Row("coded responses of a workload made for it", "500 at least", str(coded), coded >= 500)
    yield from ratio_rows("that workload", run.summary["total"])
    for name, _, workload, _ in bundled(lab):
        if any(content["body"]["codings"] for content in workload["contents"]):
            yield from ratio_rows(name, lab.get(lab.want_bundled(name)).summary["total"])


def test_basis(lab):
    total = {"basic": 5000, "dhr": {"ideal": 0.6, "measured": 0.6}, "bhr": {"ideal": 0.62, "measured": 0.62}}
    yield UNTOUCHED, list(ratio_rows("test", total))
    yield "coded bytes against bytes", list(ratio_rows("test", total | {"bhr": {"ideal": 0.62, "measured": 0.626}}))
    yield (
        "the same, with fewer hits",
        list(
            ratio_rows(
                "test", {**total, "dhr": {"ideal": 0.6, "measured": 0.59}, "bhr": {"ideal": 0.62, "measured": 0.626}}
            )
        ),
    )
    yield "more hits than ideal", list(ratio_rows("test", total | {"dhr": {"ideal": 0.6, "measured": 0.61}}))


CHECKS = [
    Check(
        "byte-basis",
        "Measured and ideal byte hit ratios are over the same bytes, also of coded bodies.",
        "through a cache with room for everything, equal where the document ratios are, and never above",
        "assay run WORKLOAD",
        basis,
        test_basis,
        wants,
    ),
]
