"""What a check is: a name, what it claims, how, and rows of what was expected and what was found."""

import dataclasses
import typing


@dataclasses.dataclass(frozen=True)
class Row:
    """One comparison."""

    what: str
    expected: str
    found: str
    ok: bool

    def __str__(self):
        return f"{self.what}: expected {self.expected}, found {self.found}: {'ok' if self.ok else 'NOT ok'}"


@dataclasses.dataclass(frozen=True)
class Check:
    """A check: `wants` names the runs that it needs (they begin before the first check), `run` compares.

    `self_test` yields `(what was done to the data, rows)`. Where nothing was done (`UNTOUCHED`), every row must be ok;
    else at least one must not be. It needs no build of Assay, so it can be run at any time.
    """

    name: str
    claim: str
    method: str
    command: str
    run: typing.Callable
    self_test: typing.Callable
    wants: typing.Callable = lambda lab: None


UNTOUCHED = "untouched"


def within(what, expected, found, tolerance, digits=4):
    """A row: `found` differs from `expected` by no more than `tolerance`. No number at all is not ok, but for none expected."""
    if expected is None or found is None:
        return Row(what, str(expected), str(found), expected is None and found is None)
    margin = f" ± {tolerance:.{digits}g}" if tolerance else ""
    return Row(
        what, f"{expected:.{digits + 2}g}{margin}", f"{found:.{digits + 2}g}", abs(found - expected) <= tolerance
    )


def equal(what, expected, found):
    """A row: both are the same."""
    return Row(what, str(expected), str(found), expected == found)


def between(what, low, high, found, digits=4):
    """A row: `found` lies in an interval."""
    return Row(what, f"{low:.{digits}g} to {high:.{digits}g}", f"{found:.{digits}g}", bool(low <= found <= high))


def summed_up(what, rows):
    """Many rows as one: all of them, or the first ones that are not ok."""
    wrong = [row for row in rows if not row.ok]
    shown = "; ".join(f"{row.what}: {row.found} in place of {row.expected}" for row in wrong[:3])
    found = f"{len(rows) - len(wrong)} of {len(rows)}" + (f" ({shown})" if wrong else "")
    return Row(what, f"all of {len(rows)}", found, bool(rows) and not wrong)
