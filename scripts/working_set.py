"""Do two working sets cost the same? Reads what the example working_set prints, passes it on, and compares.

Lines of figures: kind of robots (one or two words), objects in the set, memory (KB), CPU per request (ns).
"""

import sys

MOST = 0.05


def figures(line):
    """Kind, objects, memory and CPU of a line; none: it is another kind of line."""
    words = line.split()
    try:
        return " ".join(words[:-3]), int(words[-3]), float(words[-2]), float(words[-1])
    except (IndexError, ValueError):
        return None


def main():
    rows = []
    for line in sys.stdin:
        print(line, end="", flush=True)
        rows.append(figures(line))
    rows = [row for row in rows if row and row[0]]
    worst = 0.0
    for kind in sorted({row[0] for row in rows}):
        first, *others = [row for row in rows if row[0] == kind]
        for other in others:
            memory, cpu = other[2] / first[2] - 1, other[3] / first[3] - 1
            worst = max(worst, abs(memory), abs(cpu))
            print(f"{kind}: {other[1]} objects against {first[1]}: memory {memory:+.1%}, CPU per request {cpu:+.1%}")
    if len(rows) < 4:
        sys.exit("nothing to compare: the example printed no figures of two sets")
    if worst > MOST:
        sys.exit(f"they differ by more than {MOST:.0%}; is the machine busy?")


main()
