"""Assay from Python: runs a workload against a proxy, and gives what it measured as data frames.

    import assay

    run = assay.run("image", proxy="varnish", rehearse="60s")
    run.summary["total"]["dhr"]
    run.series["robots"]

The program does the work; this package starts it, and reads what it has written.
"""

from ._comparison import Comparison
from ._errors import AssayError, Interrupted, ProgramNotFound, RequirementFailed, RunFailed, Undecided, UsageError
from ._frames import Library, use
from ._program import program, version
from ._run import Figure, Run, load, run
from ._series import Series

__all__ = [
    "AssayError",
    "Comparison",
    "Figure",
    "Interrupted",
    "Library",
    "ProgramNotFound",
    "RequirementFailed",
    "Run",
    "RunFailed",
    "Series",
    "Undecided",
    "UsageError",
    "load",
    "program",
    "run",
    "use",
    "version",
]
