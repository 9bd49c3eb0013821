"""Runs, their tables and charts, and comparisons of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import assay


def test_a_run_is_made_as_its_arguments_say(made: assay.Run) -> None:
    assert made.dir.name == "made" and made.dir.is_dir()
    assert made.summary["schema"] == "assay-summary/2"
    assert (made.summary["workload"], made.summary["proxy"], made.summary["seed"]) == ("demo", "builtin", 7)
    assert [one["text"] for one in made.requirements] == ["errors < 1000000", "errors < 1000001"]
    assert made.exit_code in (0, 96) and len(made.verdict) >= 4
    assert "collecting" in made.log
    assert made.report.read_text().rstrip().endswith("</html>")


def test_a_loaded_run_is_the_run_that_was_made(made: assay.Run) -> None:
    loaded = assay.load(os.fspath(made.dir))
    assert loaded.summary["total"] == made.summary["total"]
    assert loaded.passed is True and loaded.check() is loaded


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables_are_data_frames_whose_sums_are_those_of_the_summary(made: assay.Run, library: assay.Library) -> None:
    assay.use(library)
    robots = made.series["robots"]
    assert type(robots).__module__.split(".")[0] == library
    assert robots["completed"].sum() == made.summary["total"]["completed"] > 0
    assert made.series.origins["requests"].sum() == made.summary["total"]["origins"]["requests"]
    assert made.series.pandas("host").shape == made.series.polars("host").shape


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_charts_have_their_numbers(made: assay.Run, library: assay.Library) -> None:
    assay.use(library)
    rate = made.figures["rate"]
    assert rate.title == "Request rate" and rate.svg.startswith("<svg ")
    assert {"offered", "responses"} <= set(rate.data["line"])
    assert type(rate.data).__module__.split(".")[0] == library


def test_tables_are_listed_and_a_wrong_name_says_so(made: assay.Run) -> None:
    assert {"robots", "origins", "histograms", "host"} <= set(made.series)
    assert len(made.series) == len(list(made.series)) and "robots" in dir(made.series)
    with pytest.raises(KeyError, match="there is no table 'robot'; there are adapted, "):
        made.series["robot"]
    with pytest.raises(AttributeError, match="robot"):
        made.series.robot
    assert "robots" in repr(made.series)


def test_a_notebook_shows_verdict_and_charts(made: assay.Run, again: assay.Run) -> None:
    shown = made._repr_html_()
    assert shown.count("<img ") == 4 and shown.count("<li ") == len(made.verdict)
    assert "demo through builtin" in shown
    compared = made.compare(again)._repr_html_()
    assert compared.count("<img ") >= 3 and "What was compared?" in compared


def test_runs_are_compared(made: assay.Run, again: assay.Run, tmp_path: Path) -> None:
    compared = made.compare(again, labels=["before", "after"])
    assert [subject["label"] for subject in compared.summary["subjects"]] == ["before", "after"]
    assert compared.exit_code == 0 and compared.passed is None
    assert any(sentence.startswith("What was compared?") for sentence in compared.verdict)
    assert compared.markdown.startswith("## ")
    assert "rate" in compared.figures
    compared.save_html(tmp_path / "c.html")
    assert (tmp_path / "c.html").read_text().rstrip().endswith("</html>")
    with pytest.raises(ValueError, match="1 labels for 2 runs"):
        made.compare(again.dir, labels=["one"])


def test_what_fails_is_a_result_until_it_is_checked(away: Path) -> None:
    failed = assay.run("demo", rehearse="1s", require="errors > 1000000", run_dir=away / "failed", no_report=True)
    assert failed.exit_code == 99 and failed.passed is False
    assert assay.load(failed.dir).passed is False
    with pytest.raises(assay.RequirementFailed, match="errors > 1000000 .failed: ") as raised:
        failed.check()
    assert raised.value.exit_code == 99 and raised.value.run is failed


def test_an_interrupt_ends_the_run_in_order_and_leaves_what_was_measured(away: Path) -> None:
    script = "import assay\ntry: assay.run('demo', run_dir='cut', progress=True)\nexcept KeyboardInterrupt: print('interrupted')"
    found = {**os.environ, "PYTHONPATH": str(Path(assay.__file__).parent.parent)}
    command = [sys.executable, "-c", script]

    def heed_interrupts() -> None:
        # A shell has its background jobs ignore them, and so does all that these start.
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=found, preexec_fn=heed_interrupts
    ) as child:
        assert child.stderr is not None and child.stdout is not None
        # The first line of the live view.
        assert any("0:01" in line for line in child.stderr)
        child.send_signal(signal.SIGINT)
        child.stderr.read()
        assert child.stdout.read() == "interrupted\n"
    assert assay.load("cut").summary["partial"] is True


def test_libraries_are_chosen_by_what_is_installed(made: assay.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from assay import _frames

    there: set[str] = set()
    monkeypatch.setattr(_frames, "_has", lambda module: module in there)

    def frame() -> Any:
        return type(made.series["robots"]).__module__.split(".")[0]

    with pytest.raises(assay.AssayError, match="pip install polars"):
        frame()
    there |= {"polars", "pandas"}
    assert frame() == "polars"
    there |= {"pyarrow"}
    assert frame() == "pandas"
    with pytest.raises(ValueError, match="'arrow'"):
        assay.use("arrow")  # type: ignore[arg-type]
