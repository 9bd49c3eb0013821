"""What scripts share that run commands in namespaces of their own (processes, network, mounts), as their first process."""

import os
import signal
import subprocess

# Namespaces of their own for a command; all that runs in there ends with it.
UNSHARE = ["unshare", "--net", "--mount", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc"]


def mounted(assay, room_mb):
    """What is written to /tmp and /dev/shm is in memory, and gone with the namespaces. The program, wherever it lies, is below /mnt."""
    run = lambda *command: subprocess.run(command, check=True)
    run("mount", "--make-rprivate", "/")
    run("mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", "/mnt")
    open("/mnt/assay", "w").close()
    run("mount", "--bind", assay, "/mnt/assay")
    run("mount", "-t", "tmpfs", "-o", f"size={room_mb}m", "tmpfs", "/tmp")
    run("mount", "-t", "tmpfs", "-o", "size=128m", "tmpfs", "/dev/shm")
    run("ip", "link", "set", "lo", "up")
    os.makedirs("/tmp/work")
    os.chmod("/tmp/work", 0o755)
    return "/mnt/assay"


def processes():
    """All processes but this one, with what they were started as."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            with open(f"/proc/{name}/stat") as file:
                state = file.read().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if state != "Z":
            found[int(name)] = " ".join(word.decode(errors="replace") for word in words if word)[:80]
    return found


def signalled(victim, number):
    try:
        os.kill(victim, number)
    except ProcessLookupError:
        pass
