"""Sentences of an index that state a fact about a named subject.

Only plain English sentences are understood: they begin with the name of an entity, and what
follows is a verb of a known form, refers to nothing outside the sentence, and names something else
or a time. So a question can be made from the words of the sentence, and a reader of the sentence
can answer it. Few sentences pass; rather none than a wrong one.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import polars as pl

from graphrag_evaluation.questions import GoldSpan
from graphrag_index.errors import TableError
from graphrag_nlp.text.languages import read_lists, word_set
from graphrag_nlp.text.normalize import fold
from graphrag_nlp.text.sentences import split_sentences
from graphrag_nlp.text.standalone import stand_alone
from graphrag_query.index import Index

# Text units that sentences are read from, evenly spaced; more would only add to the choice.
MAX_TEXT_UNITS = 4_000
MIN_SENTENCE_CHARS, MAX_SENTENCE_CHARS = 40, 300
# Names of a sentence that are tried as its subject.
MAX_SUBJECTS = 4
# Number of words of a predicate.
MIN_WORDS, MAX_WORDS = 4, 28
# Number of words that say something without the clause after them.
MIN_WORDS_BEFORE_CLAUSE = 6
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
    r"|\w+ing|according|including|then)\b|\s(?:but|although|because|whereas)\b|,\s*$)"
)
# A statement that holds only under a condition, or of several subjects, asks for no single one.
_CONDITION = re.compile(
    r"\b(?:while|when|until|if|unless|as (?:the|a|he|she|it|they)|where)\b"
    # Two statements with one verb: "took 3 for 77 and McGrath 2 for 66".
    r"|\band (?:[A-Z]\w+ )+\d|^(?:was|is) (?:also |still )?(?:a|an|one|among|part|in|on|at)\b"
)
_PARTICIPLE = re.compile(r",\s\w+ing\b")
_SEQUENCE = re.compile(r"\b(?:before|after)\b")
# An addition to a name: ", a seaman from County Kerry," or "(IMF)".
_APPOSITION = re.compile(r"^(?:, [^,()]{2,80}, (?=\w)| \([A-Z]{2,8}\) )")


@dataclass(frozen=True)
class Mention:
    """The name of an entity in a sentence, with its place there."""

    start: int
    end: int
    title: str
    type: str
    aliases: tuple[str, ...]


@dataclass(frozen=True)
class Sentence:
    """A sentence that a reader understands alone; `mentions` are ordered, the longest first."""

    span: GoldSpan
    language: str
    mentions: tuple[Mention, ...]


@dataclass(frozen=True)
class Fact:
    """A statement about a subject: ``subject predicate`` are the words of a sentence.

    `named` has the titles of other entities in the predicate. `time` is the text of the only time
    in the predicate, and `before_time` the predicate up to it.
    """

    subject: str
    article: str  # "the " if the sentence has it before the subject
    subject_names: tuple[str, ...]  # the title, and its other names
    subject_type: str
    predicate: str
    span: GoldSpan
    named: tuple[str, ...] = ()
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


def read_sentences(index: Index) -> list[Sentence]:
    """Read the sentences of an index that stand alone, in the order of the text units.

    Raises `TableError` if the index has no table of mentions, which says where names stand.
    """
    store = index.store
    if not store.has_table("mentions"):
        raise TableError(
            "Questions cannot be made from this index: it has no table mentions, which says where "
            "names stand. Build it with `graphrag-index run`."
        )
    step = max(1, -(-store.n_rows("text_units") // MAX_TEXT_UNITS))
    columns = ("human_readable_id", "text", "start_char", "document_id")
    units = (
        store.scan("text_units")
        .filter(pl.col("human_readable_id") % step == 0)
        .select(columns)
        .join(store.scan("documents").select("language", document_id="id"), on="document_id")
        .sort("human_readable_id")
        .collect()
    )
    mentions = store.scan("mentions").filter(pl.col("text_unit") % step == 0).collect()
    titles = store.scan("entities").select("human_readable_id", "title", "type", "aliases")
    entities = {row[0]: row[1:] for row in titles.collect().iter_rows()}
    of_unit: dict[int, list[Mention]] = defaultdict(list)
    for entity, unit, start, end in mentions.sort("start_char").iter_rows():
        title, kind, aliases = entities[entity]
        of_unit[unit].append(Mention(start, end, title, kind or "", tuple(aliases)))
    spans, languages, within = [], [], []
    for unit in units.iter_rows(named=True):
        for span in _split_unit(unit):
            spans.append(span)
            languages.append(unit["language"])
            within.append(unit["human_readable_id"])
    said = pl.Series([span.text for span in spans], dtype=pl.String)
    alone = stand_alone(said, pl.Series(languages, dtype=pl.String))
    found: dict[tuple[str, int], Sentence] = {}
    for span, language, number, stands in zip(spans, languages, within, alone, strict=True):
        named = _mentions_in(span, of_unit[number])
        if stands and named:
            # Text units overlap.
            found.setdefault((span.document, span.start_char), Sentence(span, language, named))
    return list(found.values())


def _split_unit(unit: Mapping[str, Any]) -> Iterator[GoldSpan]:
    """Yield the sentences of a text unit that are neither short nor long."""
    text, offset = unit["text"], unit["start_char"]
    for sentence in split_sentences(text):
        start, end = sentence.start, sentence.end
        if sentence.prose and MIN_SENTENCE_CHARS <= end - start <= MAX_SENTENCE_CHARS:
            yield GoldSpan(unit["document_id"], start + offset, end + offset, text[start:end])


def _mentions_in(span: GoldSpan, mentions: Sequence[Mention]) -> tuple[Mention, ...]:
    """Return the mentions of a text unit in a sentence; of names at one place, the longest."""
    first, last = span.start_char, span.end_char
    inside = [one for one in mentions if first <= one.start and one.end <= last]
    placed = sorted(inside, key=lambda one: (one.start, -one.end))
    return tuple(
        Mention(one.start - first, one.end - first, one.title, one.type, one.aliases)
        for _, (one, *_) in groupby(placed, key=lambda one: one.start)
    )


@cache
def fact_words() -> Mapping[str, Any]:
    """Return the word lists of `fact_words.yaml`."""
    return read_lists("fact_words", Path(__file__).parent)


def find_facts(sentences: Iterable[Sentence]) -> list[Fact]:
    """Find facts in sentences, in their order; sentences of other languages have none.

    Facts that give one statement the times of different years are left out.
    """
    read = (_read_fact(sentence) for sentence in sentences if sentence.language == "en")
    facts = [fact for fact in read if fact is not None]
    years: dict[str, set[int]] = defaultdict(set)
    for fact in facts:
        years[_timed_statement(fact)].add(fact.year)
    return [fact for fact in facts if not fact.time or len(years[_timed_statement(fact)]) == 1]


def _timed_statement(fact: Fact) -> str:
    return fold(f"{fact.subject} {fact.before_time}") if fact.time else ""


def _read_fact(sentence: Sentence) -> Fact | None:
    """Return the fact about the first name of a sentence that a predicate follows."""
    text = sentence.span.text
    for subject in sentence.mentions[:MAX_SUBJECTS]:
        before = text[: subject.start]
        predicate = _read_predicate(text[subject.end :]) if before in ("", "The ") else None
        if predicate is not None:
            return _make_fact(sentence, subject, before, predicate)
    return None


def _make_fact(sentence: Sentence, subject: Mention, before: str, predicate: str) -> Fact | None:
    text = sentence.span.text
    begin = text.index(predicate, subject.end)
    others = dict.fromkeys(
        one.title
        for one in sentence.mentions
        if one.title != subject.title and begin <= one.start and one.end <= begin + len(predicate)
    )
    times = list(TIME.finditer(f" {predicate}"))
    if not others and not times:
        return None
    # The time of a clause is not that of the statement.
    time = times[0] if len(times) == 1 and not _SEQUENCE.search(predicate) else None
    said = text[subject.start : subject.end]
    return Fact(
        subject=subject.title,
        article="the " if before else "",
        subject_names=tuple(dict.fromkeys((subject.title, *subject.aliases, said))),
        subject_type=subject.type,
        predicate=predicate,
        span=sentence.span,
        named=tuple(others),
        time=time["time"] if time else "",
        before_time=f" {predicate}"[: time.start()].strip() if time else "",
    )


def _read_predicate(rest: str) -> str | None:
    """Return the predicate after the name of a subject, or None if it is not a plain statement."""
    rest = _APPOSITION.sub(" ", rest, count=1)
    if not rest.startswith(" ") or not rest.rstrip().endswith("."):
        return None
    predicate = rest.strip()
    cut = _CLAUSE.search(predicate)
    ending = predicate[cut.start() :] if cut else ""
    predicate = (predicate[: cut.start()] if cut else predicate).rstrip(" .,")
    words = _WORD.findall(predicate)
    if not MIN_WORDS <= len(words) <= MAX_WORDS or "," in predicate or '"' in predicate:
        return None
    lists = fact_words()
    verb = words[0]
    is_regular = verb.endswith("ed") and verb.islower()
    if not (is_regular or verb in ("was", "is", "has", "will") or verb in lists["past_tenses"]):
        return None
    if _PARTICIPLE.match(ending) and len(words) < MIN_WORDS_BEFORE_CLAUSE:
        return None
    if _CONDITION.search(rest.strip()) or words[-1] in word_set(lists["loose_ends"]):
        return None
    if not word_set(lists["references"]).isdisjoint(word.lower() for word in words):
        return None
    is_clear = all(
        _says_which(words[at + 1 :]) for at, word in enumerate(words) if word.lower() == "the"
    )
    return predicate if is_clear else None


def _says_which(words: Sequence[str]) -> bool:
    """Return whether the words after "the" say which one is meant, without the text before them.

    "The edge of the Barrier" and "the sculptor Kathleen Bruce" do, "the sea" does not.
    """
    definers = word_set(fact_words()["definers"])
    links = word_set(fact_words()["links"])
    for word in words:
        if word[0].isupper() or (word[0].isdigit() and "-" not in word):
            return True
        if word in definers or word in links:
            return word in definers
    return False
