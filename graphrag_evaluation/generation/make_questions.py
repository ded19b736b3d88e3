"""Questions from the facts of an index, without a model: a seeded choice, split by document.

A fact is a plain English sentence: it begins with the name of an entity, and what follows is a verb
of a known form, refers to nothing outside the sentence, and names something else or a time. So a
question can be made from the words of the sentence, and a reader of the sentence can answer it. Few
sentences pass: a missing question is better than a wrong one.
"""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import blake2b
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Any

import polars as pl

from graphrag_evaluation.questions import EvaluationQuestion, GoldSpan
from graphrag_evaluation.stated_shares import stated_shares
from graphrag_evaluation.systems import weigh_words
from graphrag_index.errors import SettingsError, TableError
from graphrag_nlp.text.languages import read_lists, word_set
from graphrag_nlp.text.normalize import fold
from graphrag_nlp.text.sentences import split_sentences
from graphrag_nlp.text.standalone import stand_alone
from graphrag_query.index import Index

# Maximum number of text units that are read, evenly spaced: they offer enough to choose from.
MAX_TEXT_UNITS = 4_000
MIN_SENTENCE_CHARS, MAX_SENTENCE_CHARS = 40, 300
# Maximum number of names of a sentence that are tried as its subject.
MAX_SUBJECTS = 4
# Minimum and maximum number of words of a predicate.
MIN_WORDS, MAX_WORDS = 4, 28
# Minimum number of words of a predicate that is cut before a clause.
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
# A statement that is true only under a condition, or of many subjects, is no basis for a question.
_CONDITION = re.compile(
    r"\b(?:while|when|until|if|unless|as (?:the|a|he|she|it|they)|where)\b"
    # Two statements with one verb: "took 3 for 77 and McGrath 2 for 66".
    r"|\band (?:[A-Z]\w+ )+\d|^(?:was|is) (?:also |still )?(?:a|an|one|among|part|in|on|at)\b"
)
_PARTICIPLE = re.compile(r",\s\w+ing\b")
_SEQUENCE = re.compile(r"\b(?:before|after)\b")
# An addition to a name: ", a seaman from County Kerry," or "(IMF)".
_APPOSITION = re.compile(r"^(?:, [^,()]{2,80}, (?=\w)| \([A-Z]{2,8}\) )")
# The kinds of questions with their shares. Questions that join two passages need a model.
KINDS = {
    "local": 0.3,
    "two-hop": 0.15,
    "comparison": 0.1,
    "whole-corpus": 0.15,
    "temporal": 0.15,
    "unanswerable": 0.15,
}
SPLITS = ("tune", "report")
MIN_STATEMENTS, MAX_STATEMENTS, MIN_DOCUMENTS = 4, 12, 3
# A topic with more sentences than this in a split is too broad for a few expected statements.
MAX_SENTENCES = 30
# A sentence with this share of the words of a predicate may state it of another subject.
MIN_STATED_SHARE = 0.6
# Number of text units that are searched for such sentences.
TOP_K_TEXT_UNITS = 20
# How a subject is asked for, by the type of its entity.
_ASKED = {"person": "Who", "geo": "Who or what", "organization": "Who or what"}


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
            # Text units overlap, so that two may contain one sentence.
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


class Corpus:
    """The texts of an index, to check that a question has one answer, or none."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._weights = weigh_words(index)

    def is_clear(self, fact: Fact) -> bool:
        """Return whether the predicate of a fact is stated of its subject alone."""
        for text in self.similar_texts(fact.predicate):
            sentences = [text[one.start : one.end] for one in split_sentences(text)]
            [share] = stated_shares([fact.predicate], sentences, self._weights)
            if share >= MIN_STATED_SHARE and not _names_any(text, fact.subject_names):
                return False
        return True

    def holds(self, name: str) -> bool:
        """Return whether any text of the index has a name."""
        return any(_names_any(text, [name]) for text in self.similar_texts(name))

    def similar_texts(self, words: str, top_k: int = TOP_K_TEXT_UNITS) -> Iterator[str]:
        """Yield the texts of the text units that match words best, in the order of the index."""
        store = self._index.store
        rows = store.vectors("text_unit_text").find_matching_rows(
            words, top_k, ["human_readable_id"]
        )
        units = store.text_units(rows["human_readable_id"])
        return (unit["text"] for unit in units.values())


def _names_any(text: str, names: Iterable[str]) -> bool:
    folded = f" {fold(text)} "
    return any(f" {fold(name)} " in folded for name in names)


def make_questions(
    index: Index, n: int, seed: int, kinds: Sequence[str] = tuple(KINDS)
) -> list[EvaluationQuestion]:
    """Make at most `n` questions from the facts that an index states, without a model.

    Equal seeds give equal questions. Each kind has its share of `KINDS`; if a kind has too few
    facts, the other kinds get more. No document is in both splits. Raises `SettingsError` for an
    unknown kind, and if the index states no fact that a question can be made of.
    """
    check_kinds(kinds)
    sentences = read_sentences(index)
    # Read both splits: a question must have only one answer in the whole index.
    facts = find_facts(sentences)
    corpus = Corpus(index)
    made: dict[str, list[list[EvaluationQuestion]]] = {kind: [] for kind in kinds}
    for split in SPLITS:
        inside = [fact for fact in facts if split_of(fact.span.document, seed) == split]
        said = [one for one in sentences if split_of(one.span.document, seed) == split]
        mixer = random.Random(f"{seed} {split}")
        mixer.shuffle(inside)
        mixer.shuffle(said)
        for kind in kinds:
            asked = _drop_ambiguous(_ask(kind, inside, said, corpus), n)
            made[kind].append([replace(one, split=split) for one in asked])
    chosen = _choose(made, n)
    if not chosen:
        raise SettingsError(
            "No question can be made from this index: it has no English sentence that states a "
            "fact about a name in plain words. A chat model of the settings can make questions "
            "from other texts, and questions of two passages: name it with --model."
        )
    return number_questions(chosen)


def check_kinds(kinds: Sequence[str]) -> None:
    """Raise `SettingsError` for an unknown kind of question."""
    for kind in kinds:
        if kind not in KINDS:
            raise SettingsError(f"There is no kind of question {kind!r}, but {', '.join(KINDS)}.")


def split_of(document: str, seed: int) -> str:
    """Return the split of a document: it does not depend on the other documents."""
    digest = blake2b(f"{seed} {document}".encode(), digest_size=2).digest()
    return SPLITS[digest[0] % len(SPLITS)]


def number_questions(questions: Iterable[EvaluationQuestion]) -> list[EvaluationQuestion]:
    """Order questions by kind, and name them by kind and number."""
    numbers: Counter[str] = Counter()
    named = []
    for question in sorted(questions, key=lambda one: list(KINDS).index(one.kind)):
        numbers[question.kind] += 1
        named.append(replace(question, id=f"{question.kind}-{numbers[question.kind]}"))
    return named


def _alternate(*sources: Iterable[EvaluationQuestion]) -> Iterator[EvaluationQuestion]:
    """Yield one question of each source in turn, until all are at their end."""
    return (one for row in zip_longest(*sources) for one in row if one is not None)


def _ask(
    kind: str, facts: Sequence[Fact], sentences: Sequence[Sentence], corpus: Corpus
) -> Iterator[EvaluationQuestion]:
    """Ask the questions of a kind that the facts and sentences of a split allow."""
    if kind == "local":
        yield from map(ask_for_subject, filter(corpus.is_clear, facts))
    elif kind == "temporal":
        yield from filter(None, map(ask_for_time, facts))
    elif kind == "whole-corpus":
        yield from ask_about_topics(sentences)
    elif kind == "unanswerable":
        yield from exchange_names(facts, corpus.holds)


def _question(
    kind: str,
    text: str,
    answers: Iterable[str],
    spans: Iterable[GoldSpan],
    statements: Iterable[str] = (),
) -> EvaluationQuestion:
    spans = tuple(dict.fromkeys(spans))
    return EvaluationQuestion(
        id="",
        text=" ".join(text.split()),
        kind=kind,
        documents=tuple(dict.fromkeys(span.document for span in spans)),
        spans=spans,
        statements=tuple(statements),
        answers=tuple(dict.fromkeys(answers)),
    )


def ask_for_subject(fact: Fact) -> EvaluationQuestion:
    """Ask who or what a predicate is true of: "Who led the Nimrod expedition?"."""
    asked = _ASKED.get(fact.subject_type, "What")
    return _question("local", f"{asked} {fact.predicate}?", fact.subject_names, [fact.span])


def ask_for_time(fact: Fact, subject: str = "") -> EvaluationQuestion | None:
    """Ask when a fact happened; None if it has no time, or two verbs."""
    verb, _, rest = fact.before_time.partition(" ")
    asked = subject or fact.article + fact.subject
    base = fact_words()["past_tenses"].get(verb)
    words = rest.split()
    ends_well = verb == "died" or (words and words[-1] not in word_set(fact_words()["loose_ends"]))
    if not fact.time or "and" in words or not ends_well:
        return None
    if verb == "was":
        participles = word_set(fact_words()["participles"])
        if words[0] not in participles and not words[0].endswith("ed"):
            return None
        text = f"When was {asked} {rest}?"
    elif base:
        text = f"When did {asked} {base}{' ' + rest if rest else ''}?"
    else:
        return None
    return _question("temporal", text, (fact.time, str(fact.year)), [fact.span])


def ask_about_topics(sentences: Iterable[Sentence]) -> Iterator[EvaluationQuestion]:
    """Ask about names, and other phrases of several words, that are in several documents.

    The expected statements are sentences of the documents.
    """
    told: dict[str, dict[str, Sentence]] = defaultdict(dict)
    for sentence in sentences:
        for one in sentence.mentions:
            is_theme = one.type == "noun phrase"
            if " " in one.title or not is_theme:
                topic = f"on the subject of {one.title}" if is_theme else f"about {one.title}"
                told[topic][fold(sentence.span.text)] = sentence
    for topic, said in told.items():
        spans = [sentence.span for sentence in said.values()][:MAX_STATEMENTS]
        n_documents = len({span.document for span in spans})
        is_enough = len(spans) >= MIN_STATEMENTS and n_documents >= MIN_DOCUMENTS
        if is_enough and len(said) <= MAX_SENTENCES:
            statements = [" ".join(span.text.split()) for span in spans]
            text = f"What do the documents tell {topic}?"
            yield _question("whole-corpus", text, (), spans, statements)


def exchange_names(
    facts: Sequence[Fact], holds: Callable[[str], bool]
) -> Iterator[EvaluationQuestion]:
    """Ask about people that no document names: the first name of one, the surname of another.

    `holds` tells whether a text of the corpus has a name.
    """
    people: dict[str, Fact] = {}
    # A question that presumes a fact is harder to refuse: these come first.
    for fact in sorted(facts, key=lambda fact: ask_for_time(fact) is None):
        if fact.subject_type == "person" and len(fact.subject.split()) == 2:
            people.setdefault(fact.subject, fact)
    names = list(people)
    pairs = (
        (one, names[(at + shift) % len(names)])
        for shift in range(1, len(names))
        for at, one in enumerate(names)
    )
    for one, other in pairs:
        name = f"{one.split()[0]} {other.split()[1]}"
        if not holds(name):
            asked = ask_for_time(people[one], name)
            text = asked.text if asked else f"What is known about {name}?"
            yield replace(_question("unanswerable", text, (), ()), is_answerable=False)


def _drop_ambiguous(found: Iterable[EvaluationQuestion], max_n: int) -> list[EvaluationQuestion]:
    """Keep one of equal questions, at most `max_n`; drop those with other answers."""
    by_text: dict[str, list[EvaluationQuestion]] = defaultdict(list)
    for question in found:
        by_text[fold(question.text)].append(question)
        if len(by_text) >= max_n:
            break
    # The last known answer to a question about a time is the year: compare the years.
    return [
        same[0]
        for same in by_text.values()
        if len({one.answers[-1 if one.kind == "temporal" else 0 :][:1] for one in same}) == 1
    ]


def _choose(
    made: Mapping[str, Sequence[Sequence[EvaluationQuestion]]], n: int
) -> list[EvaluationQuestion]:
    """Choose questions by the shares of their kinds, of both splits in turn.

    A question that is in both splits stays in one of them.
    """
    ranked: list[tuple[float, EvaluationQuestion]] = []
    for kind, of_splits in made.items():
        once = {fold(one.text): one for one in reversed(list(_alternate(*of_splits)))}
        ranked += [(at / KINDS[kind], one) for at, one in enumerate(reversed(once.values()))]
    # Limit the unanswerable questions, which are easy to make even if the index states little.
    n_others = sum(question.is_answerable for _, question in ranked)
    share = KINDS["unanswerable"]
    most = n_others * share / (1 - share) if n_others else n
    kept = [(rank, one) for rank, one in ranked if one.is_answerable or rank * share < most]
    return [question for _, question in sorted(kept, key=lambda one: one[0])[:n]]
