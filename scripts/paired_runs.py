"""What scripts share that compare pairs of runs of one steady workload."""

import math
import os
import statistics
import sys

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def arguments():
    """Pairs, requests a second and seconds, from the command line."""
    return ([int(word) for word in sys.argv[1:]] + [8, 2000, 15][len(sys.argv) - 1:])[:3]


def steady(directory, rate, seconds):
    """Writes a workload of 50 robots with Poisson arrivals; gives its path."""
    with open(os.path.join(HERE, "bench/pacing/poisson.pg")) as file:
        text = file.read()
    for name, value in (("RATE", rate), ("ROBOTS", 50), ("SECONDS", seconds)):
        text = text.replace(name, str(value))
    source = os.path.join(directory, "steady.pg")
    with open(source, "w") as file:
        file.write(text)
    return source


def words(ratios):
    """The mean of ratios (of their logarithms), and how well it is known."""
    logs = [math.log(ratio) for ratio in ratios]
    error = statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else float("nan")
    return (f"ratio {math.exp(statistics.mean(logs)):.4f}, standard error {error:.4f}, median {statistics.median(ratios):.4f}, "
            f"from {min(ratios):.4f} to {max(ratios):.4f}")
