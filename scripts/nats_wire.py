"""As much of NATS' protocol as scripts need: one connection, subscriptions, messages with and without headers."""

import json
import select
import socket
import urllib.parse


class Connection:
    """A connection to a server without accounts. `poll` gives (subject, reply, payload) of messages that have come."""

    def __init__(self, url):
        place = urllib.parse.urlparse(url)
        self.socket = socket.create_connection((place.hostname, place.port or 4222), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray()
        self.subscriptions = 0
        options = {"verbose": False, "pedantic": False, "headers": True, "name": "script"}
        self.socket.sendall(b"CONNECT " + json.dumps(options).encode() + b"\r\n")

    def subscribe(self, subject):
        self.subscriptions += 1
        self.socket.sendall(f"SUB {subject} {self.subscriptions}\r\n".encode())

    def publish(self, subject, payload, reply=""):
        self.socket.sendall(b"PUB %s %s %d\r\n%s\r\n" % (subject.encode(), reply.encode(), len(payload), payload))

    def publish_once(self, subject, identity, payload, reply):
        """For a stream, which drops a message whose identity it has already; it confirms to `reply`."""
        head = f"NATS/1.0\r\nNats-Msg-Id: {identity}\r\n\r\n".encode()
        line = f"HPUB {subject} {reply} {len(head)} {len(head) + len(payload)}\r\n".encode()
        self.socket.sendall(line + head + payload + b"\r\n")

    def poll(self, patience_s):
        """The messages that come within so long, as soon as there are some."""
        if not select.select([self.socket], [], [], max(patience_s, 0))[0]:
            return []
        received = self.socket.recv(1 << 20)
        if not received:
            raise EOFError("the NATS server has closed the connection")
        self.buffer += received
        return self.messages()

    def messages(self):
        found, start = [], 0
        while (end := self.buffer.find(b"\r\n", start)) >= 0:
            words = bytes(self.buffer[start:end]).split()
            kind = words[0].upper() if words else b""
            if kind in (b"MSG", b"HMSG"):
                length = int(words[-1])
                if len(self.buffer) < end + 2 + length + 2:
                    break
                skipped = int(words[-2]) if kind == b"HMSG" else 0
                payload = bytes(self.buffer[end + 2 + skipped:end + 2 + length])
                has_reply = len(words) == (5 if kind == b"MSG" else 6)
                found.append((words[1].decode(), words[3].decode() if has_reply else "", payload))
                start = end + 2 + length + 2
                continue
            if kind == b"PING":
                self.socket.sendall(b"PONG\r\n")
            elif kind == b"-ERR":
                raise OSError(f"the NATS server said {words}")
            start = end + 2
        del self.buffer[:start]
        return found
