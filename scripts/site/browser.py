"""Headless Chromium, driven over a pair of pipes: pages at any width, what scripts find in them, and pictures.

Messages are JSON, each ended by a zero byte, on the descriptors 3 and 4 of the browser (`--remote-debugging-pipe`). Nothing listens
on a port, and names of other hosts do not resolve, so that a page that needs the network shows it.
"""

import base64
import json
import os
import shutil
import subprocess
import tempfile

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe",
)


def program():
    """The path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page in a browser of its own; `with` ends it."""

    def __init__(self):
        chromium = program()
        if chromium is None:
            raise SystemExit("no Chromium in PATH (apt-get install chromium)")
        self.home = tempfile.TemporaryDirectory()
        # A shell puts the pipes where the browser looks for them.
        command = ["sh", "-c", 'exec "$0" "$@" 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null', chromium, *FLAGS,
                   f"--user-data-dir={self.home.name}/profile", "about:blank"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env={**os.environ, "TMPDIR": self.home.name})
        self.calls = 0
        self.session = None
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.home.cleanup()

    def call(self, method, **params):
        """Carries out a command of the DevTools protocol, and gives its result."""
        self.calls += 1
        message = {"id": self.calls, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.process.stdin.write(json.dumps(message).encode() + b"\0")
        self.process.stdin.flush()
        while True:
            received = self.receive()
            if received.get("id") == self.calls:
                if "error" in received:
                    raise RuntimeError(f"{method}: {received['error']['message']}")
                return received["result"]
            self.events.append(received)

    def receive(self):
        """The next message of the browser."""
        parts = []
        while True:
            byte = self.process.stdout.read(1)
            if not byte:
                raise RuntimeError("the browser has ended")
            if byte == b"\0":
                return json.loads(b"".join(parts))
            parts.append(byte)

    def open(self, url, width=1240, height=1000, scale=1, dark=False):
        """Loads a page at this width, and waits until everything that it loads is there."""
        self.events.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                  mobile=width < 600)
        scheme = "dark" if dark else "light"
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        said = self.call("Page.navigate", url=url)
        if said.get("errorText"):
            raise RuntimeError(f"{url}: {said['errorText']}")
        self.evaluate("new Promise(go => document.readyState === 'complete' ? go() : addEventListener('load', go))")
        self.settle()

    def settle(self):
        """Waits until the page has been drawn."""
        self.evaluate("new Promise(go => requestAnimationFrame(() => requestAnimationFrame(go)))")

    def evaluate(self, expression):
        """The value of an expression in the page; promises are waited for."""
        said = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in said:
            details = said["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return said["result"].get("value")

    def picture(self, path, clip=None):
        """Writes what is visible, or a rectangle of the page (x, y, width, height), as PNG."""
        params = {"format": "png"}
        if clip:
            params |= {"clip": dict(zip(("x", "y", "width", "height"), clip)) | {"scale": 1}, "captureBeyondViewport": True}
        data = self.call("Page.captureScreenshot", **params)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def complaints(self):
        """What the page logged as an error or threw, and what it requested from the network, since it was opened."""
        found = []
        for event in self.events:
            params = event.get("params", {})
            match event.get("method"):
                case "Runtime.exceptionThrown":
                    found.append(params["exceptionDetails"]["text"])
                case "Log.entryAdded" if params["entry"]["level"] == "error":
                    found.append(f"{params['entry']['text']} {params['entry'].get('url', '')}".strip())
                case "Network.requestWillBeSent" if not params["request"]["url"].startswith(("file:", "data:", "blob:")):
                    found.append(f"requests {params['request']['url']}")
        return found
