"""Make a corpus of any size whose entities, relationships and communities are known.

    python benchmarks/planted.py --text-units 1000 --out FOLDER

Writes FOLDER/input/*.txt and FOLDER/ground_truth.json. The corpus is a chronicle of invented
valleys. A valley has people, organisations, places and events of its own, tied by facts that make
a connected, sparse graph; documents tell the facts of one valley, each several times, between
sentences that name nobody, and now and then a fact that leads to another valley. Someone who was
named in full may be called by the surname alone. So the valleys are the communities, and what the
sentences state are the relationships.
"""

import argparse
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

VALLEY_SIZE = 36  # entities
ENTITIES_PER_TEXT_UNIT = 2.5
TEXT_UNITS_PER_DOCUMENT = 8
TOKENS_PER_TEXT_UNIT = 480  # new ones: text units of 600 tokens repeat 100, and end with a sentence
TOKENS_PER_WORD = 1.32  # of this text, in o200k_base

ONSETS = "b br d dr f g gr h j k kl l m n p pr r s st t tr v w z".split()
VOWELS = "a e i o u ai ei ou".split()
CODAS = "l m n r s t nd rk lt ns".split()

GIVEN = (
    "Abel Alma Anton Berta Bruno Carla Conrad Dora Edgar Elsa Emil Flora Georg Greta Harald Ida "
    "Ivan Jutta Karl Lena Leo Magda Max Nelly Olaf Paula Ralph Rita Theo Ursula Viktor Wanda"
).split()
KINDS = {
    "organization": "Guild Brewery Academy Railway Hospital Orchestra Shipyard Archive".split(),
    "place": "Castle Abbey Bridge Marsh Quarry Square Lighthouse Viaduct".split(),
    "event": "Flood Jubilee Strike Exhibition Regatta Trial Famine Election".split(),
}
# Half of the entities are people, as in most archives.
CYCLE = ("person", "organization", "person", "place", "person", "event")

FACTS = (
    "{a} lent a considerable sum to {b} {when}",
    "{when} the papers of {a} were deposited with {b}",
    "nobody did more for {b} than {a}, who began {when}",
    "a quarrel between {a} and {b} was settled {when}",
    "{a} is first named together with {b} in a letter written {when}",
    "{when} {a} took over the debts of {b}",
    "the account books show that {a} supplied {b} {when}",
    "{a} was praised by the inspectors for standing by {b} {when}",
)
WHENS = (
    "in the spring of the following year",
    "before the first snow had fallen",
    "after a vote that was nearly lost",
    "during the long drought",
    "when the harvest had been brought in",
    "at the request of both families",
    "against the advice of the bank",
    "while the old road was closed",
)
NAMELESS = (
    "For a while nothing more was heard of the matter.",
    "The minutes of these years are brief and give no reasons.",
    "Prices rose, wages did not, and many households took in lodgers.",
    "What became of the money was never found out.",
    "Letters took nine days in summer and three weeks in winter.",
    "Opinions differed, as they always had, between the upper and the lower town.",
    "It was a dry summer, and the wells had to be deepened twice.",
    "Later writers copied this story from each other without asking where it came from.",
)
# Of the sentences of a document.
SHARE_NAMELESS = 0.25
SHARE_TO_ANOTHER_VALLEY = 0.05
# Of the further mentions of a person in a document.
SHARE_SURNAME_ALONE = 0.3

Pair = tuple[str, str]


@dataclass
class Valley:
    """One planted community."""

    entities: list[tuple[str, str]]  # name, kind
    facts: list[Pair] = field(default_factory=list)


def make_corpus(text_units: int, folder: Path, seed: int = 1) -> None:
    """Write a corpus of about so many text units, and what is true of it."""
    chance = random.Random(seed)
    n_valleys = max(1, round(text_units * ENTITIES_PER_TEXT_UNIT / VALLEY_SIZE))
    names = _names(chance)
    valleys = [Valley([next(names) for _ in range(VALLEY_SIZE)]) for _ in range(n_valleys)]
    for valley in valleys:
        valley.facts = _connect([name for name, _ in valley.entities], chance)

    (folder / "input").mkdir(parents=True, exist_ok=True)
    bridges: dict[Pair, None] = {}  # in the order in which they were told
    for number in range(max(1, round(text_units / TEXT_UNITS_PER_DOCUMENT))):
        text = _document(number % n_valleys, valleys, bridges, chance)
        path = folder / "input" / f"chronicle-{number:06}.txt"
        path.write_text(text, encoding="utf-8", newline="\n")

    truth = {
        "entities": [
            {"name": name, "type": kind, "topic": number}
            for number, valley in enumerate(valleys)
            for name, kind in valley.entities
        ],
        "relations": [
            {"source": source, "target": target}
            for pairs in ([pair for valley in valleys for pair in valley.facts], bridges)
            for source, target in pairs
        ],
    }
    (folder / "ground_truth.json").write_text(json.dumps(truth), encoding="utf-8")


def _names(chance: random.Random) -> Iterator[tuple[str, str]]:
    """Invent names, no two with the same surname or proper word, and say of which kind each is."""
    used: set[str] = set()
    while True:
        for kind in CYCLE:
            proper = _word(chance)
            while proper in used:
                proper = _word(chance)
            used.add(proper)
            if kind == "person":
                yield f"{chance.choice(GIVEN)} {proper}", kind
            else:
                yield f"{proper} {chance.choice(KINDS[kind])}", kind


def _word(chance: random.Random) -> str:
    syllables = [
        chance.choice(ONSETS) + chance.choice(VOWELS) for _ in range(chance.choice((2, 3)))
    ]
    return ("".join(syllables) + chance.choice(CODAS)).capitalize()


def _connect(names: list[str], chance: random.Random) -> list[Pair]:
    """Tie names into one sparse graph: a random tree, and as many facts again."""
    pairs: dict[frozenset[str], Pair] = {}
    for number, name in enumerate(names[1:], 1):
        known = names[chance.randrange(number)]
        pairs[frozenset((known, name))] = (known, name)
    for _ in names:
        source, target = chance.sample(names, 2)
        pairs.setdefault(frozenset((source, target)), (source, target))
    return list(pairs.values())


def _document(
    home: int, valleys: list[Valley], bridges: dict[Pair, None], chance: random.Random
) -> str:
    """Tell the facts of a valley, each as often as any other, until the document is full."""
    facts = valleys[home].facts.copy()
    chance.shuffle(facts)
    words, told = 0, 0
    named: set[str] = set()
    paragraphs: list[list[str]] = [[]]
    while words * TOKENS_PER_WORD < TOKENS_PER_TEXT_UNIT * TEXT_UNITS_PER_DOCUMENT:
        kind = chance.random()
        if kind < SHARE_NAMELESS:
            sentence = chance.choice(NAMELESS)
        elif kind < SHARE_NAMELESS + SHARE_TO_ANOTHER_VALLEY and len(valleys) > 1:
            elsewhere = (home + chance.randrange(1, len(valleys))) % len(valleys)
            pair = (_any_name(valleys[home], chance), _any_name(valleys[elsewhere], chance))
            bridges.setdefault(pair)
            sentence = _sentence(pair, named, chance)
        else:
            sentence = _sentence(facts[told % len(facts)], named, chance)
            told += 1
        if len(paragraphs[-1]) > 3 and chance.random() < 0.4:
            paragraphs.append([])
        paragraphs[-1].append(sentence)
        words += len(sentence.split())
    return "\n\n".join(" ".join(paragraph) for paragraph in paragraphs) + "\n"


def _any_name(valley: Valley, chance: random.Random) -> str:
    return chance.choice(valley.entities)[0]


def _sentence(pair: Pair, named: set[str], chance: random.Random) -> str:
    a, b = (_mention(name, named, chance) for name in pair)
    text = chance.choice(FACTS).format(a=a, b=b, when=chance.choice(WHENS))
    return text[0].upper() + text[1:] + "."


def _mention(name: str, named: set[str], chance: random.Random) -> str:
    """Write a name in full, or the surname of a person whom the document has named before."""
    given, _, surname = name.partition(" ")
    if name in named and given in GIVEN and chance.random() < SHARE_SURNAME_ALONE:
        return surname
    named.add(name)
    return name


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--text-units", type=int, default=1000)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    make_corpus(arguments.text_units, arguments.out, arguments.seed)
