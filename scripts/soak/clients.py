"""Clients of a soak: a load that rises and falls, in which every body is checked and every failure kept."""

import http.client
import math
import random
import ssl
import threading
import time

import bodies

# The load rises and falls in this time, and rests at its end: there, memory is compared from one to the next.
CYCLE_S = 240
REST_S = 30
LEAST_PER_S, MOST_PER_S = 5.0, 60.0
TIMEOUT_S = 60
OBJECTS = 400


def rate_per_s(at_s):
    """Requests a second of all clients together."""
    into_s = at_s % CYCLE_S
    if into_s > CYCLE_S - REST_S:
        return LEAST_PER_S
    wave = math.sin(math.pi * into_s / (CYCLE_S - REST_S)) ** 2
    # A burst now and then.
    burst = 3.0 if 100 <= into_s < 103 else 1.0
    return LEAST_PER_S + (MOST_PER_S - LEAST_PER_S) * wave * burst


class Client(threading.Thread):
    """One that sends requests to one address; `told` gets each failure."""

    def __init__(self, name, port, share, told, seed, is_secure=False):
        super().__init__(name=name, daemon=True)
        self.port, self.share, self.told, self.is_secure = port, share, told, is_secure
        self.chance = random.Random(seed)
        self.there = None
        self.sent = self.right = self.reopened = 0
        self.ended = threading.Event()

    def run(self):
        begun = time.monotonic()
        while not self.ended.is_set():
            pause_s = self.chance.expovariate(rate_per_s(time.monotonic() - begun) * self.share)
            if self.ended.wait(min(pause_s, 20.0)):
                break
            self.request()
        self.close()

    def close(self):
        if self.there is not None:
            self.there.close()
        self.there = None

    def connect(self):
        if self.is_secure:
            any_certificate = ssl._create_unverified_context()
            self.there = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=TIMEOUT_S, context=any_certificate)
        else:
            self.there = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)

    def request(self):
        kind = self.chance.random()
        method, sent = "GET", None
        if kind < 0.1:
            method, path = "POST", "/post"
            sent = self.chance.randbytes(self.chance.choice([10, 3000, 100_000]))
            expected = bodies.response_to(sent)
            # What cannot be repeated is not sent on a connection that may be closing.
            self.close()
        else:
            slow, size = f"/slow/{self.chance.randrange(50, 1500)}", self.chance.choice([0, 200, 5000, 60_000, 400_000])
            path = f"{slow if kind < 0.15 else f'/o/{self.chance.randrange(OBJECTS)}'}-{size}"
            expected = bodies.body(path)
        if self.chance.random() < 0.05:
            self.close()
        self.sent += 1
        at = time.time()
        problem = self.tried(method, path, sent, expected)
        if problem is None:
            self.right += 1
        else:
            self.close()
            self.told({"event": "failed", "at": at, "until": time.time(), "client": self.name, "request": f"{method} {path}", **problem})

    def tried(self, method, path, sent, expected):
        """None: all was right. `kind` is `lost`, `cut` (its response broke off) or `wrong`."""
        is_reused = self.there is not None and self.there.sock is not None
        got, response = b"", None
        try:
            if self.there is None:
                self.connect()
            self.there.request(method, path, body=sent)
            response = self.there.getresponse()
            got = response.read()
        except http.client.IncompleteRead as error:
            return self.cut(error.partial, expected, error)
        except (OSError, http.client.HTTPException) as error:
            if response is not None:
                return self.cut(got, expected, error)
            # The other side closes a connection that is not in use when it likes; a client tries once more.
            if is_reused and isinstance(error, (http.client.RemoteDisconnected, ConnectionError)):
                self.reopened += 1
                self.close()
                return self.tried(method, path, sent, expected)
            return {"kind": "lost", "what": repr(error)}
        if response.status != 200:
            return {"kind": "lost", "what": f"{response.status} {got[:200].decode(errors='replace')}"}
        if got != expected:
            return {"kind": "wrong", "what": f"{len(got)} bytes instead of {len(expected)}" if len(got) != len(expected) else "other bytes"}
        return None

    @staticmethod
    def cut(got, expected, error):
        if not expected.startswith(got):
            return {"kind": "wrong", "what": f"broke off, and what came was wrong: {error!r}"}
        return {"kind": "cut", "what": f"{len(got)} of {len(expected)} bytes: {error!r}"}
