"""Other load generators, each run once for some seconds with some connections: requests done, and processor time used.

Processor time is all of the process's, from its start to its end, as for robots.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from machine import CLIENT, HERE, PATH, on


def ran(command, environment=None):
    """Runs a program on the clients' processor: what it said, and the processor time that it used."""
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, preexec_fn=on(CLIENT),
                                 env={**os.environ, "GOMAXPROCS": "1", **(environment or {})})
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read().decode(errors="replace")
    if child.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {child.returncode}:\n{text[-2000:]}")
    return text, usage.ru_utime + usage.ru_stime


def number(pattern, text):
    found = re.search(pattern, text)
    if not found:
        sys.exit(f"no {pattern!r} in:\n{text[-2000:]}")
    return int(found.group(1))


def wrk(url, seconds, connections):
    text, used = ran([tool("wrk"), "-t1", f"-c{connections}", f"-d{seconds}s", url])
    if "Non-2xx" in text:
        sys.exit(f"wrk saw errors from {url}:\n{text}")
    return number(r"(\d+) requests in", text), used


def h2load(url, seconds, connections, streams=None):
    """Over HTTP/1.1, or with so many streams at a time over HTTP/2."""
    how = ["--h1"] if streams is None else [f"-m{streams}"]
    text, used = ran([tool("h2load"), *how, "-t1", f"-c{connections}", "-D", str(seconds), url])
    return number(r"(\d+) succeeded", text), used


def s_time(address, seconds):
    """Full handshakes over TLS 1.3, one after the other."""
    command = [tool("openssl"), "s_time", "-connect", address, "-new", "-time", str(seconds), "-www", "/none"]
    text, used = ran(command)
    return number(r"(\d+) connections in \d+ real", text), used


def httperf(url, seconds, connections):
    host, port, path = re.match(r"http://([^:/]+):(\d+)(/.*)", url).groups()
    calls = 12_000 * seconds // connections
    text, used = ran([tool("httperf"), "--hog", f"--server={host}", f"--port={port}", f"--uri={path}",
                      f"--num-conns={connections}", f"--num-calls={calls}", "--rate=100000"])
    return number(r"Reply status: .*2xx=(\d+)", text), used


def hey(url, seconds, connections):
    text, used = ran([tool("hey"), "-cpus", "1", "-z", f"{seconds}s", "-c", str(connections), url])
    return number(r"\[200\]\s+(\d+) responses", text), used


def oha(url, seconds, connections):
    text, used = ran([tool("oha"), "--no-tui", "--output-format", "json", "-z", f"{seconds}s", "-c", str(connections), url],
                     {"TOKIO_WORKER_THREADS": "1"})
    return json.loads(text[text.index("{"):])["statusCodeDistribution"]["200"], used


def vegeta(url, seconds, connections):
    with tempfile.TemporaryDirectory() as directory:
        targets, results = os.path.join(directory, "targets"), os.path.join(directory, "results")
        with open(targets, "w") as file:
            file.write(f"GET {url}\n")
        _, used = ran([tool("vegeta"), "attack", "-targets", targets, "-rate=0", f"-max-workers={connections}",
                       f"-workers={connections}", f"-connections={connections}", f"-duration={seconds}s", "-output", results])
        report = subprocess.run([tool("vegeta"), "report", "-type=json", results], capture_output=True, text=True, check=True)
    return json.loads(report.stdout)["status_codes"]["200"], used


def k6(url, seconds, connections):
    with tempfile.TemporaryDirectory() as directory:
        summary, script = os.path.join(directory, "summary.json"), os.path.join(directory, "one.js")
        with open(script, "w") as file:
            file.write("import http from 'k6/http';\nexport default function () { http.get(__ENV.ADDRESS); }\n")
        _, used = ran([tool("k6"), "run", "--quiet", "--no-usage-report", "--address", "", "--summary-export", summary,
                       "-e", f"ADDRESS={url}", "--vus", str(connections), "--duration", f"{seconds}s", script])
        with open(summary) as file:
            metrics = json.load(file)["metrics"]
    if metrics["http_req_failed"]["value"] > 0:
        sys.exit("k6 saw errors")
    return metrics["http_reqs"]["count"], used


def tool(name):
    return shutil.which(name, path=PATH)


ALL = {"wrk": wrk, "h2load": h2load, "httperf": httperf, "hey": hey, "oha": oha, "vegeta": vegeta, "k6": k6}


def version(name):
    """What a tool says it is, in a few words."""
    if name == "vegeta":
        return "12.12.0"  # built from source, it does not know; scripts/bench.sh says which one it builds
    flags = {"wrk": ["-v"], "hey": ["-h"], "k6": ["version"], "nginx": ["-v"], "haproxy": ["-v"],
             "apache2": ["-v"]}
    said = subprocess.run([tool(name), *flags.get(name, ["--version"])], capture_output=True, text=True)
    found = re.search(r"v?\d+\.\d+(\.\d+)?(-\d+)?", said.stdout + said.stderr)
    if found and name != "hey":
        return found.group(0)
    # hey does not say: its package does.
    asked = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", name], capture_output=True, text=True)
    return asked.stdout or "unknown"
