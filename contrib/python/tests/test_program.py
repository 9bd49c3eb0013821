"""The program: where it is found, how arguments become flags, and what its errors become."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import assay
from assay import _program


def test_arguments_become_flags() -> None:
    options: dict[str, _program.Value] = {
        "rehearse": "60s",
        "rate": 2.5,
        "xact_log": True,
        "no_report": False,
        "seed": None,
        "set": {"ttl": "1d", "grace": 0},
        "require": ["a < 1", "-b > 2"],
    }
    expected = ["--rehearse=60s", "--rate=2.5", "--xact-log", "--set=ttl=1d", "--set=grace=0", "--require=a < 1", "--require=-b > 2"]
    assert _program.flags(options) == expected


def test_messages_are_told_from_progress() -> None:
    said = "starting origins\nerror: cannot start squid\n  its log says: no\n"
    assert _program.message(said) == "cannot start squid\n  its log says: no"
    assert _program.message("  0:01 going\nkilled\n") == "killed" and _program.message("") == ""


def test_an_error_has_the_message_and_the_exit_code_of_the_program() -> None:
    plain = subprocess.run([assay.program(), "run", "demo", "--proxy", "nosuch"], capture_output=True, text=True)
    with pytest.raises(assay.UsageError) as raised:
        assay.run("demo", proxy="nosuch")
    assert raised.value.exit_code == plain.returncode == 2
    assert plain.stderr.strip().endswith(str(raised.value)) and "nosuch" in raised.value.message
    with pytest.raises(assay.UsageError, match="--no-such-flag"):
        assay.run("demo", no_such_flag=True)
    with pytest.raises(assay.UsageError, match="not a run directory"):
        assay.load("/nonexistent")


def test_a_workload_whose_name_begins_with_a_dash_is_no_flag() -> None:
    with pytest.raises(assay.UsageError, match="--help"):
        assay.run("--help")


def test_the_program_that_is_named_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert assay.version()["schema"] == "assay-version/1"
    monkeypatch.setenv("ASSAY_BINARY", str(tmp_path / "none"))
    with pytest.raises(assay.ProgramNotFound, match="none"):
        assay.version()
    monkeypatch.delenv("ASSAY_BINARY")
    monkeypatch.setattr(_program, "_script_directories", lambda: iter([tmp_path]))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(assay.ProgramNotFound, match="install the wheel"):
        assay.program()
    (tmp_path / "assay").write_text("#!/bin/sh\necho 'error: not today' >&2; exit 7\n")
    (tmp_path / "assay").chmod(0o755)
    with pytest.raises(assay.AssayError, match="not today") as raised:
        assay.version()
    assert raised.value.exit_code == 7
