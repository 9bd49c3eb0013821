"""How many lines of Squid's native log go through a second of processor time: Assay, calamaris, goaccess.

One log for all, generated; every round runs each of them once, in turn, so that what disturbs the machine meets all alike.
What counts is processor time, and the ratio within a round. Each does all that it does by default: calamaris all its
useful reports (without looking up names), goaccess its HTML page, Assay its whole analysis. Start-up counts too, which is
why a log must not be too short. Ends with 1 when a target is missed.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile

READ_SPEED = os.environ["READ_SPEED"]
LINES_PER_S = 1.5e6
AT_LEAST = {"calamaris": 10, "goaccess": 3}


def commands(log, folder):
    known = {"assay": ([READ_SPEED, "read", log], None)}
    if shutil.which("calamaris"):
        known["calamaris"] = (["calamaris", "-a", "-n"], log)
    if shutil.which("goaccess"):
        line = "%x.%^ %~%L %h %^/%s %b %m %U %^"
        page = os.path.join(folder, "goaccess.html")
        options = ["--log-format=" + line, "--date-format=%s", "--time-format=%s", "--no-progress", "-o", page]
        known["goaccess"] = (["goaccess", log] + options, None)
    return known


def seconds(command, stdin):
    """Processor seconds that a command and its children took."""
    with open(stdin or os.devnull, "rb") as source:
        process = subprocess.Popen(command, stdin=source, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{command[0]} failed with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def main():
    lines = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "access.log")
        with open(log, "wb") as out:
            subprocess.run([READ_SPEED, "generate", str(lines)], stdout=out, check=True)
        all_seconds = {name: [] for name in commands(log, folder)}
        for _ in range(rounds):
            for name, (command, stdin) in commands(log, folder).items():
                all_seconds[name].append(seconds(command, stdin))
        size = os.path.getsize(log)
    print(f"{lines} lines, {size / 1e6:.0f} MB, {rounds} rounds; processor time")
    missed = False
    for name, took in all_seconds.items():
        rate = lines / statistics.median(took)
        text = f"  {name:<10} {statistics.median(took):8.2f} s  {rate / 1e6:7.3f} M lines/s"
        if name in AT_LEAST:
            ratios = [peer / own for peer, own in zip(took, all_seconds["assay"])]
            text += f"   Assay: {statistics.median(ratios):.1f} times ({min(ratios):.1f} to {max(ratios):.1f}), wanted {AT_LEAST[name]}"
            missed |= statistics.median(ratios) < AT_LEAST[name]
        else:
            missed |= rate < LINES_PER_S
        print(text)
    sys.exit(missed)


if __name__ == "__main__":
    main()
