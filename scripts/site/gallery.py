"""Runs the questions of the gallery, and writes their pages.

    scripts/gallery.sh [QUESTION]...      ASSAY=path/to/assay: run that one instead of building it

Results are kept in target/gallery, one directory for each question. A question whose commands, files and version of Assay are those
of before is not run again (`--again` runs it all the same), so that an interrupted gallery is gone on with. Questions that need a
program or rights that are not there are left out, and named.
"""

import argparse
import hashlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

from browser import Browser, program
from questions import QUESTIONS

HERE = pathlib.Path(__file__).resolve().parents[2]
ASSAY = pathlib.Path(os.environ.get("ASSAY", HERE / "target/release/assay")).resolve()
KEPT = HERE / "target/gallery"
SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
PATIENCE_S = 600
# As the commands are shown: ports that are free on most machines.
SHOWN_PORTS = {"$PORT": "3128", "$ORIGIN": "8000"}


def version():
    """The program that is used: its version, and what it is made of."""
    digest = hashlib.sha256(ASSAY.read_bytes()).hexdigest()
    return subprocess.check_output([ASSAY, "--version"], text=True).strip(), digest


def lacks(question):
    """What keeps a question from being run here, or None."""
    path = f"{os.environ['PATH']}:{SBIN}"
    missing = [name for name in question.needs if shutil.which(name, path=path) is None]
    if missing:
        return f"{', '.join(missing)} not installed"
    return "needs root" if question.needs_root and os.geteuid() != 0 else None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def script(question):
    """The lines as a shell script that ends with the first one that fails."""
    allowed = "|".join(map(str, (0, *question.codes)))
    lines = ['try() { case $1 in ' + allowed + ') ;; *) echo "line $2 ended with $1" >&2; exit 1 ;; esac; }']
    for number, line in enumerate(question.commands, 1):
        lines.append(line.removeprefix("@").replace("sudo assay ", "assay "))
        lines.append(f"try $? {number}")
    return "\n".join(lines)


def run(question, made_with):
    """Runs a question in a directory of its own, and keeps what it made."""
    place = KEPT / question.name
    shutil.rmtree(place, ignore_errors=True)
    for name, text in question.files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    place.mkdir(parents=True, exist_ok=True)
    bin_ = KEPT / ".bin"
    bin_.mkdir(exist_ok=True)
    (bin_ / "assay").unlink(missing_ok=True)
    (bin_ / "assay").symlink_to(ASSAY)
    env = os.environ | {"PATH": f"{bin_}:{os.environ['PATH']}:{SBIN}", "PORT": free_port(), "ORIGIN": free_port(), "NO_COLOR": "1"}
    begun = time.time()
    with open(place / "log.txt", "w") as log:
        shell = subprocess.Popen(["sh", "-c", script(question)], cwd=place, env=env, stdout=log, stderr=log,
                                 stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            code = shell.wait(timeout=PATIENCE_S)
        except BaseException as error:
            os.killpg(shell.pid, signal.SIGTERM)
            shell.wait(timeout=60)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            code = "no end"
    if code != 0:
        tail = "".join((place / "log.txt").read_text().splitlines(keepends=True)[-20:])
        raise SystemExit(f"{question.name} failed ({code}):\n{tail}")
    # Sentences are made once here, so that a question that cannot make them has failed.
    kept = {"key": key(question, made_with), "assay": made_with[0], "begun_unix_s": int(begun), "took_s": round(time.time() - begun, 1),
            "machine": machine()}
    sentences(question, place)
    (place / "result.json").write_text(json.dumps(kept, indent=1))
    return kept


def machine():
    """The machine in a few words."""
    name = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), os.uname().machine)
    return f"{len(os.sched_getaffinity(0))} processors ({name}), Linux {os.uname().release.split('-')[0]}"


def key(question, made_with):
    """What decides whether a result is of this question and this program."""
    text = json.dumps([script(question), question.files, made_with])
    return hashlib.sha256(text.encode()).hexdigest()


def kept_result(question):
    """The result of a question, or None."""
    path = KEPT / question.name / "result.json"
    return json.loads(path.read_text()) if path.exists() else None


def shown(question):
    """The commands as a reader types them."""
    lines = [line for line in question.commands if not line.startswith("@")]
    for variable, port in SHOWN_PORTS.items():
        lines = [line.replace(variable, port) for line in lines]
    return lines


def page(question, result):
    """The page of a question, as Markdown."""
    date = time.strftime("%Y-%m-%d", time.gmtime(result["begun_unix_s"]))
    parts = [f"# {question.title}", question.lead, "```sh\n" + "\n".join(shown(question)) + "\n```"]
    for name, text in question.files.items():
        if name.endswith(".toml"):
            parts.append(f"<details><summary>{name}</summary>\n\n```toml\n{text}```\n\n</details>")
    if question.remark:
        parts.append(question.remark)
    report = f"{question.name}/report.html"
    parts += [
        "## What came out",
        f"[![The beginning of the report]({question.name}/report.png)]({report})", f"**[Open the live report]({report})**",
        f"Made by {result['assay']} on {date} in {result['took_s']:.0f} s, on {result['machine']}. Runs of this length are rehearsals, and one "
        "run of each side shows nothing about chance: for results that you publish, take longer runs and repeat them.",
    ]
    if question.further:
        parts.append(f"More: {question.further}.")
    return "\n\n".join(parts) + "\n"


def overview(results):
    """The first page of the gallery."""
    lines = ["# Gallery", "Questions that people have about their caches, each with the commands to type and the report that they made, which "
             "begins with its verdict. `make gallery` made the reports with the program that this manual is about.",
             '<div class="gallery">\n']
    for question, _ in results:
        lines.append(f'<a href="{question.name}.html"><img src="{question.name}/report.png" alt="" loading="lazy">'
                     f"<span>{question.title}</span></a>")
    return "\n\n".join(lines[:3]) + "\n".join(lines[3:]) + "\n</div>\n"


def write(folder):
    """Writes all pages that have a result below `folder`, and gives the lines for the summary of the book."""
    results = [(question, result) for question in QUESTIONS if (result := kept_result(question))]
    if not results:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    for question, result in results:
        (folder / f"{question.name}.md").write_text(page(question, result))
        target = folder / question.name
        target.mkdir(exist_ok=True)
        shutil.copy(KEPT / question.name / question.report, target / "report.html")
        shutil.copy(KEPT / question.name / "report.png", target / "report.png")
    (folder / "README.md").write_text(overview(results))
    entries = [f"  - [{question.title}](gallery/{question.name}.md)" for question, _ in results]
    return ["# Gallery", "", "- [Twelve questions](gallery/README.md)".replace("Twelve", NUMBERS.get(len(results), str(len(results)))), *entries, ""]


NUMBERS = {1: "One", 10: "Ten", 11: "Eleven", 12: "Twelve"}


def picture(question, browser):
    """The first screen of the report."""
    place = KEPT / question.name
    browser.open((place / question.report).resolve().as_uri(), 1200, 800)
    browser.picture(place / "report.png")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--again", action="store_true", help="run questions again that have a result")
    arguments.add_argument("--shown", action="store_true", help="print the commands that the pages show, and run nothing")
    arguments.add_argument("question", nargs="*", help=", ".join(question.name for question in QUESTIONS))
    given = arguments.parse_args()
    names = [question.name for question in QUESTIONS]
    if unknown := [name for name in given.question if name not in names]:
        arguments.error(f"there is no question {unknown[0]}; there are {', '.join(names)}")
    if given.shown:
        print("\n".join(line for question in QUESTIONS for line in shown(question)))
        return
    if program() is None:
        raise SystemExit("the gallery needs Chromium for its pictures (apt-get install chromium)")
    # What a question has started ends with the gallery.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    made_with = version()
    KEPT.mkdir(parents=True, exist_ok=True)
    with Browser() as browser:
        for question in QUESTIONS:
            if given.question and question.name not in given.question:
                continue
            if reason := lacks(question):
                print(f"{question.name}: left out, {reason}", file=sys.stderr)
                continue
            result = kept_result(question)
            if result and result["key"] == key(question, made_with) and not given.again:
                print(f"{question.name}: kept", file=sys.stderr)
            else:
                result = run(question, made_with)
                print(f"{question.name}: {result['took_s']:.0f} s", file=sys.stderr)
            picture(question, browser)


if __name__ == "__main__":
    main()
