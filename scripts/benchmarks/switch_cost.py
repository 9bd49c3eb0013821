"""What does the switch cost? Requests per CPU-second beside nginx, HAProxy and httpd, and instructions for CAP over RAND.

Capacity: every product stands as layer-7 reverse proxy before the same four back ends (one nginx with one worker that serves
empty files), on one processor and with one thread of its own (httpd: one process with a thread for each connection, as its
event module has it). Back ends and client (wrk) have the other processor. Requests take turns over a static page, a dynamic
and a disk service, so that the switch's CAP has its three classes to tell apart; the others take servers in turn. All of
them keep connections to the back ends, add X-Forwarded-For, and write no log. Clients keep their connections, or open one for
every request; 1, 64 and 1,000 at a time. What is measured is the processor time, user and system, of all processes of a product,
from /proc, over the requests that wrk counts. Products take turns within each round, in another order every time, so a machine
that changes its speed changes it for all; ratios are made within rounds.

Instructions: the switch under callgrind, the same requests one after the other on one connection, in two numbers; the
difference divided by the difference of the numbers is what one request takes, and start and end fall out.

    scripts/switch-cost.sh [--short] [--rounds N] [--seconds S] [--json FILE] [capacity] [instructions]
    ASSAY=path/to/assay: measure that one instead of building it

Everything is on loopback addresses of its own and ends by itself. The exit code is 1 where a target is missed: 1.3 times the
best of the others everywhere, CAP under 1 % over RAND.
"""

import argparse
import json
import os
import platform
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

# Who is measured has the servers' processor; clients and back ends have the clients'.
from machine import ASSAY, CLIENT, PATH, SERVER, TICK, cpu_seconds, leave_nothing_running, on, start, wait_for
from products import Forwarder

BACKENDS = [("127.66.9.%d" % n, 8000 + n) for n in (1, 2, 3, 4)]
# One request of each class of the study: static, dynamic, disk.
PATHS = ["/file0k.html", "/light.cgi", "/load.cgi"]
CONNECTIONS = (1, 64, 1000)
TARGET, TARGET_CAP = 1.3, 0.01


def write(path, text):
    with open(path, "w") as file:
        file.write(text)
    return path


class Product(Forwarder):
    """Something that stands in front of the back ends."""

    def __init__(self, name, directory, number):
        super().__init__(name, directory, number, BACKENDS, names_clients=True)

    def assay(self):
        return switch_command(self.directory, self.listen, "cap")


def switch_command(directory, listen, policy):
    """The switch with one thread, before all back ends, and with the three classes of the study."""
    servers = "".join(f'[[server]]\nname = "n{n}"\naddress = "{host}:{port}"\nconnections = 8000\n\n'
                      for n, (host, port) in enumerate(BACKENDS))
    conf = write(os.path.join(directory, "switch.toml"), f"""
listen = ["{listen}"]
workers = 1
policy = "{policy}"

[limits]
connections = 8000

[[class]]
name = "disk"
path = ["/load.cgi"]

[[class]]
name = "dynamic"
suffix = [".cgi"]

[[class]]
name = "static"

{servers}""")
    return [ASSAY, "switch", "--quiet", conf]


def back_ends(directory):
    """One nginx that is all four back ends: empty files, under any path."""
    directory = os.path.join(directory, "nodes")
    os.makedirs(os.path.join(directory, "html"))
    os.chmod(directory, 0o755)
    for path in PATHS:
        write(os.path.join(directory, "html", path[1:]), "")
    listens = "".join(f"listen {host}:{port} backlog=4096;" for host, port in BACKENDS)
    conf = write(os.path.join(directory, "nginx.conf"), f"""
daemon off; worker_processes 1; pid nginx.pid; error_log error.log crit; {"user root;" if os.geteuid() == 0 else ""}
worker_rlimit_nofile 20000; events {{ worker_connections 16000; }}
http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 3600s; tcp_nodelay on; open_file_cache max=100;
  client_body_temp_path body; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
  server {{ {listens} root html; }}
}}""")
    command = [shutil.which("nginx", path=PATH), "-p", directory + "/", "-c", conf, "-e", "error.log"]
    process = start(command, CLIENT, directory)
    for address in BACKENDS:
        wait_for(address, process)


def lua(directory, persistent):
    """The requests that wrk sends, in turn; made beforehand, so that they cost it nothing."""
    close = "" if persistent else 'wrk.headers["Connection"] = "close"\n'
    paths = ", ".join(f'"{path}"' for path in PATHS)
    return write(os.path.join(directory, "keep.lua" if persistent else "close.lua"), f"""
local made, turn = {{}}, 0
function init(args)
  {close}
  for n, path in ipairs({{ {paths} }}) do made[n] = wrk.format("GET", path) end
end
function request()
  turn = turn % #made + 1
  return made[turn]
end
""")


def load(product, script, connections, seconds):
    """One run of wrk; requests, and processor time that the product used for them."""
    before = cpu_seconds(product.process.pid)
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", script,
               f"http://{product.listen}"]
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         preexec_fn=on(CLIENT))
    used = cpu_seconds(product.process.pid) - before
    counted = re.search(r"(\d+) requests in", ran.stdout)
    if ran.returncode != 0 or not counted or "Non-2xx" in ran.stdout:
        sys.exit(f"wrk and {product.name} at {connections} connections:\n{ran.stdout}")
    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", ran.stdout)
    failed = sum(int(count) for count in errors.groups()) if errors else 0
    return {"requests": int(counted.group(1)), "cpu_s": used, "failed": failed}


def capacity(directory, rounds, seconds):
    """Requests per CPU-second of every product, setting by setting."""
    back_ends(directory)
    names = ["assay", "nginx", "haproxy", "httpd"]
    products = [Product(name, directory, number) for number, name in enumerate(names)]
    print(f"{'requests per CPU-second':<26}" + "".join(f"{name:>11}" for name in names)
          + f"{'best of them':>14}{'ratio':>7}  spread", flush=True)
    settings = []
    for persistent in (True, False):
        script = lua(directory, persistent)
        for connections in CONNECTIONS:
            settings.append(setting(products, script, persistent, connections, rounds, seconds))
    for product in products:
        product.process.terminate()
        product.process.wait()
    return settings


def setting(products, script, persistent, connections, rounds, seconds):
    runs = {product.name: [] for product in products}
    for product in products:
        load(product, script, connections, 1)
    for number in range(rounds):
        turn = products[number % len(products):] + products[:number % len(products)]
        for product in turn:
            runs[product.name].append(load(product, script, connections, seconds))
    rates = {name: [run["requests"] / max(run["cpu_s"], 1 / TICK) for run in all] for name, all in runs.items()}
    middle = {name: statistics.median(all) for name, all in rates.items()}
    others = [name for name in rates if name != "assay"]
    ratios = {name: sorted(ours / theirs for ours, theirs in zip(rates["assay"], rates[name])) for name in others}
    best = max(others, key=middle.get)
    ratio = statistics.median(ratios[best])
    kind = "kept open" if persistent else "one per request"
    print(f"{connections:>5,} {kind:<20}" + "".join(f"{middle[name]:>11,.0f}" for name in rates)
          + f"{best:>14}{ratio:>7.2f}  {ratios[best][0]:.2f} to {ratios[best][-1]:.2f}", flush=True)
    failed = {name: sum(run["failed"] for run in all) for name, all in runs.items()}
    for name, count in failed.items():
        if count:
            print(f"      {name}: {count} connections failed", flush=True)
    return {
        "connections": connections, "persistent": persistent, "requests_per_cpu_s": rates, "median": middle,
        "ratios": ratios, "best_of_others": best, "ratio": ratio, "failed": failed, "runs": runs,
    }


def send(address, count):
    """So many requests, one after the other on one connection."""
    with socket.create_connection(address, 60) as connection:
        connection.settimeout(60)
        for number in range(count):
            path = PATHS[number % len(PATHS)]
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: switch\r\nUser-Agent: measure\r\nAccept: */*\r\n\r\n".encode())
            response = b""
            while b"\r\n\r\n" not in response:
                more = connection.recv(65536)
                if not more:
                    sys.exit("the switch closed the connection")
                response += more
            if not response.startswith(b"HTTP/1.1 200"):
                sys.exit(f"the response of the switch is {response[:200]}")


def instructions_of(directory, policy, count):
    """Instructions of the switch from start to end with so many requests."""
    place = tempfile.mkdtemp(dir=directory)
    address = ("127.66.9.30", 8080)
    out = os.path.join(place, "callgrind.out")
    command = ["valgrind", "--tool=callgrind", "--trace-children=yes", f"--callgrind-out-file={out}.%p",
               *switch_command(place, f"{address[0]}:{address[1]}", policy)]
    process = start(command, SERVER, place)
    wait_for(address, process)
    send(address, count)
    process.send_signal(signal.SIGTERM)
    process.wait(120)
    total = 0
    for name in os.listdir(place):
        if name.startswith("callgrind.out"):
            with open(os.path.join(place, name)) as file:
                total += sum(int(line.split()[1]) for line in file if line.startswith("totals:"))
    if total == 0:
        sys.exit(f"callgrind wrote nothing into {place}")
    return total


def instructions(directory, rounds):
    """What one request takes, with CAP and with RAND."""
    if not os.path.isdir(os.path.join(directory, "nodes")):
        back_ends(directory)
    few, many = 300, 3300
    taken = {"cap": [], "rand": []}
    for _ in range(rounds):
        for policy in taken:
            least, most = (instructions_of(directory, policy, count) for count in (few, many))
            taken[policy].append((most - least) / (many - few))
    middle = {policy: statistics.median(all) for policy, all in taken.items()}
    cost = middle["cap"] / middle["rand"] - 1
    print(f"instructions per request: {middle['rand']:,.0f} with RAND, {middle['cap']:,.0f} with CAP: {cost:+.2%}", flush=True)
    return {"per_request": taken, "median": middle, "cap_over_rand": cost}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=[[], "capacity", "instructions"], default=[])
    parser.add_argument("--short", action="store_true", help="two rounds of a second each")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=int)
    parser.add_argument("--json", help="where to write all figures")
    args = parser.parse_args()
    rounds = args.rounds or (2 if args.short else 5)
    seconds = args.seconds or (1 if args.short else 4)
    # Ends by itself whatever happens.
    signal.signal(signal.SIGALRM, lambda *_: sys.exit("the measurement took longer than forty minutes"))
    signal.alarm(2400)
    what = args.what or ["capacity", "instructions"]
    result = {"machine": f"{platform.node()}, {os.cpu_count()} processors, Linux {platform.release()}",
              "date": time.strftime("%Y-%m-%d"), "rounds": rounds, "seconds": seconds}
    print(f"{result['machine']}, {result['date']}", flush=True)
    missed = []
    with tempfile.TemporaryDirectory(prefix="assay-switch-cost-") as directory:
        os.chmod(directory, 0o755)
        if "capacity" in what:
            result["capacity"] = capacity(directory, rounds, seconds)
            missed += [one for one in result["capacity"] if one["ratio"] < TARGET]
        if "instructions" in what:
            result["instructions"] = instructions(directory, 1 if args.short else 3)
            missed += [result["instructions"]] if result["instructions"]["cap_over_rand"] >= TARGET_CAP else []
        leave_nothing_running()
    if args.json:
        write(args.json, json.dumps(result, indent=2) + "\n")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
