"""Charts, as the program draws them, and the HTML that notebooks show."""

from __future__ import annotations

import base64
import csv
import html
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from . import _frames

#: Colours of findings, by how something went. They are legible on light and on dark pages.
_COLOURS = {"good": "#2e8b57", "plain": "#808080", "doubtful": "#c77c02", "bad": "#d64545"}


@dataclass(frozen=True)
class Figure:
    """A chart with the numbers that it shows."""

    #: Its name, by which `figures` has it.
    name: str
    #: What it shows.
    title: str
    about: str
    #: The chart; text is text in it.
    svg: str = field(repr=False)
    #: Its numbers as CSV.
    csv: bytes = field(repr=False)

    @property
    def data(self) -> Any:
        """Its numbers as a data frame: a row for each point, with line, x, y and their units."""
        return _frames.read(self.csv)

    def save(self, path: str | Path) -> None:
        """Writes the chart to an SVG file."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_html_(self) -> str:
        return image(self)


class Figures(Mapping[str, Figure]):
    """Charts by name."""

    def __init__(self, figures: Iterable[Figure]) -> None:
        self._figures = {figure.name: figure for figure in figures}

    def __getitem__(self, name: str) -> Figure:
        return self._figures[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._figures)

    def __len__(self) -> int:
        return len(self._figures)

    def __repr__(self) -> str:
        return f"<charts: {', '.join(self)}>"

    def _repr_html_(self) -> str:
        return "".join(image(figure) for figure in self.values())


def drawn(command: Callable[[str], object]) -> Figures:
    """The charts that a command draws, which is called with the flag that says where."""
    with TemporaryDirectory(prefix="assay-figures-") as directory:
        command(f"--figures={directory}")
        with open(Path(directory) / "figures.csv", newline="", encoding="utf-8") as listed:
            return Figures(_figure(Path(directory), row) for row in csv.DictReader(listed))


def _figure(directory: Path, row: Mapping[str, str]) -> Figure:
    path = directory / row["figure"]
    svg = path.with_name(path.name + ".svg").read_text(encoding="utf-8")
    numbers = path.with_name(path.name + ".csv").read_bytes()
    return Figure(row["figure"], row["title"], row["about"], svg, numbers)


def image(figure: Figure) -> str:
    """A chart as HTML. As an image, its identifiers cannot meet those of another chart on the page."""
    data = base64.b64encode(figure.svg.encode()).decode()
    title = html.escape(f"{figure.title}. {figure.about}", quote=True)
    return f'<img alt="{title}" title="{title}" style="width: 24em; max-width: 100%; margin: 0.3em" src="data:image/svg+xml;base64,{data}">'


def page(title: str, findings: Iterable[tuple[str, str]], figures: Figures, shown: Iterable[str]) -> str:
    """What a notebook shows: a title, findings (how it went, and what), and some of the charts."""
    lines = "".join(f'<li style="border-left: 0.3em solid {_COLOURS.get(mood, _COLOURS["plain"])}; list-style: none; '
                    f'margin: 0.2em 0; padding-left: 0.6em">{html.escape(text)}</li>' for mood, text in findings)
    charts = "".join(image(figures[name]) for name in shown if name in figures)
    return f'<div><strong>{html.escape(title)}</strong><ul style="padding: 0; margin: 0.4em 0">{lines}</ul>{charts}</div>'
