"""How many requests go through a second of processor time: Assay, and libCacheSim 0.3.5 through its Python package.

One trace for both, in memory or in the page cache: 10 million requests for 1 million objects by Zipf's law (exponent 0.9), all of one
size; caches hold a tenth of the objects. In each round every policy runs once in each program, one after the other, each in a process of
its own, so that what disturbs the machine meets both alike. What counts is processor time.

Assay's time is that of the simulation, and with it that of numbering the objects, which is done once for all policies and sizes.
libCacheSim reads the trace as it simulates: a run whose cache admits nothing is subtracted, which also subtracts one look-up in an
empty table for each request. Policies that both define alike must have the same number of misses.

The second part: processor time of `assay size` for an access log (LRU in one pass), over that of `assay logs`.

Ends with 1 when a target is missed.
"""

import os
import statistics
import subprocess
import sys
import tempfile

PEER, SIZE_SPEED, ASSAY = (os.environ[name] for name in ("PEER", "SIZE_SPEED", "ASSAY"))
CAPACITY = 100_000
# The policy here and there; whether the misses must be equal.
POLICIES = {
    "fifo": ("FIFO", True), "lru": ("LRU", True), "clock": ("Clock", True), "sieve": ("Sieve", True), "lfu": ("LFU", True),
    "gdsf": ("GDSF", True), "belady": ("Belady", True), "slru": ("SLRU", False), "s3-fifo": ("S3FIFO", False),
    "2q": ("TwoQ", False), "arc": ("ARC", False), "w-tinylfu": ("WTinyLFU", False), "lfuda": ("LFUDA", False),
    "random": ("Random", False), "belady-size": ("BeladySize", False),
}
CURVE_PER_S = 10e6
LOG_AT_MOST = 1.3
LOG_LINES = 1_000_000

THERE = """
import sys, time, libcachesim as lcs
path, policy, capacity = sys.argv[1:]
reader = lcs.TraceReader(path, lcs.TraceType.ORACLE_GENERAL_TRACE)
nothing = {"admissioner": lcs.SizeAdmissioner(0)} if policy == "nothing" else {}
cache = getattr(lcs, "FIFO" if nothing else policy)(cache_size=int(capacity), **nothing)
begun = time.process_time()
missed = cache.process_trace(reader)[0]
print(time.process_time() - begun, missed)
"""


def here(trace, what):
    said = subprocess.run([SIZE_SPEED, "run", trace, what, str(CAPACITY)], check=True, capture_output=True, text=True).stdout
    requests, numbering, simulating, misses = said.split()
    return int(requests), float(numbering), float(simulating), int(misses)


def there(trace, policy):
    command = [PEER, "-c", THERE, trace, policy, str(CAPACITY)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(said[-2]), float(said[-1])


def seconds(command):
    """Processor seconds that a command took."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{command[0]} failed with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def policies(trace, rounds):
    """The table of policies; what was missed."""
    found = {policy: [] for policy in POLICIES}
    curve, empty, missed = [], [], []
    for _ in range(rounds):
        requests, numbering, simulating, _ = here(trace, "curve")
        curve.append((requests / simulating, requests / (numbering + simulating)))
        empty.append(there(trace, "nothing")[0])
        for policy, (name, is_equal) in POLICIES.items():
            requests, numbering, simulating, misses = here(trace, policy)
            took, ratio = there(trace, name)
            if is_equal and round(ratio * requests) != misses:
                missed.append(f"{policy} has {misses} misses here and {ratio * requests:.0f} there")
            found[policy].append((requests, numbering, simulating, took))
    reading = statistics.median(empty)
    alone, numbered = (statistics.median(of) / 1e6 for of in zip(*curve))
    print(f"LRU at all sizes in one pass: {alone:.1f} million requests/s, {numbered:.1f} with numbering of objects")
    if alone * 1e6 < CURVE_PER_S:
        missed.append(f"the curve is below {CURVE_PER_S / 1e6:.0f} million requests/s")
    print("\n| policy | Assay | with numbering | libCacheSim | with reading | Assay over libCacheSim |\n|---|--:|--:|--:|--:|--:|")
    for policy, runs in found.items():
        own = statistics.median(n / s / 1e6 for n, _, s, _ in runs)
        numbered = statistics.median(n / (g + s) / 1e6 for n, g, s, _ in runs)
        peer = statistics.median(n / max(t - reading, 1e-9) / 1e6 for n, _, _, t in runs)
        read = statistics.median(n / t / 1e6 for n, _, _, t in runs)
        ratio = statistics.median((t - reading) / s for _, _, s, t in runs)
        print(f"| `{policy}` | {own:.1f} | {numbered:.1f} | {peer:.1f} | {read:.1f} | {ratio:.1f} |")
        if ratio < 1:
            missed.append(f"{policy} is slower than libCacheSim: {ratio:.2f}")
    return missed


def write_log(path):
    import random

    chance = random.Random(7)
    with open(path, "w") as log:
        for number in range(LOG_LINES):
            item = int(200_000 ** chance.random())
            second = number // 20_000
            log.write(
                f"10.0.{chance.randrange(200)}.{chance.randrange(250)} - - [01/Jun/2026:12:{second // 60:02}:{second % 60:02} +0000] "
                f'"GET /objects/{item}.html?lang=en HTTP/1.1" 200 {300 + item * 7919 % 100_000} "-" "Mozilla/5.0 (X11; Linux x86_64)"\n'
            )


def logs(rounds):
    """The ratio for an access log; what was missed."""
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "access.log")
        write_log(log)
        ratios = []
        for _ in range(rounds):
            analysis = seconds([ASSAY, "logs", log])
            ratios.append(seconds([ASSAY, "size", log, "--policy", "lru"]) / analysis)
    ratio = statistics.median(ratios)
    print(f"\nAn access log of {LOG_LINES:,} lines: `assay size` takes {ratio:.2f} of what `assay logs` takes")
    return [f"an access log takes {ratio:.2f} of `assay logs`"] if ratio > LOG_AT_MOST else []


def main():
    trace, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3
    missed = policies(trace, rounds) + logs(rounds)
    for text in missed:
        print(f"MISSED: {text}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
