"""How the pages of the site look in a browser: at the width of a phone and of a desktop, light and dark, with its search, offline."""

import pathlib

from browser import Browser

PHONE, DESKTOP = 390, 1280
# What sticks out to the right of the page, though nothing around it scrolls.
OVERFLOW = """(() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return null;
  for (const one of document.querySelectorAll('main *, nav *')) {
    const box = one.getBoundingClientRect();
    let around = one.parentElement, scrolls = false;
    for (; around; around = around.parentElement) scrolls ||= getComputedStyle(around).overflowX !== 'visible';
    if (box.right > width + 1 && !scrolls) return `${one.tagName} ${one.textContent.trim().slice(0, 60)}`;
  }
  return 'the page';
})()"""
FOUND = """new Promise(go => { const begin = Date.now(); (function look() {
  const found = document.querySelectorAll('#mdbook-searchresults li, #searchresults li').length;
  if (found || Date.now() - begin > 10000) go(found); else setTimeout(look, 50);
})(); })"""
LIGHT = """(() => { const [r, g, b] = getComputedStyle(document.documentElement).backgroundColor.match(/[0-9.]+/g).map(Number)
  .slice(0, 3); return (r + g + b) / 3 > 128; })()"""


def check(site):
    """What is wrong with the pages of a site, from files, without a network."""
    wrong = []
    with Browser() as browser:
        for path in sorted(site.rglob("*.html")):
            name = path.relative_to(site)
            # The same text twice, reports, which have tests of their own, and a page that servers show at any address.
            if name.name in ("print.html", "toc.html", "report.html", "404.html"):
                continue
            for width in (PHONE, DESKTOP):
                browser.open(path.resolve().as_uri(), width, 844)
                if sticks_out := browser.evaluate(OVERFLOW):
                    wrong.append(f"{name}: wider than {width} pixels: {sticks_out}")
                wrong += [f"{name}: {complaint}" for complaint in browser.complaints()]
        wrong += search_and_colours(browser, site)
    return wrong


def search_and_colours(browser, site):
    """The search finds something from a file, and the colours follow the reader's preference."""
    wrong = []
    first = (site / "index.html").resolve().as_uri()
    browser.open(f"{first}?search=percentile", DESKTOP, 844)
    if browser.evaluate(FOUND) == 0:
        wrong.append("index.html: the search finds nothing for `percentile`")
    for dark in (False, True):
        browser.open(first, DESKTOP, 844, dark=dark)
        if browser.evaluate(LIGHT) == dark:
            wrong.append(f"index.html: is {'light' if dark else 'dark'} for a reader who prefers the opposite")
    return wrong


def pictures(site, folder):
    """A picture of every page at both widths, for people."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with Browser() as browser:
        for path in sorted(site.rglob("*.html")):
            name = str(path.relative_to(site)).replace("/", "-").removesuffix(".html")
            for width in (PHONE, DESKTOP):
                browser.open(path.resolve().as_uri(), width, 844)
                browser.picture(folder / f"{name}-{width}.png")
