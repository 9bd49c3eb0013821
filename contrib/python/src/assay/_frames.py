"""Reads tables as data frames of pandas or of polars, whichever is installed."""

from __future__ import annotations

import importlib.util
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ._errors import AssayError

if TYPE_CHECKING:
    import pandas
    import polars

#: The libraries that tables can be read with.
Library = Literal["pandas", "polars"]

_chosen: Library | None = None


def use(library: Library | None) -> None:
    """Chooses the library of all data frames from now on; None: pandas where it can read Parquet, else polars."""
    global _chosen
    if library not in (None, "pandas", "polars"):
        raise ValueError(f"cannot make data frames with {library!r}: choose 'pandas' or 'polars'")
    _chosen = library


def library() -> Library:
    """The library that is used."""
    if _chosen is not None:
        return _chosen
    # pandas reads Parquet with another library only.
    if _has("pandas") and (_has("pyarrow") or _has("fastparquet")):
        return "pandas"
    if _has("polars"):
        return "polars"
    raise AssayError("data frames need a library: pip install pandas pyarrow, or pip install polars")


def _has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def read(table: Path | bytes) -> Any:
    """A table as a data frame of the library that is used: a Parquet file, or the contents of a CSV file."""
    return read_polars(table) if library() == "polars" else read_pandas(table)


def read_pandas(table: Path | bytes) -> pandas.DataFrame:
    """A table as a data frame of pandas."""
    import pandas

    return pandas.read_csv(io.BytesIO(table)) if isinstance(table, bytes) else pandas.read_parquet(table)


def read_polars(table: Path | bytes) -> polars.DataFrame:
    """A table as a data frame of polars."""
    import polars

    # All rows decide on the types of columns: a column may begin with whole numbers.
    return polars.read_csv(io.BytesIO(table), infer_schema_length=None) if isinstance(table, bytes) else polars.read_parquet(table)
