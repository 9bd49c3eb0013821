"""A forwarder that delays what passes, each way by its own time. For tests of clocks: the bound must not assume equal ways.

Usage: delay.py LISTEN TARGET THERE_MS BACK_MS
"""

import asyncio
import sys


def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


async def carry(reader, writer, delay_s):
    """Passes bytes on, each after the delay: those that come meanwhile wait beside them, not behind."""
    loop = asyncio.get_running_loop()
    queue = asyncio.Queue()

    async def send():
        while True:
            due, data = await queue.get()
            await asyncio.sleep(max(0.0, due - loop.time()))
            if not data:
                writer.close()
                return
            writer.write(data)
            await writer.drain()

    sending = asyncio.create_task(send())
    try:
        while data := await reader.read(65536):
            queue.put_nowait((loop.time() + delay_s, data))
    except ConnectionError:
        pass
    queue.put_nowait((loop.time() + delay_s, b""))
    try:
        await sending
    except ConnectionError:
        pass


async def main():
    listen, target, there_ms, back_ms = sys.argv[1:]

    async def connected(reader, writer):
        try:
            far_reader, far_writer = await asyncio.open_connection(*address(target))
        except OSError:
            writer.close()
            return
        there = carry(reader, far_writer, float(there_ms) / 1000)
        back = carry(far_reader, writer, float(back_ms) / 1000)
        await asyncio.gather(there, back)

    server = await asyncio.start_server(connected, *address(listen))
    await server.serve_forever()


asyncio.run(main())
