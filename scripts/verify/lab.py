"""Runs Assay for the checks, and reads what it leaves: only files, in the formats of docs/reference/run-directory.md.

Everything lies in one temporary directory and goes with it; whatever still runs then is ended. Runs of `want` go on in the
background, two at a time: the requests that they get do not depend on time, so it does not matter that they disturb each
other, nor that Assay does not know some of their times (exit code 96).
"""

import concurrent.futures
import functools
import json
import os
import pathlib
import shutil
import tempfile
import threading

import pandas as pd

from build import Build

ROOT = pathlib.Path(__file__).resolve().parents[2]
ASSAY = os.environ.get("ASSAY", str(ROOT / "target/release/assay"))
FORWARD = ("polymix", "datacomm", "polyfill", "downtime")


class Run:
    """A run directory."""

    def __init__(self, path):
        self.path = pathlib.Path(path)

    def json(self, name):
        return json.loads((self.path / f"{name}.json").read_text())

    @functools.cached_property
    def summary(self):
        return self.json("summary")

    @functools.cached_property
    def info(self):
        return self.json("run")

    @functools.cached_property
    def workload(self):
        return self.json("workload")

    @functools.cached_property
    def xacts(self):
        return self.table("xacts")

    def table(self, name):
        return pd.read_parquet(self.path / f"{name}.parquet")


class Lab:
    """Where checks get their runs."""

    def __init__(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="assay-verify-"))
        self.pool = concurrent.futures.ThreadPoolExecutor(2)
        self.runs, self.lock = {}, threading.Lock()
        self.build = Build(ASSAY, self.directory)
        self.assay = self.build.run

    def want(self, name, workload, *flags, limit_s=120):
        """Begins a run in the background, unless it has begun: `name` stands for it. A workload is a name or a text."""
        if name not in self.runs:
            self.runs[name] = self.pool.submit(self.now, name, workload, *flags, limit_s=limit_s)

    def get(self, name):
        """A run that was wanted, when it is there."""
        return self.runs[name].result()

    def now(self, name, workload, *flags, limit_s=120):
        """A run, at once. A workload is called what its first run is called up to a hyphen."""
        if "\n" in workload:
            file = self.directory / f"{name.split('-')[0]}.pg"
            with self.lock:
                if not file.exists():
                    file.write_text(workload)
            if file.read_text() != workload:
                raise ValueError(f"two workloads are called {file.stem}")
            workload = file
        path = self.directory / "runs" / name
        self.assay(
            "run",
            workload,
            *flags,
            "--xact-log",
            "--run-dir",
            path,
            "--no-report",
            "--no-live",
            "--json",
            "-o",
            os.devnull,
            limit_s=limit_s,
        )
        return Run(path)

    def bundled(self):
        """Names of the workloads in the binary."""
        return [line.split()[0] for line in self.assay("workloads").splitlines() if line.startswith("  ")]

    def want_bundled(self, workload):
        """A rehearsal of a bundled workload through the built-in cache, or directly where it says so. Its name."""
        target = ["--direct"] if workload.startswith("nolb") else ["--proxy", "builtin"]
        target += ["--forward"] if workload.startswith(FORWARD) else []
        self.want(f"bundled-{workload}", workload, *target, "--rehearse", "15s", "--no-pin")
        return f"bundled-{workload}"

    def wait(self):
        """Until nothing runs any more in the background: for what measures time."""
        concurrent.futures.wait(self.runs.values())

    def close(self):
        for run in self.runs.values():
            run.cancel()
        self.build.close()
        self.pool.shutdown()
        shutil.rmtree(self.directory, ignore_errors=True)
