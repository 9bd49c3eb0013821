"""Runs of several cases whose records are kept, a JSON document a line: what was interrupted is gone on with."""

import argparse
import json
import os

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ASSAY = os.environ.get("ASSAY", os.path.join(HERE, "target/release/assay"))


class Kept:
    """The records in a file; each new one is in it at once."""

    def __init__(self, path):
        self.records = []
        if os.path.exists(path):
            with open(path) as file:
                self.records = [json.loads(line) for line in file]
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        self.file = open(path, "a")

    def has(self, case, seed):
        """True if this run was made before."""
        return any((record["case"], record["seed"]) == (case, seed) for record in self.records)

    def add(self, record):
        """A run that was made now."""
        print(json.dumps(record), file=self.file, flush=True)
        self.records.append(record)


def parser(description, cases, times, name):
    """The flags of a script that keeps runs of these cases: --times, --json, and which cases."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--times", type=int, default=times, help="runs of each case")
    made.add_argument("--json", default=os.path.join(HERE, "target", name), help="a line per run")
    made.add_argument("case", nargs="*", help=", ".join(cases))
    return made


def parse(made, cases, usual=None):
    """The flags that were given; where no case was named, with the usual ones, or all."""
    args = made.parse_args()
    unknown = [case for case in args.case if case not in cases]
    if unknown:
        made.error(f"there is no case {unknown[0]}; there are {', '.join(cases)}")
    args.case = args.case or list(usual or cases)
    return args
