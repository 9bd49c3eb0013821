"""A run that the tests share, and the library of data frames as it was."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import assay


@pytest.fixture(scope="session", autouse=True)
def away(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Runs go to a directory of their own where nothing else is said."""
    before, directory = Path.cwd(), tmp_path_factory.mktemp("away")
    os.chdir(directory)
    yield directory
    os.chdir(before)


@pytest.fixture(scope="session")
def made(away: Path) -> assay.Run:
    """A short run of the demo."""
    return assay.run("demo", rehearse="2s", memory="64MB", seed=7, require=["errors < 1000000", "errors < 1000001"], run_dir=away / "made")


@pytest.fixture(scope="session")
def again(away: Path) -> assay.Run:
    """The same again."""
    return assay.run("demo", rehearse="2s", memory="64MB", seed=7, run_dir=away / "again")


@pytest.fixture(autouse=True)
def no_choice() -> Iterator[None]:
    """No test chooses a library for another."""
    yield
    assay.use(None)
