"""A row of the table, and how its values come about: both sides take turns."""

import dataclasses
import os
import statistics
import tempfile

from machine import cpu_seconds


@dataclasses.dataclass
class Row:
    """A line of the table: `ours` and `theirs` are values of rounds, the ratio is ours over theirs."""

    name: str
    unit: str
    ours: list
    theirs: list
    target: str
    at_least: float | None = None
    at_most: float | None = None
    against: str = ""

    @property
    def ratios(self):
        return [a / b for a, b in zip(self.ours, self.theirs)]

    @property
    def judged(self):
        """What the target is held against: the ratio where there are two sides, else the value."""
        return statistics.median(self.ratios if self.theirs else self.ours)

    @property
    def is_met(self):
        low = self.at_least is None or self.judged >= self.at_least
        return low and (self.at_most is None or self.judged <= self.at_most)


def room():
    directory = tempfile.TemporaryDirectory()
    os.chmod(directory.name, 0o755)
    return directory


def in_turn(rounds, sides):
    """Runs all sides in each round, in an order that goes round; gives the values of each."""
    values = {name: [] for name in sides}
    names = list(sides)
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            values[name].append(sides[name]())
    return values


def served(requests_of, pid):
    """Requests per CPU-second of a server under load."""
    before = cpu_seconds(pid)
    requests, _ = requests_of()
    return requests / (cpu_seconds(pid) - before)
