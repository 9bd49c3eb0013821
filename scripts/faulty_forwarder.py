"""A small forwarder between robots and one origin that gets one thing wrong on purpose: see scripts/answers.py.

It shares no code with what it is to be found by. It prints a line when it listens, and ends when it is killed.
Usage: faulty_forwarder.py LISTEN ORIGIN (none | wrong-byte | stale | reload | half-rate | p99)
"""

import asyncio
import sys

# One request of so many is slow, by this many seconds; and twice as slow where that is the fault.
SLOW_EVERY, SLOW_S = 40, 0.02
WRONG_EVERY = 50
HALF_RATE_PER_S = 60.0


class Forwarder:
    def __init__(self, origin, fault):
        self.origin, self.fault = origin, fault
        self.requests = 0
        self.store = {}
        self.free_at_s = 0.0

    async def connection(self, reader, writer):
        """Requests of one connection, one after the other, each on a connection to the origin that is the client's own."""
        upstream = None
        try:
            upstream = await asyncio.open_connection(*self.origin)
            while await self.exchange(reader, writer, upstream):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # Either side closed.
        finally:
            for side in [writer, upstream and upstream[1]]:
                if side:
                    side.close()

    async def exchange(self, reader, writer, upstream):
        """One request with its response; false if no further one may follow."""
        request = await head_of(reader)
        self.requests += 1
        await self.delay()
        path = request.split(b" ", 2)[1]
        is_reload = b"\r\ncache-control: no-cache" in request.lower() or b"\r\npragma: no-cache" in request.lower()
        may_store = self.fault == "stale" and not is_reload or self.fault == "reload" and is_reload
        if may_store and path in self.store:
            writer.write(self.store[path])
            await writer.drain()
            return True
        upstream[1].write(request)
        response = await head_of(upstream[0])
        status, length = int(response.split(b" ", 2)[1]), length_of(response)
        body = bytearray(await upstream[0].readexactly(length) if status not in (204, 304) else b"")
        if self.fault == "wrong-byte" and self.requests % WRONG_EVERY == 0 and body:
            body[len(body) // 2] ^= 0xFF
        if status == 200:
            self.store[path] = response + bytes(body)
        writer.write(response + bytes(body))
        await writer.drain()
        return b"\r\nconnection: close" not in (request + response).lower()

    async def delay(self):
        """Waits as the fault wants it."""
        if self.fault == "half-rate":
            now_s = asyncio.get_running_loop().time()
            self.free_at_s = max(self.free_at_s, now_s) + 1 / HALF_RATE_PER_S
            await asyncio.sleep(self.free_at_s - now_s)
        elif self.requests % SLOW_EVERY == 0:
            await asyncio.sleep(SLOW_S * (2 if self.fault == "p99" else 1))


async def head_of(reader):
    """All of a head, with the empty line at its end."""
    return await reader.readuntil(b"\r\n\r\n")


def length_of(head):
    """Bytes of the body; origins of this workload state it always."""
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


async def main():
    listen, origin = (argument.rsplit(":", 1) for argument in sys.argv[1:3])
    forwarder = Forwarder((origin[0], int(origin[1])), sys.argv[3])
    server = await asyncio.start_server(forwarder.connection, listen[0], int(listen[1]))
    print("listening", flush=True)
    async with server:
        await server.serve_forever()


asyncio.run(main())
