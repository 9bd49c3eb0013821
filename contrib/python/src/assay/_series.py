"""The tables of a run directory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _frames

if TYPE_CHECKING:
    import pandas
    import polars


class Series(Mapping[str, Any]):
    """Tables by name, read when they are asked for: `series["robots"]` or `series.robots`.

    The manual describes each column (The run directory). `series.pandas(name)` and `series.polars(name)` read with a library by name,
    and have its type.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def __getitem__(self, name: str) -> Any:
        return _frames.read(self._path(name))

    def __getattr__(self, name: str) -> Any:
        # What Python and notebooks look for is no table.
        if name.startswith("_") or name not in self:
            raise AttributeError(f"there is no table {name!r}; there are {', '.join(self)}")
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(path.stem for path in self._directory.glob("*.parquet")))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in list(self)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def __repr__(self) -> str:
        return f"<tables of {self._directory}: {', '.join(self)}>"

    def pandas(self, name: str) -> pandas.DataFrame:
        """A table as a data frame of pandas."""
        return _frames.read_pandas(self._path(name))

    def polars(self, name: str) -> polars.DataFrame:
        """A table as a data frame of polars."""
        return _frames.read_polars(self._path(name))

    def _path(self, name: str) -> Path:
        if name not in self:
            raise KeyError(f"there is no table {name!r}; there are {', '.join(self)}")
        return self._directory / f"{name}.parquet"
