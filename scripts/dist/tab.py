#!/usr/bin/env python3
"""Types into an interactive bash in a root, presses Tab, and looks for what it completes to.

usage: tab.py ROOT USER TYPED COMPLETED
"""

import os
import pty
import re
import select
import signal
import sys
import time

PATIENCE_S = 60
PROMPT = b"ready> "


def read_until(terminal, wanted):
    """Reads what the terminal shows until `wanted` returns true of it."""
    shown, deadline = b"", time.monotonic() + PATIENCE_S
    while not wanted(shown):
        readable, _, _ = select.select([terminal], [], [], max(0, deadline - time.monotonic()))
        if not readable:
            raise TimeoutError(f"it shows only {shown!r}")
        try:
            shown += os.read(terminal, 65536)
        except OSError as error:
            raise EOFError(f"the shell has ended; it showed {shown!r}") from error
    return shown


def completes(root, user, typed, completed):
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(
            "chroot",
            ["chroot", f"--userspec={user}:{user}", root, "env", "-i", f"HOME=/srv/{user}", f"USER={user}", "TERM=dumb", "bash", "--login", "-i"],
        )
    try:
        # Commands that begin with a space do not show the prompt that is waited for: it is in two parts there.
        os.write(terminal, b" cd; PS1='read''y> '\n")
        read_until(terminal, lambda shown: shown.endswith(PROMPT))
        os.write(terminal, typed.encode() + b"\t")
        ends = re.compile(re.escape(completed.encode()) + rb"\b")
        read_until(terminal, lambda shown: ends.search(shown.replace(b"\a", b"")))
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


try:
    completes(*sys.argv[1:])
except (TimeoutError, EOFError) as error:
    print(f"tab: {sys.argv[3]!r} is not completed to {sys.argv[4]!r}: {error}", file=sys.stderr)
    sys.exit(1)
