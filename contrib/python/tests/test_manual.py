"""The examples of the manual, on the shared runs."""

from __future__ import annotations

import re
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

import assay

PAGE = Path(__file__).parents[3] / "docs/how-to/use-from-python.md"


def test_the_examples_of_the_manual_run(made: assay.Run, again: assay.Run, away: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, runs = assay.run, cycle([made, again])

    def run(workload: str, **arguments: Any) -> assay.Run:
        # Another proxy and a minute each would tell nothing more of the examples. What is wrong on purpose stays so.
        return next(runs) if arguments["proxy"] in ("varnish", "nginx") else real(workload, **arguments)

    monkeypatch.setattr(assay, "run", run)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 5
    names: dict[str, Any] = {}
    for number, block in enumerate(blocks):
        exec(compile(block, f"{PAGE.name}, example {number + 1}", "exec"), names)
    assert (away / "rate.svg").exists() and (away / "varnish-vs-nginx.html").exists()
    documented = set(re.findall(r"`run\.(\w+)", PAGE.read_text(encoding="utf-8")))
    assert all(hasattr(assay.Run, name) or name in assay.Run.__annotations__ for name in documented), documented
