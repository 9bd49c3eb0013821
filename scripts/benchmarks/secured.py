"""Measures over TLS 1.3 and over HTTP/2, as `measures` does in the clear over HTTP/1.1."""

import generators
from certificates import Certificates
from machine import ASSAY, CLIENT, SERVER, Role, resident_bytes, soon, start, stop, wait_for
from nginx import Nginx
from ours import Robots, at, origins, static_tree, workload
from products import Forwarder
from row import Row, in_turn, room, served

CONNECTIONS = 64
# Connections with several streams each.
FEW = 8
# What robots, wrk and h2load take for the host of an origin: the workload's own name and the servers' addresses.
NAMES = ["10.0.0.1"] + [f"127.66.{third}.{last}" for third in (4, 5, 9) for last in range(1, 20)]
H2 = {"VERSION": "2"}
# Objects of each robot: the first that has its session may introduce all of them, while the others still greet the server.
EACH = 400


def url_of(address, path, tls):
    return f"http{'s' if tls else ''}://{at(address)}{path}"


def tls(rounds, seconds):
    """Kept connections over TLS: 1 KB against wrk and h2load, 100 KB against h2load."""
    for size, others in (("1KB", ("wrk", "h2load")), ("100KB", ("h2load",))):
        with room() as directory:
            certificates = Certificates(directory, NAMES)
            address = ("127.66.4.1", 8066)
            path = workload(directory, SIZE=size, ROBOTS=CONNECTIONS, SECONDS=seconds)
            url = url_of(address, static_tree(path, directory, EACH), certificates)
            nginx = Nginx(directory, address, tls=certificates)

            def other(run):
                def once():
                    requests, used = run(url, seconds, CONNECTIONS)
                    return requests / used
                return once

            sides = {"assay": lambda: Robots(path, address, directory, tls=certificates.of_client).per_cpu_second}
            sides |= {name: other(generators.ALL[name]) for name in others if generators.tool(name)}
            values = in_turn(rounds, sides)
            nginx.end()
        least, times = (1.1, 1) if size == "1KB" else (1.0, 100)
        unit = "requests per CPU-second" if size == "1KB" else "KB per CPU-second"
        for name in list(sides)[1:]:
            ours, theirs = ([value * times for value in values[side]] for side in ("assay", name))
            yield Row(f"robots over TLS 1.3, every byte checked, {size.replace('KB', ' KB')}, 64 connections", unit, ours, theirs,
                      f"at least {least}", at_least=least, against=name)


def http2(rounds, seconds):
    """1 KB over HTTP/2, in the clear and over TLS, with 1, 10 and 100 streams, against h2load."""
    for streams in (1, 10, 100):
        for secured in (False, True):
            with room() as directory:
                certificates = Certificates(directory, NAMES) if secured else None
                address, connections = ("127.66.4.2", 8066), CONNECTIONS if streams == 1 else FEW
                path = workload(directory, streams=streams, SIZE="1KB", ROBOTS=connections, SECONDS=seconds, **H2)
                # With many streams, a robot is further ahead of those that still greet the server.
                url = url_of(address, static_tree(path, directory, EACH if streams < 100 else 10 * EACH), secured)
                nginx = Nginx(directory, address, tls=certificates, http2=True)
                trust = certificates.of_client if secured else None

                def h2load():
                    requests, used = generators.h2load(url, seconds, connections, streams)
                    return requests / used

                values = in_turn(rounds, {
                    "assay": lambda: Robots(path, address, directory, tls=trust).per_cpu_second,
                    "h2load": h2load,
                })
                nginx.end()
            over = "over TLS 1.3" if secured else "in the clear"
            yield Row(f"robots over HTTP/2 {over}, all checks, 1 KB, {connections} connections with {streams} streams",
                      "requests per CPU-second", values["assay"], values["h2load"], "at least 1.1", at_least=1.1, against="h2load")


def handshakes(rounds, seconds):
    """A full handshake (P-256) for each request, on the client's side, against openssl s_time, which requests nothing that is there."""
    with room() as directory:
        certificates = Certificates(directory, NAMES)
        address = ("127.66.4.3", 8066)
        path = workload(directory, SIZE="1KB", ROBOTS=4, SECONDS=seconds, CONNECTION=1)
        static_tree(path, directory, EACH)
        nginx = Nginx(directory, address, tls=certificates)
        trust = certificates.of_client | {"resumption": 0.0}

        def s_time():
            connections, used = generators.s_time(at(address), seconds)
            return connections / used

        values = in_turn(rounds, {"assay": lambda: Robots(path, address, directory, tls=trust).per_cpu_second, "s_time": s_time})
        nginx.end()
    yield Row("robots, a full handshake (P-256, verified) and a request each", "handshakes per CPU-second", values["assay"],
              values["s_time"], "at least 1.2", at_least=1.2, against="openssl s_time")


def origin(rounds, seconds):
    """Origins over TLS and over HTTP/2 against nginx, with clients that check nothing."""
    for name, version, secured in (("TLS 1.3", "1.1", True), ("HTTP/2 in the clear", "2", False), ("HTTP/2 over TLS 1.3", "2", True)):
        with room() as directory:
            certificates = Certificates(directory, NAMES) if secured else None
            path = workload(directory, SIZE="1KB", ROBOTS=CONNECTIONS, SECONDS=seconds, VERSION=version)
            ours_at, theirs_at = ("127.66.4.4", 9066), ("127.66.4.5", 8066)
            first = static_tree(path, directory, EACH)
            role = origins(path, ours_at, directory, tls=certificates)
            nginx = Nginx(directory, theirs_at, tls=certificates, http2=version == "2")

            def side(address, process):
                run = client(url_of(address, first, secured), seconds, version)
                return lambda: served(run, process.pid)

            values = in_turn(rounds, {"assay": side(ours_at, role.process), "nginx": side(theirs_at, nginx.process)})
            nginx.end()
            role.end()
        yield Row(f"origin over {name}, 1 KB", "requests per CPU-second", values["assay"], values["nginx"], "at least 1.3",
                  at_least=1.3, against="nginx")


def client(url, seconds, version):
    """wrk over HTTP/1.1, h2load with ten streams on each of a few connections over HTTP/2."""
    if version == "2":
        return lambda: generators.h2load(url, seconds, FEW, 10)
    return lambda: generators.wrk(url, seconds, CONNECTIONS)


def front(rounds, seconds):
    """The switch and the built-in proxy (nothing stored): TLS, and HTTP/2 over it, in front, HTTP/1.1 in the clear behind."""
    for version in ("1.1", "2"):
        with room() as directory:
            certificates = Certificates(directory, NAMES)
            path = workload(directory, SIZE="1KB", ROBOTS=CONNECTIONS, SECONDS=seconds, CACHABLE=0)
            first = static_tree(path, directory, EACH)
            behind = ("127.66.4.6", 9066)
            role = origins(path, behind, directory, cpu=CLIENT)
            ours = {"built-in proxy": proxy(directory, behind, certificates), "switch": switch(directory, behind, certificates)}
            others = {name: Forwarder(name, directory, number, [behind], tls=certificates, http2=version == "2")
                      for number, name in enumerate(("nginx", "haproxy"))}
            theirs = {name: (other.address, other.process) for name, other in others.items()}

            def side(address, process):
                run = client(url_of(address, first, True), seconds, version)
                return lambda: served(run, process.pid)

            values = in_turn(rounds, {name: side(*where) for name, where in (ours | theirs).items()})
            for _, process in (ours | theirs).values():
                stop(process)
            role.end()
        over = "HTTP/2 over TLS 1.3" if version == "2" else "TLS 1.3"
        for own in ours:
            for name in theirs:
                yield Row(f"{own}, {over} in front, 1 KB", "requests per CPU-second", values[own], values[name], "at least 1.2",
                          at_least=1.2, against=name)


def proxy(directory, behind, certificates):
    address = ("127.66.4.7", 8066)
    role = Role("proxy", {
        "listen": at(address), "threads": 1, "cpus": [SERVER], "memory_bytes": 100_000_000, "tls": certificates.of_server,
        "origins": [{"authority": at(address), "address": at(behind)}],
    }, [SERVER], directory)
    role.start()
    return address, role.process


def switch(directory, behind, certificates):
    address = ("127.66.4.8", 8066)
    path = certificates.path("switch.toml")
    with open(path, "w") as file:
        file.write(f"""
workers = 1
policy = "rr"

[limits]
connections = 8000

[tls]
listen = ["{at(address)}"]
min-version = "1.3"

[[certificate]]
file = "{certificates.certificate}"
key = "{certificates.key}"

[[server]]
name = "n"
address = "{at(behind)}"
connections = 8000
""")
    process = start([ASSAY, "switch", "--quiet", path], SERVER, directory)
    wait_for(address, process)
    return address, process


def idle(_rounds, _seconds):
    """Memory of robots and of origins for each connection that stays open, over TLS and over HTTP/2: 4,000 against 100."""
    for name, version, secured, most in (("TLS", "1.1", True, 12_000), ("HTTP/2", "2", False, 8_000)):
        few, many = (crowd(number, version, secured) for number in (100, 4_000))
        for side, who in enumerate(("robots", "origins")):
            each = (many[side] - few[side]) / 3_900
            yield Row(f"{who} with an open connection over {name}", "bytes of memory each", [each], [], f"at most {most:,} bytes", at_most=most)


def crowd(robots, version, secured):
    """Resident memory of both sides, once all robots have their connection and most of these are idle."""
    with room() as directory:
        certificates = Certificates(directory, NAMES) if secured else None
        path = workload(directory, "many-robots.pg", SIZE="1KB", RATE=2000, ROBOTS=robots, SECONDS=3, VERSION=version)
        address, begin = ("127.66.4.9", 9066), soon(2)
        role = origins(path, address, directory, start=begin, tls=certificates)
        trust = certificates.of_client if secured else None
        run = Robots(path, address, directory, start=begin, settled_s=9, tls=trust)
        of_origins = resident_bytes(role.process.pid)
        role.end()
    return run.resident_bytes, of_origins


ALL = {"tls": tls, "http2": http2, "handshakes": handshakes, "secured-origin": origin, "secured-front": front, "secured-idle": idle}
