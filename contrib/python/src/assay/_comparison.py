"""Comparisons of runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from . import _figures, _program
from ._figures import Figures

#: Exit codes of comparisons that have a result: 96 and 99 come of tolerances.
_WITH_RESULT = (0, 96, 99)
#: The charts that a notebook shows of a comparison.
_SHOWN = ("rate", "response", "dhr", "cpu")


class Comparison:
    """A comparison: what differs, with intervals and verdicts."""

    def __init__(self, directories: Sequence[str], command: Sequence[str]) -> None:
        self._command = list(command)
        self._directories = ["--", *directories]
        said = self._said("--json")
        #: How `assay compare` ended: 0, 96 (with a tolerance: undecided) or 99 (something is worse by more than that).
        self.exit_code: int = said.code
        #: The document, as `assay compare --json` prints it.
        self.summary: dict[str, Any] = json.loads(said.stdout)
        #: Warnings.
        self.log: str = said.stderr

    @property
    def verdict(self) -> list[str]:
        """The comparison in a few sentences."""
        return [f"{finding['question']} {finding['text']}" for finding in self.summary["verdict"]]

    @property
    def passed(self) -> bool | None:
        """True: nothing is worse than the tolerance. False: something is. None: undecided, or there was no tolerance."""
        return None if self.summary["gate"] is None else {0: True, 99: False}.get(self.exit_code)

    @cached_property
    def markdown(self) -> str:
        """The comparison as Markdown, for a pull request."""
        return self._said("--markdown").stdout

    @cached_property
    def figures(self) -> Figures:
        """The charts by name: subjects over each other."""
        return _figures.drawn(self._said)

    def save_html(self, path: str | Path) -> None:
        """Writes the comparison as one HTML page, which needs no network."""
        self._said("--json", f"--html={path}")

    def _said(self, *flags: str) -> _program.Said:
        return _program.call([*self._command, *flags, *self._directories], allowed=_WITH_RESULT)

    def __repr__(self) -> str:
        return f"<comparison {self.summary['name']}>"

    def _repr_html_(self) -> str:
        findings = [(finding["mood"], f"{finding['question']} {finding['text']}") for finding in self.summary["verdict"]]
        return _figures.page(self.summary["name"], findings, self.figures, _SHOWN)
