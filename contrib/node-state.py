#!/usr/bin/env python3
"""Says at /assay/state how busy this machine is, so that `assay cluster --run --nodes` can watch a server on it second by second.

    node-state.py [--listen 127.0.0.1:9101] [--disk sda,sdb] [--interface eth0] [--link-mbit 1000]

Run it on each machine of the cluster, and let the server under load pass that path on, for example in nginx:

    location = /assay/state { proxy_pass http://127.0.0.1:9101; }

What is said are seconds since the machine was started: of its processors, on average, from /proc/stat; of its disks, on average, from
/proc/diskstats; and of its network, the bytes sent over the link's rate, from /proc/net/dev. Without options, disks are all that have a
device, and the interface is that of the default route, at the speed that the kernel has for it.
"""

import argparse
import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def processor_s():
    with open("/proc/stat") as lines:
        numbers = [int(number) for number in lines.readline().split()[1:9]]
    idle = numbers[3] + numbers[4]
    return (sum(numbers) - idle) / os.sysconf("SC_CLK_TCK") / os.cpu_count()


def disks():
    return [name for name in os.listdir("/sys/block") if os.path.exists(f"/sys/block/{name}/device")]


def disk_s(names):
    busy_ms = 0
    with open("/proc/diskstats") as lines:
        for line in lines:
            fields = line.split()
            if fields[2] in names:
                busy_ms += int(fields[12])
    return busy_ms / 1000 / max(len(names), 1)


def default_interface():
    with open("/proc/net/route") as lines:
        for line in lines:
            fields = line.split()
            if fields[1] == "00000000":
                return fields[0]
    return None


def speed_mbit(interface):
    try:
        with open(f"/sys/class/net/{interface}/speed") as file:
            return max(int(file.read()), 0)
    except (OSError, ValueError):
        return 0


def network_s(interface, mbit):
    with open("/proc/net/dev") as lines:
        for line in lines:
            name, _, rest = line.partition(":")
            if name.strip() == interface and mbit > 0:
                return int(rest.split()[8]) * 8 / (mbit * 1e6)
    return 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--listen", default="127.0.0.1:9101")
    parser.add_argument("--disk", help="names, divided by commas")
    parser.add_argument("--interface")
    parser.add_argument("--link-mbit", type=float)
    options = parser.parse_args()
    names = options.disk.split(",") if options.disk else disks()
    interface = options.interface or default_interface()
    mbit = options.link_mbit if options.link_mbit is not None else speed_mbit(interface)

    class State(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            used = {
                "processor_s": processor_s(),
                "disk_s": disk_s(names),
                "network_s": network_s(interface, mbit),
            }
            with open("/proc/uptime") as uptime:
                used["at_s"] = float(uptime.read().split()[0])
            body = json.dumps({"used": used}).encode()
            is_state = self.path == "/assay/state"
            self.send_response(200 if is_state else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body) if is_state else 0))
            self.end_headers()
            if is_state:
                self.wfile.write(body)

        def log_message(self, *_):
            pass

    host, _, port = options.listen.rpartition(":")
    server = ThreadingHTTPServer((host, int(port)), State)
    print(f"http://{server.server_address[0]}:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
