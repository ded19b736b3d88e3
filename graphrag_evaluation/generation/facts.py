"""Sentences of an index that state a fact about a named subject.

Only plain English sentences are understood: they begin with the name of an entity, and what follows
is a verb in the past tense or "was", refers to nothing outside the sentence, and names something
else or a number. So a question can be made from the words of the sentence, and a reader of the
sentence can answer it. Few sentences pass; rather none than a wrong one.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from graphrag_evaluation.questions import GoldSpan
from graphrag_index.errors import TableError
from graphrag_index.text.languages import read_lists, word_set
from graphrag_index.text.normalize import fold
from graphrag_index.text.sentences import split_sentences
from graphrag_index.text.standalone import stand_alone
from graphrag_query.index import Index

# Text units that facts are read from, evenly spaced; more would only add to the choice.
MAX_TEXT_UNITS = 4_000
MIN_SENTENCE_CHARS, MAX_SENTENCE_CHARS = 40, 300
# Number of words of a predicate.
MIN_WORDS, MAX_WORDS = 4, 28
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_YEAR = r"(?:1[0-9]{3}|20[0-9]{2})"
# A time with its preposition; the group `time` has the answer.
TIME = re.compile(
    rf"\s(?:in|on)\s(?P<time>(?:\d{{1,2}}\s(?:{_MONTH})\s|(?:{_MONTH})\s(?:\d{{1,2}},?\s)?)?"
    rf"(?P<year>{_YEAR}))(?![\w-]|\s(?:to|and|or|until)\s\d)"
)
# The predicate ends before a clause that only adds something.
_CLAUSE = re.compile(
    r"\s*(?:[;:(–—]|,\s(?:and|but|so|although|though|where|which|who|because|since|whose|whom"
    r"|making|becoming|then)\b|\s(?:but|although|because|whereas)\b|,\s*$)"
)
# A statement that holds only under a condition, or of several subjects, asks for no single one.
_CONDITION = re.compile(
    r"\b(?:while|when|until|before|after|if|unless|as (?:the|a|he|she|it|they)|where)\b"
    r"|^(?:was|is) (?:also |still )?(?:a|an|one|among|part|in|on|at)\b"
)


@dataclass(frozen=True)
class Fact:
    """A statement about a subject: ``subject predicate`` are the words of a sentence.

    `named` maps the titles of other entities in the predicate to (name there, type). `time` is the
    text of the only time in the predicate, and `before_time` the predicate up to it.
    """

    subject: str
    article: str  # "the " if the sentence has it before the subject
    subject_names: tuple[str, ...]  # the title, and its other names
    subject_type: str
    predicate: str
    span: GoldSpan
    document: str
    named: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    time: str = ""
    before_time: str = ""

    @property
    def year(self) -> int:
        """The year of `time`; 0 without a time."""
        return int(self.time[-4:]) if self.time else 0

    @property
    def sentence(self) -> str:
        """The statement with the title of its subject, as a sentence of its own."""
        said = f"{self.article}{self.subject} {self.predicate}."
        return said[0].upper() + said[1:]


@cache
def fact_words() -> Mapping[str, Any]:
    """Return the word lists of `fact_words.yaml`."""
    return read_lists("fact_words", Path(__file__).parent)


def find_facts(index: Index) -> list[Fact]:
    """Find facts in the English text units of an index, in the order of the text units.

    Raises `TableError` if the index has no table of mentions, which names the subjects.
    """
    store = index.store
    if not store.has_table("mentions"):
        raise TableError(
            "Questions cannot be made from this index: it has no table mentions, which says where "
            "names stand. Build it with `graphrag-index run`."
        )
    n = store.n_rows("text_units")
    step = max(1, -(-n // MAX_TEXT_UNITS))
    chosen = pl.col("human_readable_id") % step == 0
    columns = ("human_readable_id", "text", "start_char", "document_id")
    documents = store.scan("documents").filter(language="en").select("id").collect()
    is_english = pl.col("document_id").is_in(documents["id"].implode())
    units = store.scan("text_units").filter(chosen & is_english).select(columns).collect()
    mentions = store.scan("mentions").filter(pl.col("text_unit") % step == 0).collect()
    titles = store.scan("entities").select("human_readable_id", "title", "type", "aliases")
    entities = {row[0]: row[1:] for row in titles.collect().iter_rows()}
    of_unit: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for entity, unit, start, end in mentions.sort("start_char").iter_rows():
        of_unit[unit].append((start, end, entity))
    facts, seen = [], set()
    for number, text, offset, document in units.iter_rows():
        for fact in _facts_of_text_unit(text, offset, document, of_unit[number], entities):
            # Text units overlap.
            if (document, fact.span.start_char) not in seen:
                seen.add((document, fact.span.start_char))
                facts.append(fact)
    return facts


def _facts_of_text_unit(
    text: str,
    offset: int,
    document: str,
    mentions: Sequence[tuple[int, int, int]],
    entities: Mapping[int, tuple[str, str, list[str]]],
) -> Iterator[Fact]:
    sentences = [
        sentence
        for sentence in split_sentences(text)
        if sentence.prose
        and sentence.end - sentence.start >= MIN_SENTENCE_CHARS
        and sentence.end - sentence.start <= MAX_SENTENCE_CHARS
    ]
    said = pl.Series([text[one.start : one.end] for one in sentences], dtype=pl.String)
    alone = stand_alone(said, pl.repeat("en", len(said), eager=True)) if len(said) else said
    for sentence, stands in zip(sentences, alone, strict=True):
        first, last = sentence.start + offset, sentence.end + offset
        if text[sentence.start : sentence.start + 4] == "The ":
            first += 4
        inside = [one for one in mentions if first <= one[0] and one[1] <= last]
        if not stands or not inside or inside[0][0] != first:
            continue
        # Of names at the same place, the longest is the subject.
        start, stop, entity = max(one for one in inside if one[0] == first)
        title, kind, aliases = entities[entity]
        predicate = _read_predicate(text[stop - offset : sentence.end])
        if predicate is None:
            continue
        begin = stop + 1
        others = {
            entities[e][0]: (text[s - offset : t - offset], entities[e][1] or "")
            for s, t, e in inside
            if e != entity and begin <= s and t <= begin + len(predicate)
        }
        times = list(TIME.finditer(f" {predicate}"))
        if not others and not times:
            continue
        time = times[0] if len(times) == 1 else None
        names = (title, *aliases, text[start - offset : stop - offset])
        yield Fact(
            subject=title,
            article="the " if first > sentence.start + offset else "",
            subject_names=tuple(dict.fromkeys(names)),
            subject_type=kind or "",
            predicate=predicate,
            span=GoldSpan(
                document, sentence.start + offset, last, text[sentence.start : sentence.end]
            ),
            document=document,
            named=others,
            time=time["time"] if time else "",
            before_time=f" {predicate}"[: time.start()].strip() if time else "",
        )


def _read_predicate(rest: str) -> str | None:
    """Return the predicate after the name of a subject, or None if it is not a plain statement."""
    if not rest.startswith(" ") or not rest.rstrip().endswith("."):
        return None
    predicate = rest.strip()
    cut = _CLAUSE.search(predicate)
    predicate = (predicate[: cut.start()] if cut else predicate).rstrip(" .,")
    words = _WORD.findall(predicate)
    if not MIN_WORDS <= len(words) <= MAX_WORDS or "," in predicate or '"' in predicate:
        return None
    lists = fact_words()
    verb = words[0]
    is_regular = verb.endswith("ed") and verb.islower()
    if not is_regular and verb not in ("was", "is", "has") and verb not in lists["past_tenses"]:
        return None
    if _CONDITION.search(rest.strip()) or words[-1] in word_set(lists["loose_ends"]):
        return None
    if not word_set(lists["references"]).isdisjoint(word.lower() for word in words):
        return None
    is_clear = all(
        _is_definite(words[at + 1 :]) for at, word in enumerate(words) if word.lower() == "the"
    )
    return predicate if is_clear else None


def _is_definite(words: Sequence[str]) -> bool:
    """Return whether the words after "the" say which one is meant, without the text before them.

    "The edge of the Barrier" and "the sculptor Kathleen Bruce" do, "the sea" does not.
    """
    definers = word_set(fact_words()["definers"])
    links = word_set(fact_words()["links"])
    for word in words:
        if word[0].isupper() or word[0].isdigit():
            return True
        if word in definers or word in links:
            return word in definers
    return False


def names_subject(text: str, fact: Fact) -> bool:
    """Return whether a text names the subject of a fact, by its title or another name."""
    folded = f" {fold(text)} "
    return any(f" {fold(name)} " in folded for name in fact.subject_names)
