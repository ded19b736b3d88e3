"""Questions from the facts of an index, without a model: a seeded choice, split by document."""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import zip_longest

from graphrag_evaluation.coverage import stated_shares
from graphrag_evaluation.generation.facts import (
    Fact,
    Sentence,
    fact_words,
    find_facts,
    read_sentences,
)
from graphrag_evaluation.questions import EvaluationQuestion, GoldSpan
from graphrag_evaluation.systems import weigh_words
from graphrag_index.errors import SettingsError
from graphrag_nlp.text.languages import word_set
from graphrag_nlp.text.normalize import fold
from graphrag_nlp.text.sentences import split_sentences
from graphrag_query.index import Index

# The kinds of questions, with their shares of all. Those of two passages need a model.
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
# What the documents of a split tell in more sentences is too much for a few statements.
MAX_SENTENCES = 30
# A sentence with this share of the words of a predicate may state it of another subject.
MIN_STATED_SHARE = 0.6
# Text units that are searched for such sentences.
TOP_K_TEXT_UNITS = 20
# How a subject is asked for, by the type of its entity.
_ASKED = {"person": "Who", "geo": "Who or what", "organization": "Who or what"}


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
        """Return whether a text has a name."""
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
    # Over both splits: a question has one answer in the whole index.
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
    """Ask about names, and other phrases of several words, of which several documents tell.

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


def _drop_ambiguous(found: Iterable[EvaluationQuestion], most: int) -> list[EvaluationQuestion]:
    """Keep one of equal questions, at most `most` in all; drop those with different answers."""
    by_text: dict[str, list[EvaluationQuestion]] = defaultdict(list)
    for question in found:
        by_text[fold(question.text)].append(question)
        if len(by_text) >= most:
            break
    # The last answer to a question for a time is the year.
    return [
        same[0]
        for same in by_text.values()
        if len({one.answers[-1 if one.kind == "temporal" else 0 :][:1] for one in same}) == 1
    ]


def _choose(
    made: Mapping[str, Sequence[Sequence[EvaluationQuestion]]], n: int
) -> list[EvaluationQuestion]:
    """Choose questions by the shares of their kinds, of both splits in turn.

    A question that both splits have stays in one of them.
    """
    ranked: list[tuple[float, EvaluationQuestion]] = []
    for kind, of_splits in made.items():
        once = {fold(one.text): one for one in reversed(list(_alternate(*of_splits)))}
        ranked += [(at / KINDS[kind], one) for at, one in enumerate(reversed(once.values()))]
    # Where the index states little, most questions would be unanswerable: they are easy to make.
    n_others = sum(question.is_answerable for _, question in ranked)
    share = KINDS["unanswerable"]
    most = n_others * share / (1 - share) if n_others else n
    kept = [(rank, one) for rank, one in ranked if one.is_answerable or rank * share < most]
    return [question for _, question in sorted(kept, key=lambda one: one[0])[:n]]
