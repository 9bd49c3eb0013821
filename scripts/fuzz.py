"""Runs fuzz targets, and adds up what was tried: time, inputs and code covered, by target, over all runs.

    fuzz.py [--seconds S] [--jobs N] [--page] [TARGET]...

Each target begins with the inputs that were kept (`fuzz/corpora/TARGET.tar.xz`), and with files of this repository in its format. Of what
it finds, the smallest set of inputs that covers as much is kept in turn. Time, inputs and coverage are added up in `fuzz/hours.json`,
and `docs/reference/fuzz-targets.md` is written from that (`--page` writes it and does nothing else). An input that breaks a target is left
in `target/fuzz/broken`, nothing of that target is counted, and the exit code is 1.
"""

import argparse
import concurrent.futures
import datetime
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

import kept_json

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEPT = ROOT / "fuzz/corpora"
HOURS = ROOT / "fuzz/hours.json"
PAGE = ROOT / "docs/reference/fuzz-targets.md"
WORK = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "fuzz"
TRIPLE = "x86_64-unknown-linux-gnu"
# An input that takes longer, or more memory, breaks its target. The memory is that of the whole process, under the address sanitizer.
# Memory that is not given back is no finding: targets leave tables unfinished, as a killed process does, by forgetting their writers.
# The first input of some waits until a directory was made that all others change.
LIMITS = ["-timeout=60", "-rss_limit_mb=3072"]
ENVIRONMENT = os.environ | {"ASAN_OPTIONS": "detect_leaks=0"}
# Files in the format of a target. `toml` stands for the examples in the manual, too.
SEEDS = {
    "cluster_file": ["clusters/*.toml", "toml"],
    "conform_file": ["conformance/*.toml", "toml"],
    "http_head": ["http"],
    "http_request": ["http"],
    "lab_file": ["proxies/*/*.toml", "experiments/*.toml", "toml"],
    "log_format": ["log"],
    "pgl_compile": ["workloads/*.pg", "crates/model/pgl/**/*.pg", "crates/bin/assay/tests/**/*.pg"],
    "require": ["require"],
    "size_trace": ["crates/model/cluster/tests/data/*.csv"],
    "spe_rules": ["toml"],
    "switch_file": ["toml"],
}
TEXT = """# Fuzz targets

Everything that reads text or bytes from outside has a target: a small program that gives what a fuzzer (libFuzzer, with the address
sanitizer) makes up to a reader, and holds what comes out against a rule. `scripts/fuzz.sh --seconds 600` runs all of them (needs a nightly toolchain and
cargo-fuzz); it begins with the inputs that earlier runs kept (`fuzz/corpora`), keeps what reaches new code, and writes this page. Without
a number of seconds, each target runs until it has had an hour in all.

*Time* (by the clock, on a machine that did other work as well) and *inputs* are those of all runs since inputs are kept, without a finding but those that the
manual [tells of](../explanation/reliability.md).
*Covered* are the edges of the program that the kept inputs reach, and *last new* is how long into the last run the last of them was found: where that is
early, more time finds little.

| target | what is tried | time, min | inputs, million | covered | kept | last new, s |
|---|---|--:|--:|--:|--:|--:|
{lines}

In all {hours:.1f} hours and {inputs:,.0f} million inputs, the last of them on {last}.
"""


def targets():
    return sorted(path.stem for path in (ROOT / "fuzz/fuzz_targets").glob("*.rs"))


def read_hours():
    return json.loads(HOURS.read_text()) if HOURS.exists() else {}


def pages():
    """Pages of the manual."""
    return sorted((ROOT / "docs").rglob("*.md"))


def seeds(target):
    """Contents of files in the target's format."""
    found = []
    for pattern in SEEDS.get(target, []):
        if pattern == "toml":
            found += [block for page in pages() for block in re.findall(r"```toml\n(.*?)```", page.read_text(), re.S)]
        elif pattern == "http":
            found += messages()
        elif pattern == "log":
            logs = sorted((ROOT / "crates/data/logs/tests/it/lines").glob("*.log"))
            found += [f"{path.stem}\n{path.read_text()}" for path in logs]
        elif pattern == "require":
            found += [it[1] for page in pages() for it in re.findall(r"--require (['\"])(.*?)\1", page.read_text())]
        else:
            found += [path.read_text() for path in sorted(ROOT.glob(pattern))]
    return [text.encode() for text in found]


def messages():
    """Messages of the corpus of HTTP, as bytes on the wire (each with the first of its variants)."""
    found = []
    for name in ["requests", "replies"]:
        for case in (ROOT / f"crates/tests/testbed/src/corpus/{name}.txt").read_text().split("\ncase:")[1:]:
            lines = [line.partition(":")[::2] for line in case.splitlines()[1:]]
            parts = [text[1:] + ("\\r\\n" if kind == "line" else "") for kind, text in lines if kind in ("line", "send")]
            variants = [text[1:] for kind, text in lines if kind == "with"]
            text = "".join(parts).replace("{}", variants[0] if variants else "")
            found.append(re.sub(r"\\([rnt0\\])", lambda it: dict(r="\r", n="\n", t="\t").get(it[1], it[1]), text))
    return found


def words(texts):
    """A dictionary of the words in these texts, for libFuzzer."""
    found = {}
    for text in texts:
        for word in re.findall(rb"[A-Za-z][A-Za-z0-9_.-]{2,24}", text):
            found[word] = found.get(word, 0) + 1
    often = sorted(found, key=lambda word: (-found[word], word))[:400]
    return "".join(f'"{word.decode()}"\n' for word in often)


def prepare(target):
    """Directory of the inputs to begin with, and options that the seeds bring."""
    corpus = WORK / "corpus" / target
    corpus.mkdir(parents=True, exist_ok=True)
    kept = KEPT / f"{target}.tar.xz"
    if kept.exists():
        with tarfile.open(kept) as archive:
            archive.extractall(corpus, filter="data")
    texts = seeds(target)
    for number, text in enumerate(texts):
        (corpus / f"seed-{number}").write_bytes(text)
    if not texts:
        return corpus, []
    dictionary = WORK / f"{target}.dict"
    dictionary.write_text(words(texts))
    return corpus, [f"-dict={dictionary}"]


def keep(target, program, corpus):
    """Keeps the smallest inputs that reach as much; how many."""
    smallest = WORK / "smallest" / target
    shutil.rmtree(smallest, ignore_errors=True)
    smallest.mkdir(parents=True)
    subprocess.run([program, "-merge=1", *LIMITS, smallest, corpus], check=True, capture_output=True, cwd=WORK, env=ENVIRONMENT)
    inputs = sorted(smallest.iterdir())
    KEPT.mkdir(exist_ok=True)
    with tarfile.open(KEPT / f"{target}.tar.xz", "w:xz", preset=9) as archive:
        for path in inputs:
            content = path.read_bytes()
            info = tarfile.TarInfo(path.name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    shutil.rmtree(corpus)
    return len(inputs)


def run(target, seconds):
    """One target for this time: what it found, or none if an input broke it."""
    program = WORK / TRIPLE / "release" / target
    corpus, options = prepare(target)
    broken = WORK / "broken" / target
    broken.mkdir(parents=True, exist_ok=True)
    command = [program, f"-max_total_time={seconds}", "-print_final_stats=1", *LIMITS, *options, f"-artifact_prefix={broken}/", corpus]
    before = datetime.datetime.now(datetime.timezone.utc)
    # A line with what is covered comes with each new input: when the last of them came is when it was written.
    last_new_s, covered, executed, said = 0.0, 0, 0, []
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, errors="replace", cwd=WORK, env=ENVIRONMENT) as fuzzer:
        for line in fuzzer.stderr:
            now_s = (datetime.datetime.now(datetime.timezone.utc) - before).total_seconds()
            if found := re.match(r"#\d+\s+(\w+)\s.*?cov: (\d+)", line):
                covered = max(covered, int(found[2]))
                last_new_s = now_s if found[1] == "NEW" else last_new_s
            elif found := re.match(r"stat::number_of_executed_units: (\d+)", line):
                executed = int(found[1])
            said = [*said[-40:], line]
    took_s = (datetime.datetime.now(datetime.timezone.utc) - before).total_seconds()
    if fuzzer.returncode != 0 or executed == 0:
        print(f"{target}: broken, see {broken}\n{''.join(said)}", file=sys.stderr)
        return None
    inputs = keep(target, program, corpus)
    print(f"{target}: {took_s:.0f} s, {executed:,} inputs, {covered} edges, {inputs} kept, last new after {last_new_s:.0f} s", flush=True)
    return {"seconds": took_s, "inputs": executed, "covered": covered, "kept": inputs, "last_new_s": last_new_s, "date": f"{before:%Y-%m-%d}"}


def add_up(target, found):
    hours = read_hours()
    before = hours.get(target, {"seconds": 0, "inputs": 0})
    for field in ["seconds", "inputs"]:
        found[field] = round(found[field] + before[field])
    found["last_new_s"] = round(found["last_new_s"])
    hours[target] = found
    HOURS.write_text(kept_json.text(dict(sorted(hours.items()))) + "\n")


def about(target):
    """The first sentence of what a target says of itself, as a cell of a table."""
    lines = [line[3:].strip() for line in (ROOT / f"fuzz/fuzz_targets/{target}.rs").read_text().splitlines() if line.startswith("//!")]
    text = " ".join(lines).split(": ")[0].split(". ")[0].rstrip(".:")
    return text.replace("|", "\\|")


def write_page():
    hours = read_hours()
    lines = []
    for target in targets():
        at = hours.get(target)
        cells = [f"{at['seconds'] / 60:.0f}", f"{at['inputs'] / 1e6:,.2f}", at["covered"], at["kept"], at["last_new_s"]] if at else ["–"] * 5
        lines.append(f"| `{target}` | {about(target)} | " + " | ".join(map(str, cells)) + " |")
    of_all = lambda field: sum(each[field] for each in hours.values())
    last = max((each["date"] for each in hours.values()), default="no day")
    PAGE.write_text(TEXT.format(lines="\n".join(lines), hours=of_all("seconds") / 3600, inputs=of_all("inputs") / 1e6, last=last))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, help="for each target; without it, what is missing to an hour in all")
    parser.add_argument("--jobs", type=int, default=1, help="targets at a time")
    parser.add_argument("--page", action="store_true", help="write the page and do nothing else")
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    options = parser.parse_args()
    if unknown := set(options.targets) - set(targets()):
        parser.error(f"no such target: {', '.join(sorted(unknown))}; there are {', '.join(targets())}")
    if options.page:
        write_page()
        return 0
    WORK.mkdir(parents=True, exist_ok=True)
    chosen = options.targets or targets()
    had = {target: each["seconds"] for target, each in read_hours().items()}
    planned = {target: options.seconds or max(0, round(3600 - had.get(target, 0))) for target in chosen}
    todo = [target for target in chosen if planned[target] > 0]
    for target in todo:
        build = ["cargo", "+nightly", "fuzz", "build", "--target-dir", WORK, target]
        subprocess.run(build, check=True, cwd=ROOT / "fuzz")
    broken = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        running = {pool.submit(run, target, planned[target]): target for target in todo}
        for done in concurrent.futures.as_completed(running):
            if (found := done.result()) is None:
                broken += 1
            else:
                add_up(running[done], found)
    write_page()
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
