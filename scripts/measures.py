#!/usr/bin/env python3
"""Prints how large the project is and how its code is written: what to look at before and after a change of structure.

    scripts/measures.py

Lines of tests inside product files (`#[cfg(test)]`) count as tests.
"""

import collections
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
PRONOUNS = "what who which whom whose where when why how it its they their them he she his her this that these those".split()


def tracked():
    """Files of the repository that are text, with their lines."""
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    for name in filter(None, names):
        try:
            yield name, (ROOT / name).read_text().split("\n")[:-1]
        except (UnicodeDecodeError, OSError):
            pass


def split(lines):
    """Product and test lines of a Rust file."""
    product, tests, closing = [], [], None
    for number, line in enumerate(lines):
        if closing is None and line.strip() == "#[cfg(test)]" and number + 1 < len(lines):
            closing = "" if lines[number + 1].rstrip().endswith(";") else line[: len(line) - len(line.lstrip())] + "}"
        (product if closing is None else tests).append(line)
        if closing is not None and (line.rstrip() == closing or (closing == "" and line.rstrip().endswith(";"))):
            closing = None
    return product, tests


def is_test_file(name):
    parts = pathlib.PurePath(name)
    return "tests" in parts.parts or parts.stem == "tests" or parts.stem.endswith("_tests") or parts.stem == "testing"


def share(part, whole):
    return f"{100 * part / max(whole, 1):.1f} %"


def main():
    size, code = collections.Counter(), []
    for name, lines in tracked():
        if name.endswith(".rs"):
            if name.startswith("fuzz/") or "/examples/" in name or is_test_file(name):
                size["Rust tests, examples, fuzz targets"] += len(lines)
                continue
            product, tests = split(lines)
            size["Rust product"] += len(product)
            size["Rust tests, examples, fuzz targets"] += len(tests)
            code.append((name, product))
        elif name.startswith("scripts/"):
            size["scripts"] += len(lines)
        elif name.endswith(".md"):
            size["Markdown"] += len(lines)
        elif name.endswith((".json", ".outline")):
            size["JSON and outlines"] += len(lines)
        size["all"] += len(lines)
    manifests = list((ROOT / "crates").glob("*/*/Cargo.toml"))
    print(f"crates{len(manifests):>40}")
    print(f"workspace Cargo.toml, lines{len((ROOT / 'Cargo.toml').read_text().splitlines()):>19}")
    for kind, lines in sorted(size.items()):
        print(f"{kind + ', lines':<40}{lines:>6}")
    text = "\n".join(line for _, product in code for line in product)
    docs = re.findall(r"^\s*//[/!] ?(.*)$", text, re.M)
    comments = re.findall(r"^\s*//(?![/!]).*$", text, re.M)
    # An opening follows a line that is no documentation.
    openings = re.findall(r"(?:^|\n)(?!\s*//[/!])[^\n]*\n\s*/// ?(\w+)", "\n" + text)
    libraries = "\n".join(line for name, product in code if "/bin/" not in name for line in product)
    functions = re.findall(r"\bfn \w+(?:<[^(]*>)?\(([^{;]*?)\)(?: ->|\s*\{|\s*where|;)", text, re.S)
    types = collections.Counter(re.findall(r"^\s*(?:pub(?:\([^)]*\))? )?(?:struct|enum|trait|type) (\w+)", text, re.M))
    files = [len(product) for _, product in code]
    rows = [
        ("documentation of three words or fewer", share(sum(len(line.split()) <= 3 for line in docs if line), len(docs))),
        ("documentation that opens with a pronoun", share(sum(word.lower() in PRONOUNS for word in openings), len(openings))),
        ("ordinary comments", share(len(comments), size["Rust product"])),
        ("Result<_, String> in libraries", len(re.findall(r"Result<[^<>]*(?:<[^<>]*>)?[^<>]*, String>", libraries))),
        ("functions with a tuple parameter", sum(bool(re.search(r"(?:^|, |\n)\s*\([^()]*\): \(", args)) for args in functions)),
        ("names of types that three or more share", sum(count >= 3 for count in types.values())),
        ("files of more than 1,000 lines", sum(lines > 1000 for lines in files)),
    ]
    for name, value in rows:
        print(f"{name:<40}{value:>8}")


main()
