"""What does it cost the switch to bring a request to a server? Requests per CPU-second, way by way, beside HAProxy in TCP mode.

The ways: layer 4 with bytes copied, moved by the kernel (`splice`) and as the switch chooses ("auto"); a reverse proxy (layer 7)
with the same three; and HAProxy as `mode tcp`, with and without `option splice-auto`. All have one thread on one processor, four
servers (one nginx) that take turns, and no log; clients (ab) and servers have the other processor. Responses are empty, 64 KB or
1 MB long, over connections that are kept or opened for each request. What is measured is the processor time, user and system, of a
product over the requests that ab counts. Products take turns within each round, in another order every time; ratios are made
within rounds, so a machine that changes its speed changes it for all.

    scripts/layer4-cost.sh [--short] [--rounds N] [--seconds S] [--json FILE]
    ASSAY_SWITCH=path/to/switch: measure that build of the example

The exit code is 1 where the target is missed: layer 4 as the switch chooses, 1.0 times HAProxy in TCP mode, at every setting.
"""

import argparse
import json
import os
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from machine import CLIENT, HERE, PATH, SERVER, TICK, leave_nothing_running, on, start, wait_for

SWITCH = os.path.abspath(os.environ.get("ASSAY_SWITCH", os.path.join(HERE, "target/release/examples/switch")))
BACKENDS = [("127.66.8.%d" % n, 8000 + n) for n in (1, 2, 3, 4)]
# Bytes of a response, connections at a time, and whether they are kept.
SETTINGS = [(0, 64, True), (0, 64, False), (64 << 10, 16, True), (64 << 10, 16, False), (1 << 20, 8, True)]
WAYS = {
    "layer 4": 'mode = "tcp"\nsplice = "auto"',
    "l4 copy": 'mode = "tcp"\nsplice = "never"',
    "l4 splice": 'mode = "tcp"\nsplice = "always"',
    "proxy": 'splice = "auto"',
    "proxy copy": 'splice = "never"',
    "proxy splice": 'splice = "always"',
}
OTHERS = {"haproxy": "", "haproxy splice": "option splice-auto"}
OWN, TARGET = "layer 4", 1.0


def write(path, text):
    with open(path, "w") as file:
        file.write(text)
    return path


def cpu_seconds(pid):
    """Processor time of all threads of a process, to the nanosecond where the system keeps it so."""
    total, threads = 0.0, f"/proc/{pid}/task"
    for thread in os.listdir(threads):
        try:
            with open(f"{threads}/{thread}/schedstat") as stat:
                total += int(stat.read().split()[0]) / 1e9
        except OSError:
            with open(f"{threads}/{thread}/stat") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
            total += (int(fields[11]) + int(fields[12])) / TICK
    return total


class Product:
    """Something that stands in front of the servers."""

    def __init__(self, name, directory, number):
        self.name, self.address = name, (f"127.66.8.{20 + number}", 8080)
        self.directory = os.path.join(directory, name.replace(" ", "-"))
        os.mkdir(self.directory)
        os.chmod(self.directory, 0o755)
        command = self.switch() if name in WAYS else self.haproxy()
        self.process = start(command, SERVER, self.directory)
        wait_for(self.address, self.process)

    def switch(self):
        servers = "".join(f'[[server]]\naddress = "{host}:{port}"\nconnections = 8000\n' for host, port in BACKENDS)
        text = f'listen = "{self.address[0]}:{self.address[1]}"\npolicy = "rr"\n{WAYS[self.name]}\n{servers}'
        # The example ends with its standard input.
        conf = write(os.path.join(self.directory, "switch.toml"), text)
        return ["sh", "-c", f"tail -f /dev/null --pid=$$ | exec {SWITCH} {conf}"]

    def haproxy(self):
        servers = "\n".join(f"  server n{n} {host}:{port}" for n, (host, port) in enumerate(BACKENDS))
        conf = write(os.path.join(self.directory, "haproxy.cfg"), f"""
global
  nbthread 1
  maxconn 4000
defaults
  mode tcp
  {OTHERS[self.name]}
  timeout connect 10s
  timeout client 600s
  timeout server 600s
frontend front
  bind {self.address[0]}:{self.address[1]} backlog 4096
  default_backend nodes
backend nodes
  balance roundrobin
{servers}
""")
        return [shutil.which("haproxy", path=PATH), "-db", "-f", conf]

    def pid(self):
        """The process that does the work."""
        if self.name not in WAYS:
            return self.process.pid
        wanted = os.path.basename(SWITCH)
        for child in children(self.process.pid):
            with open(f"/proc/{child}/comm") as name:
                if name.read().strip() == wanted[:15]:
                    return child
        sys.exit(f"{self.name} has ended")


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]


def back_ends(directory):
    """One nginx that is all four servers."""
    directory = os.path.join(directory, "nodes")
    os.makedirs(os.path.join(directory, "html"))
    os.chmod(directory, 0o755)
    for size, *_ in SETTINGS:
        with open(os.path.join(directory, "html", f"{size}.bin"), "wb") as file:
            file.write(b"a" * size)
    listens = "".join(f"listen {host}:{port} backlog=4096;" for host, port in BACKENDS)
    conf = write(os.path.join(directory, "nginx.conf"), f"""
daemon off; worker_processes 1; pid nginx.pid; error_log error.log crit; {"user root;" if os.geteuid() == 0 else ""}
worker_rlimit_nofile 20000; events {{ worker_connections 16000; }}
http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 3600s; tcp_nodelay on; sendfile on; open_file_cache max=100;
  client_body_temp_path body; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
  server {{ {listens} root html; }}
}}""")
    command = [shutil.which("nginx", path=PATH), "-p", directory + "/", "-c", conf, "-e", "error.log"]
    process = start(command, CLIENT, directory)
    for address in BACKENDS:
        wait_for(address, process)


def load(product, setting, seconds):
    """One run of ab; requests, and processor time that the product used for them."""
    size, connections, kept = setting
    host, port = product.address
    command = ["ab", "-q", "-t", str(seconds), "-n", "10000000", "-c", str(connections), *(["-k"] if kept else []),
               f"http://{host}:{port}/{size}.bin"]
    pid = product.pid()
    before = cpu_seconds(pid)
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=on(CLIENT))
    used = cpu_seconds(pid) - before
    counted = re.search(r"Complete requests:\s+(\d+)", ran.stdout)
    failed = re.search(r"Failed requests:\s+(\d+)", ran.stdout)
    if ran.returncode != 0 or not counted or "Non-2xx" in ran.stdout or int(failed.group(1)) > 0:
        sys.exit(f"ab and {product.name} at {setting}:\n{ran.stdout}")
    return int(counted.group(1)) / max(used, 1e-6)


def measure(products, setting, rounds, seconds):
    rates = {product.name: [] for product in products}
    for product in products:
        load(product, setting, 1)
    for number in range(rounds):
        turn = products[number % len(products):] + products[:number % len(products)]
        for product in turn:
            rates[product.name].append(load(product, setting, seconds))
    best = max(OTHERS, key=lambda name: statistics.median(rates[name]))
    ratios = sorted(own / other for own, other in zip(rates[OWN], rates[best]))
    median = {name: statistics.median(all) for name, all in rates.items()}
    size, connections, kept = setting
    what = f"{size >> 10} KB, {connections} {'kept' if kept else 'new'}"
    print(f"{what:<16}" + "".join(f"{1e6 / median[name]:>14,.1f}" for name in rates)
          + f"{statistics.median(ratios):>8.2f}  {ratios[0]:.2f} to {ratios[-1]:.2f}", flush=True)
    return {"bytes": size, "connections": connections, "kept": kept, "requests_per_cpu_s": rates, "median": median,
            "best_of_others": best, "ratio": statistics.median(ratios), "ratios": ratios}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="two rounds of a second each")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=int)
    parser.add_argument("--json", help="where to write all figures")
    args = parser.parse_args()
    rounds, seconds = args.rounds or (2 if args.short else 5), args.seconds or (1 if args.short else 3)
    signal.signal(signal.SIGALRM, lambda *_: sys.exit("the measurement took longer than forty minutes"))
    signal.alarm(2400)
    # Whatever was started ends with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("the measurement was ended"))
    result = {"machine": f"{os.cpu_count()} processors, Linux {platform.release()}", "date": time.strftime("%Y-%m-%d"),
              "rounds": rounds, "seconds": seconds}
    print(f"{result['machine']}, {result['date']}; microseconds of processor time for a request, and requests per CPU-second of "
          f"{OWN} over the best of HAProxy", flush=True)
    with tempfile.TemporaryDirectory(prefix="assay-layer4-cost-") as directory:
        os.chmod(directory, 0o755)
        back_ends(directory)
        names = [*WAYS, *OTHERS]
        products = [Product(name, directory, number) for number, name in enumerate(names)]
        print(f"{'':<16}" + "".join(f"{name:>14}" for name in names) + f"{'ratio':>8}  spread", flush=True)
        result["settings"] = [measure(products, setting, rounds, seconds) for setting in SETTINGS]
        leave_nothing_running()
    if args.json:
        write(args.json, json.dumps(result, indent=2) + "\n")
    sys.exit(1 if any(one["ratio"] < TARGET for one in result["settings"]) else 0)


if __name__ == "__main__":
    main()
