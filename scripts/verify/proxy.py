"""A small caching reverse proxy (asyncio, HTTP/1.1, GET only): a target of which it is known how it responded.

Its store has no end and keeps RFC 9111's main rules: what may be stored, how long it is fresh, one fetch for all requests at
the same time, `Age`. It counts what it did; with `corrupt_every` it turns over one bit of every n-th body that it sends, and
with a `bucket` it responds with 503 to what comes when no token is left. Loopback only.
"""

import asyncio
import dataclasses
import email.utils
import threading
import time


@dataclasses.dataclass
class ProxyCounts:
    """What the proxy knows of itself, without the probes that Assay sends before a run."""

    requests: int = 0
    hits: int = 0
    joined: int = 0
    misses: int = 0
    bytes: int = 0
    hit_bytes: int = 0
    corrupted: int = 0


@dataclasses.dataclass
class Response:
    head: list  # of (name, value), without those of the connection
    status: bytes
    body: bytes
    received_s: float = dataclasses.field(default_factory=time.time)

    def field(self, name):
        return next((value for key, value in self.head if key.lower() == name), None)

    def age_s(self):
        """How long it is here, and how old it was when it came, in whole seconds, as those of `Date` are (RFC 9111, 4.2.3)."""
        made = email.utils.parsedate_to_datetime(self.field("date")).timestamp()
        return max(int(self.received_s) - made, 0) + time.time() - self.received_s

    def lifetime_s(self):
        """How long it is fresh, by what it says; forever if it says nothing and may be stored; None: not to be stored."""
        directives = dict(
            (part.strip().lower().split("=") + [None])[:2] for part in (self.field("cache-control") or "").split(",")
        )
        if {"no-store", "private", "no-cache"} & directives.keys() or b" 200 " not in self.status:
            return None
        if "s-maxage" in directives or "max-age" in directives:
            return float(directives.get("s-maxage") or directives["max-age"])
        if expires := self.field("expires"):
            return (
                email.utils.parsedate_to_datetime(expires) - email.utils.parsedate_to_datetime(self.field("date"))
            ).total_seconds()
        return float("inf")


BAD_GATEWAY = Response([("Content-Length", "0")], b"HTTP/1.1 502 Bad Gateway", b"")
UNAVAILABLE = Response([("Content-Length", "0")], b"HTTP/1.1 503 Service Unavailable", b"")


class Bucket:
    """Tokens that come at a rate, up to a depth, and of which each request takes one. Time is an argument."""

    def __init__(self, rate_per_s, depth):
        self.rate_per_s, self.depth = rate_per_s, depth
        self.tokens, self.filled_s = depth, 0.0

    def take(self, now_s):
        self.tokens = min(self.tokens + (now_s - self.filled_s) * self.rate_per_s, self.depth)
        self.filled_s = now_s
        lets = self.tokens >= 1
        self.tokens -= lets
        return lets


class Proxy:
    """Listens until `close`; `address` is where."""

    def __init__(self, origin, corrupt_every=0, bucket=None):
        self.origin, self.corrupt_every, self.bucket = origin, corrupt_every, bucket
        self.counts, self.store, self.fetches = ProxyCounts(), {}, {}
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.server = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self.serve, "127.0.0.1", 0, backlog=1024), self.loop
        ).result()
        self.address = "127.0.0.1:{}".format(self.server.sockets[0].getsockname()[1])

    def close(self):
        async def stop():
            self.server.close()
            others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(stop(), self.loop).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()

    async def serve(self, reader, writer):
        try:
            while request := await head_of(reader):
                line, fields = request
                counted = any(name.lower() == "x-assay" for name, _ in fields)
                if counted and self.bucket and not self.bucket.take(time.monotonic()):
                    response, how = UNAVAILABLE, "miss"
                else:
                    response, how = await self.respond(line, fields)
                writer.write(self.message(response, how, counted))
                await writer.drain()
                if any(name.lower() == "connection" and value.lower() == "close" for name, value in fields):
                    break
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client went away
        finally:
            writer.close()

    async def respond(self, line, fields):
        """A response, and how it came about."""
        key = line.split()[1]
        stored = self.store.get(key)
        if stored and stored.age_s() < stored.lifetime_s():
            return stored, "hit"
        if key in self.fetches:
            response = await asyncio.shield(self.fetches[key])
            if response.lifetime_s() is not None:
                return response, "joined"
        fetch = self.fetches[key] = asyncio.ensure_future(self.fetch(line, fields))
        try:
            response = await fetch
        finally:
            if self.fetches.get(key) is fetch:
                del self.fetches[key]
        if response.lifetime_s() is not None:
            self.store[key] = response
        return response, "miss"

    async def fetch(self, line, fields):
        host, port = self.origin.split(":")
        try:
            reader, writer = await asyncio.open_connection(host, int(port))
        except OSError:
            return BAD_GATEWAY
        kept = [(name, value) for name, value in fields if name.lower() not in ("connection", "keep-alive")]
        head = "".join(f"{name}: {value}\r\n" for name, value in [*kept, ("Connection", "close")])
        writer.write(line.rsplit(b" ", 1)[0] + b" HTTP/1.1\r\n" + head.encode() + b"\r\n")
        try:
            status, fields = await head_of(reader)
            length = next(int(value) for name, value in fields if name.lower() == "content-length")
            body = await reader.readexactly(length)
        finally:
            writer.close()
        return Response([field for field in fields if field[0].lower() != "connection"], status, body)

    def message(self, response, how, counted):
        """The bytes of a response; counts it."""
        body, counts = response.body, self.counts
        head = list(response.head)
        if how != "miss":
            head.append(("Age", str(int(response.age_s()))))
        if counted:
            counts.requests += 1
            if self.corrupt_every and counts.requests % self.corrupt_every == 0 and body:
                middle = len(body) // 2
                body = body[:middle] + bytes([body[middle] ^ 1]) + body[middle + 1 :]
                counts.corrupted += 1
            else:
                counts.hits += how == "hit"
                counts.joined += how == "joined"
                counts.misses += how == "miss"
                counts.bytes += len(body)
                counts.hit_bytes += len(body) if how != "miss" else 0
        return response.status + b"\r\n" + "".join(f"{n}: {v}\r\n" for n, v in head).encode() + b"\r\n" + body


async def head_of(reader):
    """First line and fields of a message; None at the end of a connection."""
    try:
        text = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    line, *rest = text[:-4].split(b"\r\n")
    return line, [tuple(part.strip() for part in field.decode("latin-1").split(":", 1)) for field in rest]
