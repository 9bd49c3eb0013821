"""A build of Assay: runs its commands in one directory, and ends whatever still runs of them."""

import signal
import subprocess
import threading

USABLE = (0, 96, 99)  # fine, undecided, failed: there are results


class Build:
    """The binary at a path, for commands in a directory."""

    def __init__(self, binary, directory):
        self.binary, self.directory = str(binary), directory
        self.children, self.lock = set(), threading.Lock()
        self.closed = False

    def start(self, *arguments):
        """A command that goes on; its words come through pipes."""
        with self.lock:
            if self.closed:
                raise RuntimeError("the checks are over")
            child = subprocess.Popen(
                [self.binary, *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=self.directory,
            )
            self.children.add(child)
        return child

    def run(self, *arguments, limit_s=120, codes=USABLE):
        """What a command prints; it must end in time, with one of these exit codes."""
        return self.words(self.start(*arguments), arguments, limit_s, codes)

    def interrupt(self, child, *arguments, limit_s=120, codes=USABLE):
        """The same of one that goes on until Ctrl-C."""
        child.send_signal(signal.SIGINT)
        return self.words(child, arguments, limit_s, codes)

    def words(self, child, arguments, limit_s, codes):
        try:
            out, words = child.communicate(timeout=limit_s)
        finally:
            self.end(child)
        if child.returncode not in codes:
            said = "\n".join(words.strip().splitlines()[-5:])
            raise RuntimeError(f"assay {' '.join(map(str, arguments))} ended with {child.returncode}: {said}")
        return out

    def end(self, child):
        with self.lock:
            self.children.discard(child)
        if child.poll() is None:
            child.terminate()
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def close(self):
        with self.lock:
            self.closed = True
            left = list(self.children)
        for child in left:
            self.end(child)
