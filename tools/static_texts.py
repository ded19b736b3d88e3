"""English texts that the static embedding table learns from, cut from packages of Debian 12.

The packages are dictionaries, novels, essays, sayings, histories of a game, and documentation.
`apt-get download` fetches them, and their sha256 must match. They have no text of Wikipedia and
none of an evaluation set.
"""

import gzip
import html
import random
import re
import subprocess
import zlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from sources import check_source

# A document is a list of paragraphs about one subject.
Document = list[str]

_TAG = re.compile(r"<[^>]+>")
_BLOCK = re.compile(
    r"<(p|li|dd|td|h[1-6]|blockquote)\b[^>]*>(.*?)(?=<(?:/\1|p|li|dd|h[1-6])\b)", re.S
)
_SENTENCE_END = re.compile(r"(?<=[a-z0-9)\"'”][.!?])\s+(?=[A-Z\"“(])")


def squeeze(text: str) -> str:
    return " ".join(text.split())


def read_html(folder: Path, pattern: str) -> Iterator[Document]:
    """Yield one document per page: its paragraphs, list items and headings."""
    for path in sorted(folder.glob(pattern)):
        page = re.sub(r"<(script|style|pre)\b.*?</\1>", " ", _read(path), flags=re.S)
        found = [squeeze(html.unescape(_TAG.sub(" ", body))) for _, body in _BLOCK.findall(page)]
        yield [paragraph for paragraph in found if len(paragraph.split()) >= 4]


def read_wordnet(folder: Path) -> Iterator[Document]:
    """Yield one document per synset: its words and gloss, its parent's, and its children's."""
    synsets: dict[str, tuple[str, str, list[str]]] = {}
    for part in ("noun", "verb", "adj", "adv"):
        for line in _read(folder / f"usr/share/wordnet/data.{part}").splitlines():
            if line.startswith("  "):
                continue
            data, _, gloss = line.partition(" | ")
            fields = data.split()
            count = int(fields[3], 16)
            words = [word.replace("_", " ") for word in fields[4 : 4 + 2 * count : 2]]
            rest = fields[5 + 2 * count :]
            parents = [part + number for kind, number in pairwise(rest) if kind in ("@", "@i")]
            synsets[part + fields[0]] = (", ".join(words), squeeze(gloss), parents)
    children: dict[str, list[str]] = {}
    for key, (_, _, parents) in synsets.items():
        for parent in parents:
            children.setdefault(parent, []).append(key)
    for key, (words, gloss, parents) in synsets.items():
        near = [*parents, *children.get(key, [])[:6]]
        yield [words, gloss, *(f"{synsets[k][0]}: {synsets[k][1]}" for k in near if k in synsets)]


def read_dictionary(folder: Path, name: str) -> Iterator[Document]:
    """Yield one document per entry of a dictionary for dictd."""
    text = _read(next(folder.glob(f"usr/share/dictd/{name}.dict.dz")))
    if name == "gcide":
        # Drop pronunciations, etymologies in brackets, and the names of authors of quotations.
        text = re.sub(r"\\[^\\\n]{1,60}\\|\[[^\]]{0,300}\]|\{|\}|--[A-Z][\w.' ]+", " ", text)
    lines = re.sub(r"[{}]", "", text).split("\n")
    entry: list[str] = []
    for line in lines:
        if line and not line[0].isspace() and entry and not entry[-1].strip():
            yield _paragraphs("\n".join(entry))
            entry = []
        entry.append(line)


def read_fortunes(folder: Path) -> Iterator[Document]:
    for path in sorted(folder.glob("usr/share/games/fortunes/*")):
        if not path.suffix and not path.is_symlink():
            for fortune in re.split(r"\n%\n", _read(path)):
                yield [squeeze(fortune)]


def read_freeciv(folder: Path) -> Iterator[Document]:
    """Yield a history of each nation, with its rulers and cities, and the help of the game."""
    for path in sorted(folder.glob("usr/share/games/freeciv/nation/*.ruleset")):
        text = _read(path).replace("\\\n", "")
        name = re.search(r'name *= *_\("(?:\?\w+:)?([^"]+)', text)
        legend = re.search(r'legend *= *_\("(.*?)"\)', text, re.S)
        leaders = re.findall(r'"([^"]+)",\s+"(?:Fem|M)ale"', text)
        cities = re.findall(r'^ *"([^"(]+?)(?: *\([^"]*)?"', text.partition("\ncities")[2], re.M)
        if name and legend:
            yield [
                name[1],
                squeeze(legend[1]),
                f"Rulers of the {name[1]}: {', '.join(leaders)}.",
                f"Cities of the {name[1]}: {', '.join(cities[:40])}.",
                *leaders,
                *cities[:60],
            ]
    for path in sorted(folder.glob("usr/share/games/freeciv/helpdata.txt")):
        found = re.findall(r'_\("(.*?)"\)', _read(path).replace("\\\n", ""), re.S)
        yield [squeeze(text.replace("\\n", " ")) for text in found]


def read_austen(folder: Path) -> Iterator[Document]:
    """Yield the paragraphs of novels, which R keeps as compressed vectors of lines."""
    path = next(folder.glob("usr/lib/R/site-library/janeaustenr/data/Rdata.rdb"))
    data, at = path.read_bytes(), 0
    while (at := data.find(b"\x78\x9c", at)) >= 0:
        try:
            values = zlib.decompressobj().decompress(data[at:])
        except zlib.error:
            at += 2
            continue
        lines, place = [], 0
        while (place := values.find(b"\x00\x04\x00\x09", place)) >= 0:
            size = int.from_bytes(values[place + 4 : place + 8], "big")
            lines.append(values[place + 8 : place + 8 + size].decode("utf-8", "replace"))
            place += 8 + size
        yield _paragraphs("\n".join(lines))
        at += 2


def _paragraphs(text: str) -> Document:
    return [squeeze(part) for part in re.split(r"\n\s*\n", text) if part.strip()]


def _read(path: Path) -> str:
    data = path.read_bytes()
    if path.suffix in (".gz", ".dz"):
        data = gzip.decompress(data)
    return data.decode("utf-8", "replace")


class Package(NamedTuple):
    """A package of Debian: how its files are read, and how many texts are cut from them at most."""

    name: str
    version: str
    sha256: str
    read: Callable[[Path], Iterator[Document]]
    max_texts: int


def _dictionary(name: str) -> Callable[[Path], Iterator[Document]]:
    return lambda folder: read_dictionary(folder, name)


def _pages(pattern: str) -> Callable[[Path], Iterator[Document]]:
    return lambda folder: read_html(folder, pattern)


PACKAGES = (
    Package(
        "wordnet-base",
        "1:3.0-37",
        "61060d960f9ada8fa120872312eccd3ecebfbab8c4579e4f5a74e1cf67620752",
        read_wordnet,
        60_000,
    ),
    Package(
        "dict-gcide",
        "0.48.5+nmu2",
        "7b0af5cfde3cbdef5e9d6e78f92ec335ced7c2790f37a40f49bebc6f7347ac0f",
        _dictionary("gcide"),
        28_000,
    ),
    Package(
        "dict-foldoc",
        "20230119-1",
        "745cbedb55c2da609cc88ee0284e9d11a67a11ae3709daf7bad0e895ac3294c3",
        _dictionary("foldoc"),
        8_000,
    ),
    Package(
        "dict-jargon",
        "4.4.7-3.1",
        "405f8168d7994ed2cb71407bb95493daec2e9aa66fc0461dafa74a9d6728a8c1",
        _dictionary("jargon"),
        2_000,
    ),
    Package(
        "dict-devil",
        "1.0-13.1",
        "6a535684def2a1f70cd42da16d12d43f0e9dc3e54e4a329178eebab3170e3154",
        _dictionary("devil"),
        1_000,
    ),
    Package(
        "fortunes",
        "1:1.99.1-7.3",
        "41d0551dc0ff52f875a2ecef7c39da2f672ab468c37e170119f7e0245a9d63c5",
        read_fortunes,
        9_000,
    ),
    Package(
        "freeciv-data",
        "3.0.6-1+deb12u1",
        "278bed022b87408ca9923aa727bef3d6c97875c811723e93ff95dded1b9b76b2",
        read_freeciv,
        4_000,
    ),
    Package(
        "r-cran-janeaustenr",
        "1.0.0-1",
        "df6bddf211906d1ff404f8ff662c21b34e6660e7f54a311084e749050c019c95",
        read_austen,
        8_000,
    ),
    Package(
        "anarchism",
        "15.3-3",
        "cf21c10948b00e923c62eb31c39a3390413fa26c5ee0e3b925feb0ec7fe42948",
        _pages("usr/share/doc/anarchism/html/*.html"),
        16_000,
    ),
    Package(
        "debian-handbook",
        "11.20220922",
        "3d5dbeac1f1afc9c094eab9d0f701f6ecff99c4927d5a4794cf6c85678134faa",
        _pages("usr/share/doc/debian-handbook/html/en-US/*.html"),
        1_000,
    ),
    Package(
        "debian-reference-en",
        "2.100",
        "9f31d3a17df505de09689ca255512ea58c1fc47c59bb1b0c7bf1c23362e9743f",
        _pages("usr/share/debian-reference/ch*.en.html"),
        1_000,
    ),
    Package(
        "r-doc-html",
        "4.2.2.20221110-2",
        "2c615dd386993a440b80fd4e9060318386e31fbe47f5be65f295f5fb34002c5c",
        _pages("usr/share/R/doc/manual/*.html"),
        2_000,
    ),
)


def fetch_packages(folder: Path) -> None:
    """Download the packages, check their hashes, and unpack each into a folder of its name."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in PACKAGES:
        if (folder / package.name).exists():
            continue
        wanted = f"{package.name}={package.version}"
        subprocess.run(["apt-get", "download", "--quiet", wanted], cwd=folder, check=True)
        (file,) = folder.glob(f"{package.name}_*.deb")
        check_source(file, package.sha256)
        subprocess.run(["dpkg", "-x", file, folder / f"{package.name}.new"], check=True)
        (folder / f"{package.name}.new").rename(folder / package.name)


# Maximum number of words of a text.
MAX_WORDS = 200
QUESTIONS = {
    "noun": ("Which {0}?", "What is {1}?", "What is the name of {0}?", "Who or what was {1}?"),
    "text": ("What does the text say about {1}?", "How is {1} explained?", "What is {1}?"),
}


def cut_texts(folder: Path, seed: int = 7) -> list[list[str]]:
    """Return groups of texts; the texts of a group come from the same place of one document.

    A text is a passage of one or more paragraphs, at times below its title, a sentence, or a
    question. The groups are in random order.
    """
    groups: list[list[str]] = []
    for package in PACKAGES:
        rng = random.Random(f"{seed}:{package.name}")
        found = [
            group
            for document in package.read(folder / package.name)
            for group in _cut_document(document, package.name, rng)
        ]
        rng.shuffle(found)
        count = 0
        for group in found:
            groups.append(group)
            count += len(group)
            if count >= package.max_texts:
                break
    random.Random(seed).shuffle(groups)
    return groups


def _cut_document(document: Document, package: str, rng: random.Random) -> Iterator[list[str]]:
    document = [p for p in document if p]
    if not document:
        return
    if package == "wordnet-base":
        yield _cut_synset(document, rng)
        return
    is_entry = package.startswith("dict-")
    title = re.split(r" ?[(,.:;]| (?:n|v|a|adj)$", document[0])[0].strip() if is_entry else ""
    title = title if len(title) <= 60 else ""
    words: list[str] = []
    target = rng.choice((25, 50, 90, 140, MAX_WORDS))
    for paragraph in [*document, ""]:
        new = paragraph.split()
        if words and (not paragraph or len(words) + len(new) > target):
            yield _cut_passage(words[:MAX_WORDS], title, rng)
            words, target = [], rng.choice((25, 50, 90, 140, MAX_WORDS))
        words += new


def _cut_passage(words: list[str], title: str, rng: random.Random) -> list[str]:
    """Return a passage, and with luck its sentences and a question."""
    passage = " ".join(words)
    found = [f"{title}\n{passage}" if title and rng.random() < 0.3 else passage]
    sentences = [s for s in _SENTENCE_END.split(passage) if 4 <= len(s.split()) <= 60]
    if len(sentences) > 1:
        found += rng.sample(sentences, min(len(sentences), rng.choice((0, 1, 1, 2))))
    if title and rng.random() < 0.3:
        found.append(rng.choice(QUESTIONS["text"]).format("", title))
    return found


def _cut_synset(document: Document, rng: random.Random) -> list[str]:
    words, gloss, *near = document
    first = words.split(", ")[-1 if words[0].isupper() else 0]
    rng.shuffle(near)
    body = " ".join([gloss, *near[: rng.choice((0, 1, 2, 4, 6))]])
    form = rng.choice(("{0}\n{1}", "{0}: {1}", "{0} is {1}", "{1}"))
    title = words if rng.random() < 0.5 else first
    found = [" ".join(form.format(title, body).split(" ")[:MAX_WORDS])]
    if rng.random() < 0.35:
        meaning = re.sub(r"^(?:an?|the) ", "", re.split(r"; |\"", gloss)[0].strip())
        found.append(rng.choice(QUESTIONS["noun"]).format(meaning, first))
    elif rng.random() < 0.2:
        found.append(first)
    return found
