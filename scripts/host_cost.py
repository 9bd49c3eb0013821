"""What does it cost to measure the roles' processes and the machine? Processor time of Assay itself, out of one core.

Varnish (some 200 threads) is given 10,000 robots that keep a connection open each; everything that Assay can measure is
measured, requests to the disk of the proxy's store too where that is allowed. The figure is the run's own: the processor
time of the thread that reads and keeps the measurements, once a second (`health.metering_share` in summary.json). It does
not depend on how busy the machine is otherwise.

    scripts/host-cost.sh [ROBOTS]      ASSAY=path/to/assay: measure that one instead of building it
"""

import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ASSAY = os.environ.get("ASSAY", os.path.join(HERE, "target/release/assay"))
RATE = 1500
# Exit codes of a run that was measured: fine, or with doubts about this machine, which do not matter here.
MEASURED = (0, 96)


def main():
    robots = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with open(os.path.join(HERE, "bench/many-robots.pg")) as file:
        text = file.read()
    values = {"ROBOTS": robots, "RATE": RATE, "SIZE": "1KB", "SECONDS": 10, "CACHABLE": 100, "DELAY": 0, "CONNECTION": 1000000000, "VERSION": "1.1"}
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    with tempfile.TemporaryDirectory() as directory:
        source, run = os.path.join(directory, "many.pg"), os.path.join(directory, "run")
        with open(source, "w") as file:
            file.write(text)
        command = [ASSAY, "run", source, "--proxy", "varnish", "--run-dir", run, "--no-live", "--no-report", "--json"]
        command += ["--trace-disk"] if os.geteuid() == 0 else []
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if ended.returncode not in MEASURED:
            sys.exit(ended.stderr)
        summary = json.loads(ended.stdout)
    total = summary["total"]
    share = summary["health"]["metering_share"]
    print(f"{total['connections']['client_peak']:,} connections at once, {total['requests']:,} requests in "
          f"{total['duration_s']:.0f} s: {share:.2%} of a core", flush=True)
    for warning in summary["warnings"]:
        print(f"  {warning}")
    sys.exit(0 if share < 0.01 else 1)


if __name__ == "__main__":
    main()
