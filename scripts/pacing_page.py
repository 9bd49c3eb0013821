"""How do the results look on the page? Writes the table of docs/explanation/pacing.md and draws docs/images/pacing.svg."""

import json
import math
import os

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(HERE, "docs/explanation/pacing.md")
PICTURE = os.path.join(HERE, "docs/images/pacing.svg")
BEGIN = "<!-- results: made by `make bench-pacing`, not by hand -->"
HOUR_BEGIN = "<!-- hour: made by `scripts/pacing.sh hour`, not by hand -->"
END = "<!-- end of results -->"

WIDTH, HEIGHT = 800, 500
LEFT, RIGHT, TOP, BOTTOM = 84, 780, 20, 380
# Lateness from 1 µs to 1 s, shares from all to one in ten thousand.
DECADES_X, DECADES_Y = 6, 4
# Colour on white, colour on dark, dashes. Told apart without colour by the dashes and the labels.
STYLES = {
    "timer": ("#6b7280", "#9ca3af", "2 4"), "sender": ("#6b7280", "#9ca3af", ""), "assay": ("#1d4ed8", "#7aa2ff", ""),
    "spin": ("#0e7490", "#4fd1e0", "7 4"), "ticks": ("#b45309", "#f5a742", ""), "vegeta": ("#7e22ce", "#cf9bff", ""),
    "k6": ("#be123c", "#ff8fa3", "7 4"),
}
WAYS = {"known": "its own", "fitted": "fitted"}


def number(us):
    """A lateness in microseconds, with no more digits than it deserves."""
    return f"{us:,.1f}" if us < 9.95 else f"{us:,.0f}"


def name_of(contestant):
    return contestant["title"] + (f" {contestant['version']}" if contestant["version"] else "")


def lateness_row(contestant):
    middle = contestant["median"]
    cells = [name_of(contestant), number(middle["p50"]), number(middle["p99"]), number(contestant["p99_from"]),
             number(contestant["p99_to"]), number(middle["p999"]), number(contestant["max"])]
    return "| " + " | ".join(cells) + " |"


def job_row(contestant):
    middle = contestant["median"]
    connections = "–" if contestant["connections"] is None else f"{contestant['connections']:,}"
    cells = [name_of(contestant), f"{middle['cpu_percent']:.0f} %", f"{contestant['due']:,}", f"{contestant['sent']:,}",
             f"{middle['rate']:,.1f}", connections, WAYS[contestant["yardstick"]],
             f"{contestant['kept']} of {contestant['tried']}", f"{contestant['quiet']}", f"{middle['other_percent']:.0f} %"]
    return "| " + " | ".join(cells) + " |"


def own_words(contestants):
    """What contestants say of themselves, as far as they do."""
    rows = [c for c in contestants if "p99" in c["median"].get("own", {})]
    if not rows:
        return []
    lines = ["What the contestants' own clocks say of the same runs (due time to just before the write), in µs:", "",
             "| | p50 | p99 | p99.9 |", "|---|--:|--:|--:|"]
    for contestant in rows:
        own = contestant["median"]["own"]
        lines.append(f"| {contestant['title']} | {number(own['p50'])} | {number(own['p99'])} | {number(own['p999'])} |")
    return [*lines, ""]


def conditions(results):
    """What the figures were taken on, and which of them are shown."""
    job, gate = results["job"], results["gate"]
    words = (
        f"Taken {results['taken']} on {results['processors']} processors of a virtual machine, {results['system']}; "
        f"{job['rate']:,} requests a second over {job['connections']} connections, {job['seconds']} s a run after "
        f"{job['warm_s']} s of warm-up. Of each contestant the quietest runs are kept; *quiet* is a run during which "
        f"everything else used no more than {gate['other_percent']:.0f} % of one processor and the hypervisor took no "
        f"more than {gate['steal_percent']} % of the time.")
    if job["realtime"]:
        words += (" All contestants and the origin ran with real-time priority (`SCHED_FIFO`), because the machine was "
                  "busy with other work; how busy is in the second table.")
    return words


def dropped_words(contestants):
    k6 = next((contestant for contestant in contestants if contestant["name"] == "k6"), None)
    dropped = k6["median"].get("own", {}).get("dropped", 0) if k6 else 0
    if not dropped:
        return []
    return [f"k6 says itself that it dropped {dropped:,.0f} requests in a run (middle of its runs), because none of its "
            "users was free.", ""]


def target_words(targets):
    if not targets:
        return []
    lines = ["| what must hold | seen | wanted | |", "|---|--:|--:|---|"]
    lines += [f"| {target['what']} | {number(target['seen_us'])} µs | below {target['below_us']} µs | "
              f"{'holds' if target['holds'] else '**missed**'} |" for target in targets]
    return [*lines, ""]


def section(results):
    contestants = results["contestants"]
    return "\n".join([
        BEGIN, "", conditions(results), "",
        "Lateness in microseconds. Percentiles are the middle of the kept runs, the maximum is the largest of them all.", "",
        "| | p50 | p99 | lowest p99 | highest p99 | p99.9 | max |", "|---|--:|--:|--:|--:|--:|--:|",
        *map(lateness_row, contestants), "", "What it took, and what came of it:", "",
        "| | generator CPU | due | sent | rate | connections | due times | runs kept | quiet runs "
        "| other use |", "|---|--:|--:|--:|--:|--:|---|--:|--:|--:|", *map(job_row, contestants), "",
        *dropped_words(contestants), *own_words(contestants), *target_words(results["targets"]), END])


def x_of(us):
    return LEFT + (RIGHT - LEFT) * math.log10(max(us, 1)) / DECADES_X


def y_of(share):
    return TOP - (BOTTOM - TOP) * math.log10(share) / DECADES_Y


def grid():
    words_x = ["1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s"]
    words_y = ["all", "1 in 10", "1 in 100", "1 in 1,000", "1 in 10,000"]
    for decade, word in enumerate(words_x):
        x = x_of(10 ** decade)
        yield f'<line class="grid" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{BOTTOM}"/>'
        yield f'<text x="{x:.1f}" y="{BOTTOM + 18}" text-anchor="middle">{word}</text>'
    for decade, word in enumerate(words_y):
        y = y_of(10 ** -decade)
        yield f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{RIGHT}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{word}</text>'
    yield f'<text x="{(LEFT + RIGHT) / 2}" y="{BOTTOM + 38}" text-anchor="middle">later than this after it was due</text>'


def line(contestant):
    points = [(x_of(us), y_of(share)) for share, us in contestant["curve"] if math.log10(share) >= -DECADES_Y - 1e-9]
    path = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    dashes = STYLES[contestant["name"]][2]
    return f'<path class="{contestant["name"]}" d="{path}"' + (f' stroke-dasharray="{dashes}"' if dashes else "") + "/>"


def legend(contestants):
    """Below the picture, three columns."""
    for place, contestant in enumerate(contestants):
        name, x, y = contestant["name"], LEFT + 236 * (place % 3), BOTTOM + 66 + 20 * (place // 3)
        dashes = STYLES[name][2]
        yield (f'<line class="{name}" x1="{x}" y1="{y - 4}" x2="{x + 32}" y2="{y - 4}"'
               + (f' stroke-dasharray="{dashes}"' if dashes else "") + "/>")
        yield f'<text class="name" x="{x + 40}" y="{y}">{contestant["title"].replace("`", "")}</text>'


def picture(results):
    """Shares of requests that were later than so much, both on logarithmic scales; follows the reader's colours."""
    drawn = [c for c in results["contestants"] if c["name"] in STYLES]
    colours = [" ".join(f".{name} {{ stroke: {style[at]}; }}" for name, style in STYLES.items()) for at in (0, 1)]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-label="Share of requests by how late they left, for each contestant; the table says the same in numbers.">',
        "<style>",
        "text { font: 12px system-ui, sans-serif; fill: #4b5563; } .name { fill: #111827; } .paper { fill: #ffffff; }",
        ".grid { stroke: #e5e7eb; } path { fill: none; stroke-width: 2; stroke-linejoin: round; } line { stroke-width: 2; }",
        ".grid { stroke-width: 1; }", colours[0],
        "@media (prefers-color-scheme: dark) { text { fill: #9ca3af; } .name { fill: #f3f4f6; } .paper { fill: #161b22; }",
        f".grid {{ stroke: #30363d; }} {colours[1]} }}", "</style>",
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="8"/>', *grid(),
        f'<clipPath id="plot"><rect x="{LEFT}" y="{TOP}" width="{RIGHT - LEFT}" height="{BOTTOM - TOP}"/></clipPath>',
        '<g clip-path="url(#plot)">', *(line(contestant) for contestant in drawn), "</g>", *legend(drawn), "</svg>",
    ]
    return "\n".join(parts) + "\n"


def hour_section(hour):
    same = hour["stream"] == hour["run"]
    rows = [("launches in the pure stream", hour["stream"]["requests"], hour["stream"]["digest"]),
            ("due in the run", hour["run"]["requests"], hour["run"]["digest"])]
    lines = [HOUR_BEGIN, "", "| | requests | digest of who requested what |", "|---|--:|---|"]
    lines += [f"| {what} | {count:,} | `{digest}` |" for what, count, digest in rows]
    lines += [f"| sent in the run | {hour['sent']:,} | |", "",
              f"Taken {hour['taken']}, {hour['duration_s']:,.0f} s: "
              + ("the same requests, to the last one." if same else "**not the same.**"), "", END]
    return "\n".join(lines)


def replace(text, begin, section_text):
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(END)
    return before + section_text + after


def write(results_path, hour_path):
    """Replaces the results on the page, and the picture, with what is in the files that are there."""
    with open(PAGE) as file:
        text = file.read()
    if os.path.exists(hour_path):
        with open(hour_path) as file:
            text = replace(text, HOUR_BEGIN, hour_section(json.load(file)))
    if os.path.exists(results_path):
        with open(results_path) as file:
            results = json.load(file)
        text = replace(text, BEGIN, section(results))
        draw(results)
    with open(PAGE, "w") as file:
        file.write(text)


def draw(results):
    os.makedirs(os.path.dirname(PICTURE), exist_ok=True)
    with open(PICTURE, "w") as file:
        file.write(picture(results))
