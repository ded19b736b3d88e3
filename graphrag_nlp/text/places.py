"""Names of countries, regions and cities that the package knows, from CLDR and GeoNames."""

from functools import cache
from pathlib import Path

import polars as pl

PLACES_FILE = Path(__file__).with_name("data") / "places.parquet"
# Kinds of places. A region is a first-level part of a country, such as a state or a province.
KINDS = ("continent", "country", "region", "city")
MIN_LARGE_POPULATION = 100_000
_DOTTED = r"^(?:\p{Lu}\.)+\p{Lu}?\.?$"


def normalize_places(names: pl.Expr) -> pl.Expr:
    """Remove case and punctuation of names; keep accents: Bélgica is a place, Belgica a ship."""
    words = (
        names.str.normalize("NFC").str.to_lowercase().str.replace_all(" & ", " and ", literal=True)
    )
    return words.str.replace_all(r"[^\p{L}\p{M}\p{N}]+", " ").str.strip_chars(" ")


@cache
def read_places() -> pl.DataFrame:
    """Read the known places; one row per name, kind and country, sorted by name.

    `name` is normalized by `normalize_places`. `country` is the ISO 3166 code, such as "US" or
    "GB-SCT"; it is empty for continents. `population` is 0 except for cities; cities of fewer than
    15,000 people are missing, or 5,000 in countries that speak German, French or Spanish in Europe.
    tools/gazetteer.py makes the file and names the sources.
    """
    return pl.read_parquet(PLACES_FILE)


@cache
def large_place_names() -> frozenset[str]:
    """Return the normalized names of countries, regions and cities of at least 100,000 people."""
    is_large = (pl.col("kind") != "city") | (pl.col("population") >= MIN_LARGE_POPULATION)
    return frozenset(read_places().filter(is_large)["name"])


@cache
def town_names(*countries: str) -> frozenset[str]:
    """Return the normalized names of the cities of countries, by their codes."""
    is_town = pl.col("country").is_in(countries) & (pl.col("kind") == "city")
    return frozenset(read_places().filter(is_town)["name"])


def find_places(names: pl.Series) -> pl.DataFrame:
    """Find the places that names can mean.

    Returns one row per name and place: `row` (the row of the name in `names`), `kind` (see
    `KINDS`), `country` and `population`. The places of a name are in the order of `KINDS`, and
    large cities come before small ones. Names without a known place have no row: whether a name
    means a place is told by its usage, since "Jordan" and "Reading" are also other words. Names of
    two letters are known in capitals only ("US", "U.S."), because "us" is another word.
    """
    letters = pl.when(pl.col("name").str.contains(_DOTTED)).then(
        pl.col("name").str.replace_all(r"\.", "")
    )
    asked = names.to_frame("name").select(name=letters.otherwise("name")).with_row_index("row")
    is_clear = (pl.col("name").str.len_chars() > 2) | (
        pl.col("name") == pl.col("name").str.to_uppercase()
    )
    return (
        asked.filter(is_clear)
        .with_columns(normalize_places(pl.col("name")))
        .join(read_places(), on="name", maintain_order="left_right")
        .drop("name")
        .cast({"row": pl.Int64})
    )
