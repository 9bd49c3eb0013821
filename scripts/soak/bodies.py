"""What servers send and clients check: the body of each path follows from the path. Run by itself: a server of these bodies.

`/o/N-SIZE` may be cached, `/slow/MS-SIZE` comes in ten parts over that many milliseconds, and the response to a POST is the digest of what came.
Usage: bodies.py PORT
"""

import hashlib
import http.server
import sys
import time


def body(path):
    size = int(path.rsplit("-", 1)[1])
    digest = hashlib.sha256(path.encode()).hexdigest().encode()
    return (digest * (size // len(digest) + 1))[:size]


def response_to(sent):
    return hashlib.sha256(sent).hexdigest().encode()


class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 120

    def begin(self, length):
        self.send_response(200)
        if self.path.startswith("/o/"):
            self.send_header("Cache-Control", "max-age=600")
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def do_GET(self):
        if self.path == "/health":
            return self.begin(0)
        whole = body(self.path)
        self.begin(len(whole))
        if not self.path.startswith("/slow/"):
            return self.wfile.write(whole)
        pause_s = int(self.path.split("/")[2].split("-")[0]) / 10_000
        step = len(whole) // 10 + 1
        for at in range(0, len(whole), step):
            time.sleep(pause_s)
            self.wfile.write(whole[at : at + step])

    def do_POST(self):
        whole = response_to(self.rfile.read(int(self.headers["Content-Length"])))
        self.begin(len(whole))
        self.wfile.write(whole)

    def log_message(self, *_):
        pass

    def handle(self):
        try:
            super().handle()
        except OSError:
            pass  # The switch has gone, or this server is being stopped.


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


if __name__ == "__main__":
    Server(("127.0.0.1", int(sys.argv[1])), Page).serve_forever()
