"""Builds the site: the manual and the gallery, as static pages in target/site, and checks them.

    scripts/site.sh [--without-gallery] [--check-only]

The book's sources are docs/ and, from the results that are kept in target/gallery, the pages of the gallery; both are put together in
target/site-source. Then links are checked, and every page is looked at in a browser (`links.py`, `looks.py`).
"""

import argparse
import pathlib
import shutil
import subprocess
import sys

import gallery
import links
import looks
from browser import program

HERE = pathlib.Path(__file__).resolve().parents[2]
SOURCE, SITE = HERE / "target/site-source", HERE / "target/site"


def sources(with_gallery):
    """Puts the sources of the book together."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    shutil.copytree(HERE / "docs", SOURCE / "docs")
    shutil.copytree(HERE / "contrib/site", SOURCE / "contrib/site")
    shutil.copy(HERE / "book.toml", SOURCE / "book.toml")
    entries = gallery.write(SOURCE / "docs/gallery") if with_gallery else []
    summary = SOURCE / "docs/SUMMARY.md"
    text = summary.read_text()
    before, heading, after = text.partition("# How to\n")
    if not heading:
        raise SystemExit("docs/SUMMARY.md has no part `# How to`, before which the gallery goes")
    summary.write_text(before + "\n".join(entries) + ("\n" if entries else "") + heading + after)
    return len(entries)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--without-gallery", action="store_true", help="leave the gallery out")
    arguments.add_argument("--check-only", action="store_true", help="check the site that is there")
    given = arguments.parse_args()
    if not given.check_only:
        if sources(not given.without_gallery) == 0 and not given.without_gallery:
            print("no question of the gallery has a result: the site has no gallery", file=sys.stderr)
        shutil.rmtree(SITE, ignore_errors=True)
        subprocess.run(["mdbook", "build", str(SOURCE), "--dest-dir", str(SITE)], check=True)
    wrong = links.check(SITE)
    if program() is None:
        print("no Chromium in PATH: the pages are not looked at (apt-get install chromium)", file=sys.stderr)
    else:
        wrong += looks.check(SITE)
    if wrong:
        raise SystemExit("\n".join([*wrong, f"{len(wrong)} things are wrong with the site"]))
    print(f"{SITE.relative_to(HERE)}/index.html")


if __name__ == "__main__":
    main()
