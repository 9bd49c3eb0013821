"""Links of a static site: every file and every fragment that a page names must be there, and nothing may load from elsewhere.

    python3 scripts/site/links.py DIR
"""

import html.parser
import pathlib
import re
import sys
import urllib.parse

# What a browser loads by itself, as opposed to what a reader may follow.
LOADING = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
OUTSIDE = ("http:", "https:", "//")
IGNORED = ("mailto:", "data:", "javascript:", "blob:")
URL = re.compile(r"url\(\s*['\"]?([^'\")]+)")


class Page(html.parser.HTMLParser):
    """What a page names: identifiers, links, and what it loads."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loads = set(), [], []
        self.in_style = False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids.update(values[name] for name in ("id", "name") if values.get(name))
        self.in_style = tag == "style"
        target = values.get(LOADING.get(tag, ""))
        # A canonical address is not loaded.
        if target and not (tag == "link" and "canonical" in values.get("rel", "")):
            self.loads.append(target)
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])

    def handle_data(self, data):
        if self.in_style:
            self.loads += URL.findall(data)


def check(site):
    """What is wrong with the links of all pages of a site."""
    pages = {path: Page(path.read_text(errors="replace")) for path in sorted(site.rglob("*.html"))}
    wrong = []
    for path, page in pages.items():
        name = path.relative_to(site)
        for target in page.loads:
            if target.startswith(OUTSIDE):
                wrong.append(f"{name}: loads {target}")
        for target in page.links + page.loads:
            if not target.startswith(OUTSIDE + IGNORED):
                wrong += [f"{name}: {problem}" for problem in dead(site, path, target, pages)]
    for path in sorted(site.rglob("*.css")):
        for target in URL.findall(path.read_text()):
            if target.startswith(OUTSIDE):
                wrong.append(f"{path.relative_to(site)}: loads {target}")
            elif not target.startswith(IGNORED) and not file_of(site, path, target).exists():
                wrong.append(f"{path.relative_to(site)}: there is no {target}")
    if not pages:
        wrong.append("the site has no pages")
    return wrong


def file_of(site, page, target):
    """The file that a link of a page leads to."""
    path = urllib.parse.unquote(urllib.parse.urlsplit(target).path)
    if path.startswith("/"):
        return site / path.lstrip("/")
    return (page.parent / path).resolve() if path else page


def dead(site, page, target, pages):
    """What a link leads to that is not there."""
    file = file_of(site, page, target)
    if file.is_dir():
        file /= "index.html"
    if not file.exists() or site.resolve() not in file.resolve().parents:
        return [f"there is no {target}"]
    fragment = urllib.parse.unquote(urllib.parse.urlsplit(target).fragment)
    known = pages.get(file) or pages.get(pathlib.Path(file))
    if fragment and known and fragment not in known.ids:
        return [f"{target} has no such place"]
    return []


if __name__ == "__main__":
    sys.exit("\n".join(check(pathlib.Path(sys.argv[1]))) or 0)
