"""Makes the pictures of the README from a run of the demo: the live view in a terminal, and its report in a browser.

    make screenshots        ASSAY=path/to/assay: picture that one instead of building it

They go to docs/images: live.png, report.png, report-dark.png, report-phone.png.
"""

import os
import pathlib
import tempfile

import terminal
from browser import Browser

HERE = pathlib.Path(__file__).resolve().parents[2]
ASSAY = os.environ.get("ASSAY", str(HERE / "target/release/assay"))
IMAGES = HERE / "docs/images"
COLUMNS, ROWS = 110, 34
QUIET = "3m"
LARGEST = 300_000
# Exit codes of a run that was measured: fine, or with doubts about this machine.
MEASURED = (0, 96)


def record(directory):
    """Runs the demo in a terminal, and gives the live view as it is late in its plateaus."""
    kept = {}

    def seen(screen):
        text = screen.text()
        lines = [line for line in text.splitlines() if line.strip().startswith(("top1 ", "top2 "))]
        # The view of a plateau, while it is whole: a frame comes in one write, but nothing promises that.
        if lines and "? help" in text.splitlines()[-1]:
            kept["any" if "STALLED" in text or "STARVED" in text else "calm"] = screen.html("assay run demo")

    # Pictures of a run that nothing disturbed, where that can be had.
    code = terminal.run([ASSAY, "run", "demo", "--run-dir", "run", "--wait-quiet", QUIET], COLUMNS, ROWS, directory, seen)
    if code not in MEASURED:
        raise SystemExit(f"assay run demo ended with {code}")
    if not kept:
        raise SystemExit("the live view never showed a plateau")
    # Without a note on other work of this machine, if there was such a moment.
    return kept.get("calm") or kept["any"]


def heading(words):
    """JavaScript for the heading that begins so, in the page."""
    return (f"[...document.querySelectorAll('h1, h2, h3, h4, figcaption, .title')]"
            f".find(one => one.textContent.trim().startsWith({words!r}))")


def scroll_to(browser, words, above):
    """Scrolls so that the heading is this far below the top of the window."""
    found = browser.evaluate(f"(() => {{ const one = {heading(words)}; if (!one) return false;"
                             f"scrollTo(0, one.getBoundingClientRect().top + scrollY - {above}); return true; }})()")
    if not found:
        raise SystemExit(f"the report has no heading {words!r}")
    # Charts are drawn when they come into view.
    browser.evaluate("new Promise(go => setTimeout(go, 800))")
    browser.settle()


def main():
    with tempfile.TemporaryDirectory() as place, Browser() as browser:
        directory = pathlib.Path(place)
        screen = directory / "screen.html"
        screen.write_text(record(directory))
        browser.open(screen.as_uri(), 1240, 900, scale=2)
        width, height = browser.evaluate("[document.body.scrollWidth, document.body.scrollHeight]")
        browser.picture(IMAGES / "live.png", (0, 0, width, height))

        report = (directory / "run/report.html").as_uri()
        browser.open(report, 1240, 1170)
        browser.settle()
        browser.picture(IMAGES / "report.png")
        browser.open(report, 1240, 1000, dark=True)
        scroll_to(browser, "Every hit", 150)
        browser.picture(IMAGES / "report-dark.png")
        browser.open(report, 390, 844, scale=2)
        scroll_to(browser, "Load", 130)
        browser.picture(IMAGES / "report-phone.png")
        complaints = browser.complaints()
    if complaints:
        raise SystemExit("\n".join(complaints))
    for name in ("live", "report", "report-dark", "report-phone"):
        size = (IMAGES / f"{name}.png").stat().st_size
        print(f"docs/images/{name}.png: {size:,} bytes")
        if size > LARGEST:
            raise SystemExit(f"docs/images/{name}.png is larger than {LARGEST:,} bytes")


if __name__ == "__main__":
    main()
