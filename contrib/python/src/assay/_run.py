"""Runs, and run directories that are there already."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Any

from . import _errors, _figures, _program
from ._comparison import Comparison
from ._figures import Figure, Figures
from ._series import Series

__all__ = ["Figure", "Run", "load", "run"]

#: Exit codes of runs that have a result: all is well, something is undecided, something failed.
_WITH_RESULT = (0, 96, 99)
#: The charts that a notebook shows of a run.
_SHOWN = ("rate", "response-p99", "dhr", "cpu")


class Run:
    """A run: its summary, its tables and its charts, all read from its directory when they are asked for."""

    #: The run directory.
    dir: Path
    #: How `assay run` ended: 0, 96 (undecided) or 99 (a requirement failed, or content was wrong). None: it was loaded.
    exit_code: int | None
    #: What the program said about its progress.
    log: str

    def __init__(self, directory: Path, exit_code: int | None = None, log: str = "") -> None:
        self.dir = directory
        self.exit_code = exit_code
        self.log = log

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The summary, as `assay report --json` prints it; the manual has its JSON Schema."""
        said = _program.call(["report", os.fspath(self.dir), "--json", "--no-report"])
        document: dict[str, Any] = json.loads(said.stdout)
        return document

    @property
    def series(self) -> Series:
        """The tables by name, as data frames: `run.series["robots"]`."""
        return Series(self.dir)

    @cached_property
    def figures(self) -> Figures:
        """The charts of the report by name, as SVG with their numbers."""
        return _figures.drawn(lambda flag: _program.call(["report", os.fspath(self.dir), flag]))

    @property
    def verdict(self) -> list[str]:
        """The run in a few sentences."""
        return [finding["text"] for finding in self.summary["verdict"]]

    @property
    def requirements(self) -> list[dict[str, Any]]:
        """What was required, with what was measured and whether it held."""
        return list(self.summary["requirements"])

    @property
    def passed(self) -> bool | None:
        """True: all that was required holds. False: something does not, or content was wrong. None: undecided."""
        if self.exit_code is not None:
            return {0: True, 99: False}.get(self.exit_code)
        held = [requirement.get("held") for requirement in self.requirements]
        return False if False in held else None if None in held else True

    @property
    def report(self) -> Path:
        """The HTML report; it is written if it is not there."""
        path = self.dir / "report.html"
        if not path.exists():
            _program.call(["report", os.fspath(self.dir)])
        return path

    def check(self) -> Run:
        """Raises RequirementFailed or Undecided unless the run passed; otherwise gives the run."""
        passed = self.passed
        if passed is None:
            raise _errors.error(self._reason("undecided"), 96, self)
        if not passed:
            raise _errors.error(self._reason("failed"), 99, self)
        return self

    def _reason(self, decision: str) -> str:
        texts = [f"{one['text']} ({decision}: {one['seen']})" for one in self.requirements if one.get("decision") == decision]
        return "; ".join(texts) or " ".join(self.verdict[1:])

    def compare(
        self,
        *others: Run | str | os.PathLike[str],
        tolerance: str | Iterable[str] | None = None,
        labels: Iterable[str] | None = None,
        **flags: _program.Value,
    ) -> Comparison:
        """Compares this run, the baseline, with others (`assay compare`). Of one subject, three runs are needed for verdicts.

        `labels` names the subject of each run, this one first; runs of one label are repetitions. `tolerance` says how much worse than
        the baseline the others may be, like "5%" or "p99=2ms".
        """
        directories = [os.fspath(self.dir), *(os.fspath(other.dir if isinstance(other, Run) else other) for other in others)]
        if labels is not None:
            names = list(labels)
            if len(names) != len(directories):
                raise ValueError(f"{len(names)} labels for {len(directories)} runs")
            directories = [f"{name}={directory}" for name, directory in zip(names, directories)]
        held = [tolerance] if isinstance(tolerance, str) else None if tolerance is None else list(tolerance)
        return Comparison(directories, ["compare", *_program.flags({"tolerance": held, **flags})])

    def __repr__(self) -> str:
        return f"<run {self.dir}>"

    def _repr_html_(self) -> str:
        summary = self.summary
        at = datetime.fromtimestamp(summary["started_unix_ms"] / 1000, timezone.utc)
        title = f"{summary['workload']} through {summary['proxy']}, {at:%Y-%m-%d %H:%M} UTC"
        findings = [(finding["mood"], finding["text"]) for finding in summary["verdict"]]
        return _figures.page(title, findings, self.figures, _SHOWN)


def load(directory: str | os.PathLike[str]) -> Run:
    """A run that was made before, by its run directory."""
    run = Run(Path(directory))
    # Says what is wrong with it here, and not where it is first used.
    _ = run.summary
    return run


def run(
    workload: str | os.PathLike[str],
    *,
    proxy: str | os.PathLike[str] | None = None,
    rehearse: str | None = None,
    duration: str | None = None,
    rate: float | None = None,
    robots: int | None = None,
    seed: int | None = None,
    memory: str | None = None,
    disk: str | None = None,
    set: Mapping[str, object] | None = None,
    require: str | Iterable[str] | None = None,
    run_dir: str | os.PathLike[str] | None = None,
    progress: bool = False,
    **flags: _program.Value,
) -> Run:
    """Puts a proxy under a workload (`assay run`), and gives the run.

    Arguments are the flags of `assay run`, and mean what they mean there; those that are not listed here can be given, too:
    `xact_log=True` is `--xact-log`. `progress` shows what the program says meanwhile.

    A run with a failed or undecided requirement is a result (`passed`, `check`). Otherwise the exception has the program's message and
    exit code: UsageError, RunFailed, or Interrupted.
    """
    required = [require] if isinstance(require, str) else None if require is None else list(require)
    options: dict[str, _program.Value] = {
        "proxy": proxy,
        "rehearse": rehearse,
        "duration": duration,
        "rate": rate,
        "robots": robots,
        "seed": seed,
        "memory": memory,
        "disk": disk,
        "set": set,
        "require": required,
        "run_dir": run_dir,
        **flags,
    }
    said = _program.start(["run", *_program.flags(options), "--json", "--", os.fspath(workload)], progress=progress)
    made = _made(said)
    if said.code not in _WITH_RESULT or made is None:
        raised = said.error()
        raised.run = made
        raise raised
    return made


def _made(said: _program.Said) -> Run | None:
    """The run that a document on standard output is of."""
    try:
        document = json.loads(said.stdout)
        made = Run(Path(document["run"]), said.code if said.code in _WITH_RESULT else None, said.stderr)
    except (ValueError, KeyError, TypeError):
        return None
    # `report --json` would print the same.
    made.__dict__["summary"] = document
    return made
