"""What processes have: memory and descriptors, from /proc."""

import os


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(child) for child in file.read().split()]
    except OSError:
        return []


def named(pid):
    """The first words that a process was started with, without directories and what differs from one to the next."""
    with open(f"/proc/{pid}/cmdline", errors="replace") as file:
        words = [word for word in file.read().replace("\0", " ").split() if word]
    words = [os.path.basename(word) for word in words[:3] if not word.startswith("-")]
    return " ".join(words)


def numbers(name, wanted):
    found = {}
    with open(name) as file:
        for line in file:
            label, _, rest = line.partition(":")
            if label in wanted:
                found[wanted[label]] = int(rest.split()[0])
    return found


def of(pid):
    """None: it has gone."""
    try:
        own = numbers(f"/proc/{pid}/status", {"VmRSS": "rss_kb", "Threads": "threads"})
        own |= numbers(f"/proc/{pid}/smaps_rollup", {"Pss": "pss_kb"})
        return own | {"pid": pid, "fds": len(os.listdir(f"/proc/{pid}/fd"))} if "rss_kb" in own else None
    except OSError:
        return None


def all_of(watched):
    """A sample of each process in `watched`: name to (pid, whether its descendants count too)."""
    found = []
    for name, (pid, with_descendants) in watched.items():
        row = of(pid)
        if row is not None:
            found.append({"process": name} | row)
        below = children(pid) if with_descendants else []
        while below:
            child = below.pop()
            below += children(child)
            try:
                row, words = of(child), named(child)
            except OSError:
                continue
            if row is not None:
                found.append({"process": f"{name}: {words}"} | row)
    return found
