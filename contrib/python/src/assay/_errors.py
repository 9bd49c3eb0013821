"""Exceptions. Each has the program's message and its exit code, which are documented in the manual."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._run import Run


class AssayError(Exception):
    """The program ended with an error."""

    #: What the program said.
    message: str
    #: How it ended; None: it was not started.
    exit_code: int | None
    #: The run with what was measured until then, if there is one.
    run: Run | None

    def __init__(self, message: str, exit_code: int | None = None, run: Run | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code
        self.run = run


class ProgramNotFound(AssayError):
    """The program `assay` is not installed."""


class RunFailed(AssayError):
    """Exit code 1: the run failed, or the target served nothing."""


class UsageError(AssayError):
    """Exit code 2: something is wrong with the workload or an argument, or this machine cannot do it."""


class Undecided(AssayError):
    """Exit code 96: a requirement, or a headline number, is not known because of Assay or the machine."""


class RequirementFailed(AssayError):
    """Exit code 99: a requirement does not hold, content was wrong, or something is worse than the tolerance."""


class Interrupted(AssayError):
    """Exit code 105: it was interrupted."""


_BY_CODE: dict[int, type[AssayError]] = {
    1: RunFailed,
    2: UsageError,
    96: Undecided,
    99: RequirementFailed,
    105: Interrupted,
}


def error(message: str, exit_code: int, run: Run | None = None) -> AssayError:
    """The exception for an exit code."""
    return _BY_CODE.get(exit_code, AssayError)(message, exit_code, run)
