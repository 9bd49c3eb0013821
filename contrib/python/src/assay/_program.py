"""Finds the program and runs it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Union

from ._errors import AssayError, ProgramNotFound, error

#: What a flag can be given as: True and False for one without a value, several values for one that can be given several times.
Value = Union[str, int, float, bool, os.PathLike[str], Sequence[Union[str, int, float, os.PathLike[str]]], Mapping[str, object], None]


def program() -> Path:
    """The program: that of the environment variable ASSAY_BINARY, else that of this package's wheel, else the first in PATH."""
    named = os.environ.get("ASSAY_BINARY")
    if named:
        if not os.access(named, os.X_OK):
            raise ProgramNotFound(f"ASSAY_BINARY is {named}, which is not a program")
        return Path(named)
    for directory in _script_directories():
        if os.access(directory / "assay", os.X_OK):
            return directory / "assay"
    found = shutil.which("assay")
    if found is None:
        raise ProgramNotFound("there is no program `assay`: install the wheel of this package, or name the program in ASSAY_BINARY")
    return Path(found)


def _script_directories() -> Iterator[Path]:
    """Where installers put the scripts of a wheel."""
    yield Path(sysconfig.get_path("scripts"))
    yield Path(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")))
    # `pip install --target DIR` puts them beside the module.
    yield Path(__file__).parent.parent / "bin"


def version() -> dict[str, Any]:
    """What the program is: version, processor, how it was built (`assay version --json`)."""
    document: dict[str, Any] = json.loads(call(["version", "--json"]).stdout)
    return document


@dataclass(frozen=True)
class Said:
    """What the program said, and how it ended."""

    stdout: str
    stderr: str
    code: int

    def error(self) -> AssayError:
        """The exception for it."""
        return error(message(self.stderr) or f"assay ended with {self.code}", self.code)


def message(stderr: str) -> str:
    """The program's message about an error: from the last line that begins with `error: ` on. Lines about progress are before it."""
    lines = stderr.strip().splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("error: ")]
    if not starts:
        return lines[-1] if lines else ""
    return "\n".join(lines[starts[-1] :]).removeprefix("error: ")


def flags(options: Mapping[str, Value]) -> list[str]:
    """Keyword arguments as flags: `xact_log=True` is `--xact-log`, `set={"a": 1}` is `--set a=1`, None and False are left out."""
    words: list[str] = []
    for name, value in options.items():
        flag = "--" + name.strip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(flag)
            continue
        for one in _values(value):
            # One word, so that a value may begin with a dash.
            words.append(f"{flag}={one}")
    return words


def _values(value: Value) -> Iterable[str]:
    if isinstance(value, Mapping):
        return [f"{key}={one}" for key, one in value.items()]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [str(one) for one in value]
    return [str(value)]


def call(arguments: Sequence[str], *, allowed: Sequence[int] = (0,), progress: bool = False) -> Said:
    """Runs the program to its end. Another exit code than those allowed is an exception. `progress` shows its standard error."""
    said = start(arguments, progress=progress)
    if said.code not in allowed:
        raise said.error()
    return said


def start(arguments: Sequence[str], *, progress: bool = False) -> Said:
    """Runs the program to its end, whatever that is. An interrupt of Python is passed on to it once, and it ends in order."""
    command = [str(program()), *arguments]
    # A group of its own: Ctrl-C on a terminal would reach it a second time, which means to end at once.
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    assert child.stdout is not None and child.stderr is not None
    said: list[str] = []
    reader = threading.Thread(target=_read, args=(child.stderr, said, progress), daemon=True)
    reader.start()
    try:
        stdout = child.stdout.read()
        child.wait()
    except KeyboardInterrupt:
        child.send_signal(signal.SIGINT)
        # Its standard error is the other thread's to read: to read both here could wait for what that has taken.
        child.stdout.read()
        child.wait()
        raise
    except BaseException:
        child.kill()
        child.wait()
        raise
    reader.join()
    child.stdout.close()
    # A signal ends it with a negative number.
    return Said(stdout, "".join(said), child.returncode)


def _read(stream: IO[str], said: list[str], progress: bool) -> None:
    with stream:
        for line in stream:
            said.append(line)
            if progress:
                sys.stderr.write(line)
                sys.stderr.flush()
