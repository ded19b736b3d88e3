"""A seeded choice of questions of all kinds, split by document."""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import combinations
from typing import TypeVar

import polars as pl

from graphrag_evaluation.coverage import WordWeights, stated_shares
from graphrag_evaluation.generation import questions_of_facts as drafts
from graphrag_evaluation.generation.facts import (
    Fact,
    fact_words,
    find_facts,
    names_subject,
    says_which,
)
from graphrag_evaluation.generation.index_sentences import Sentence, read_sentences
from graphrag_evaluation.generation.questions_of_facts import (
    MAX_STATEMENTS,
    MIN_DOCUMENTS,
    MIN_STATEMENTS,
    Draft,
)
from graphrag_evaluation.questions import EvaluationQuestion
from graphrag_evaluation.systems import weigh_words
from graphrag_index.errors import SettingsError
from graphrag_nlp.text.languages import word_set
from graphrag_nlp.text.normalize import fold
from graphrag_nlp.text.sentences import are_near_duplicates, distinctive_words, split_sentences
from graphrag_query.index import Index

# The most frequent themes: bounds the time for a large corpus.
MAX_THEMES = 300
# Pairs of names that one name is in; otherwise frequent names would be in most questions.
MAX_PAIRS_OF_NAME = 3
_WORD = re.compile(r"[^\W_]+")
# The kinds of questions, with their shares of all.
KINDS = {
    "local": 0.3,
    "two-hop": 0.15,
    "comparison": 0.1,
    "whole-corpus": 0.15,
    "temporal": 0.15,
    "unanswerable": 0.15,
}
SPLITS = ("tune", "report")
T = TypeVar("T")
# Facts of one split that are combined in pairs: bounds the time for a large corpus.
MAX_PAIRED_FACTS = 400
# A sentence with this share of the words of a predicate may state it of another subject.
MIN_STATED_SHARE = 0.6
# Text units that are searched for such sentences.
TOP_K_TEXT_UNITS = 20
# What documents tell about a name with more mentions is too much for a few statements.
MAX_MENTIONS = 60


class Corpus:
    """The texts of an index, to check that a question has one answer, or none."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._weights: WordWeights = weigh_words(index)
        self._clear: dict[str, bool] = {}

    def is_clear(self, fact: Fact) -> bool:
        """Return whether the predicate of a fact is stated of its subject alone."""
        if fact.predicate not in self._clear:
            self._clear[fact.predicate] = not self._is_stated_of_another(fact)
        return self._clear[fact.predicate]

    def _is_stated_of_another(self, fact: Fact) -> bool:
        for text in self.similar_texts(fact.predicate):
            sentences = [text[one.start : one.end] for one in split_sentences(text)]
            shares = stated_shares([fact.predicate], sentences, self._weights)
            if shares[0] >= MIN_STATED_SHARE and not names_subject(text, fact):
                return True
        return False

    def are_related(self, name: str, other: str) -> bool:
        """Return whether a text names both of two entities."""
        both = [f" {fold(one)} " for one in (name, other)]
        texts = (f" {fold(text)} " for text in self.similar_texts(f"{name} {other}"))
        return any(all(one in text for one in both) for text in texts)

    def holds(self, name: str) -> bool:
        """Return whether a text has a name."""
        folded = f" {fold(name)} "
        return any(folded in f" {fold(text)} " for text in self.similar_texts(name))

    def similar_texts(self, words: str, top_k: int = TOP_K_TEXT_UNITS) -> Iterator[str]:
        """Yield the texts of the text units that match words best, in the order of the index."""
        store = self._index.store
        rows = store.vectors("text_unit_text").find_matching_rows(
            words, top_k, ["human_readable_id"]
        )
        units = store.text_units(rows["human_readable_id"])
        return (unit["text"] for unit in units.values())


def list_themes(index: Index) -> list[str]:
    """List the themes of an index: phrases of two or more words that are not names."""
    store = index.store
    phrases = (
        store.scan("entities")
        .filter(type="noun phrase")
        .sort("frequency", descending=True, maintain_order=True)
        .head(MAX_THEMES)
        .select("title")
        .collect()
    )
    themes = phrases["title"].to_list()
    if store.has_table("community_reports"):
        reports = store.scan("community_reports").filter(pl.col("level") == 0).select("title")
        for title in reports.head(MAX_THEMES).collect()["title"]:
            words, mark, _ = title.partition(": ")
            # Of other phrases in titles, some are no nouns.
            themes += [one for one in words.split(" and ") if mark and one.endswith("s")]
    folded = {fold(theme): theme for theme in themes if len(theme.split()) > 1}
    return [theme[0].lower() + theme[1:] for theme in folded.values()][:MAX_THEMES]


def ask_about_themes(sentences: Sequence[Sentence], themes: Sequence[str]) -> Iterator[Draft]:
    """Ask about the themes of which sentences of several documents tell."""
    clear = [(f" {fold(one.text)} ", one) for one in sentences if _is_clear(one)]
    for theme in themes:
        about = [one for folded, one in clear if f" {fold(theme)} " in folded]
        yield from _ask(f"What do the documents report on the subject of {theme}?", about)


def ask_about_pairs(sentences: Sequence[Sentence]) -> Iterator[Draft]:
    """Ask what the documents tell about two names that sentences of several documents have."""
    of_pair: dict[tuple[str, str], list[Sentence]] = defaultdict(list)
    for sentence in sentences:
        if _is_clear(sentence):
            # Two places tell where something happened, and not of each other.
            types = {one.title: one.type for one in sentence.mentions}
            for first, second in combinations(sorted(types), 2):
                if (types[first], types[second]) != ("geo", "geo"):
                    of_pair[first, second].append(sentence)
    uses: Counter[str] = Counter()
    for pair, about in of_pair.items():
        if max(uses[name] for name in pair) >= MAX_PAIRS_OF_NAME or _overlap(*pair):
            continue
        for draft in _ask(f"What do the documents tell about {pair[0]} and {pair[1]}?", about):
            uses.update(pair)
            yield draft


def _overlap(first: str, second: str) -> bool:
    """Return whether two names share a word: they may be one thing, or a thing and its part."""
    return not set(fold(first).split()).isdisjoint(fold(second).split())


def _is_clear(sentence: Sentence) -> bool:
    """Return whether a sentence refers to nothing outside it, as "he" and "The ship was" do."""
    if sentence.language != "en":
        return False
    words = _WORD.findall(sentence.text)
    if words[0] in ("The", "In", "At", "On") and not _begins_clearly(words):
        return False
    return word_set(fact_words()["pronouns"]).isdisjoint(word.lower() for word in words)


def _begins_clearly(words: Sequence[str]) -> bool:
    at = next((at for at, word in enumerate(words[:2]) if word.lower() == "the"), None)
    return at is None or says_which(words[at + 1 :])


def _ask(question: str, about: Sequence[Sentence]) -> Iterator[Draft]:
    """Yield a question if enough different sentences of enough documents answer it.

    The expected statements are sentences of the documents, so they do not depend on what a report
    chose.
    """
    kept: list[Sentence] = []
    words: list[frozenset[str]] = []
    for sentence in about:
        own = distinctive_words(sentence.text)
        if len(kept) < MAX_STATEMENTS and not any(are_near_duplicates(own, one) for one in words):
            kept.append(sentence)
            words.append(own)
    if len(kept) >= MIN_STATEMENTS and len({one.span.document for one in kept}) >= MIN_DOCUMENTS:
        statements = tuple(" ".join(one.text.split()) for one in kept)
        yield Draft("whole-corpus", question, (), tuple(one.span for one in kept), statements)


def make_questions(
    index: Index, n: int, seed: int, kinds: Sequence[str] = tuple(KINDS)
) -> list[EvaluationQuestion]:
    """Make at most `n` questions from the facts that an index states, without a model.

    Equal seeds give equal questions. Each kind has its share of `KINDS`; if a kind has too few
    facts, the other kinds get more. No document is in both splits. Raises `SettingsError` for an
    unknown kind, and if the index states no fact that a question can be made of.
    """
    check_kinds(kinds)
    chosen = _choose(draft_questions(index, Corpus(index), n, seed, kinds), n)
    if not chosen:
        raise SettingsError(
            "No question can be made from this index: it has no English sentence that states a "
            "fact about a name in plain words, and no theme of several documents. A chat model of "
            "the settings can make questions from other texts: name it with --model."
        )
    numbers: Counter[str] = Counter()
    questions = []
    for split, draft in chosen:
        numbers[draft.kind] += 1
        questions.append(draft.question(numbers[draft.kind], split))
    return questions


def check_kinds(kinds: Sequence[str]) -> None:
    """Raise `SettingsError` for an unknown kind of question."""
    for kind in kinds:
        if kind not in KINDS:
            raise SettingsError(f"There is no kind of question {kind!r}, but {', '.join(KINDS)}.")


def draft_questions(
    index: Index, corpus: Corpus, n: int, seed: int, kinds: Sequence[str]
) -> dict[str, dict[str, list[Draft]]]:
    """Draft at most `n` questions of each kind and split."""
    sentences = read_sentences(index)
    # Over both splits: a question has one answer in the whole index.
    facts = drafts.drop_conflicts(find_facts(sentences))
    themes = list_themes(index)
    found: dict[str, dict[str, list[Draft]]] = {kind: {} for kind in kinds}
    for split in SPLITS:
        inside = [fact for fact in facts if split_of(fact.span.document, seed) == split]
        said = [one for one in sentences if split_of(one.span.document, seed) == split]
        mixer = random.Random(f"{seed} {split}")
        mixer.shuffle(inside)
        for kind in kinds:
            if kind == "whole-corpus":
                mixer.shuffle(said)
                drafted = _draft_about_everything(inside, said, themes)
            else:
                drafted = _draft(kind, inside, corpus, mixer)
            found[kind][split] = _drop_ambiguous(drafted, n)
    if "whole-corpus" in found:
        found["whole-corpus"] = _separate(found["whole-corpus"], seed)
    return found


def _separate(drafts_of: Mapping[str, Sequence[Draft]], seed: int) -> dict[str, list[Draft]]:
    """Keep a question that both splits have in one of them."""
    texts = [{fold(draft.text) for draft in drafts} for drafts in drafts_of.values()]
    shared = set.intersection(*texts)
    return {
        split: [
            draft
            for draft in drafts
            if fold(draft.text) not in shared or split_of(fold(draft.text), seed) == split
        ]
        for split, drafts in drafts_of.items()
    }


def split_of(document: str, seed: int) -> str:
    """Return the split of a document: it does not depend on the other documents."""
    digest = blake2b(f"{seed} {document}".encode(), digest_size=2).digest()
    return SPLITS[digest[0] % len(SPLITS)]


def _draft(
    kind: str, facts: Sequence[Fact], corpus: Corpus, mixer: random.Random
) -> Iterator[Draft]:
    """Draft the questions of a kind from the facts of a split."""
    if kind == "local":
        for fact in facts:
            if draft := drafts.ask_for_place(fact):
                yield draft
            if corpus.is_clear(fact):
                yield drafts.ask_for_subject(fact)
    elif kind == "temporal":
        yield from filter(None, map(drafts.ask_for_time, facts))
    elif kind == "two-hop":
        for first in filter(corpus.is_clear, facts[:MAX_PAIRED_FACTS]):
            for second in facts[:MAX_PAIRED_FACTS]:
                if first.span != second.span:
                    yield from drafts.ask_in_two_hops(first, second)
    elif kind == "comparison":
        dated = [fact for fact in facts if fact.time and drafts.ask_for_time(fact)]
        for first, second in combinations(dated[:MAX_PAIRED_FACTS], 2):
            if draft := drafts.compare_times(first, second):
                yield draft
    else:
        exchanged = drafts.exchange_names(facts, corpus.holds, mixer.shuffle)
        others = sorted({title for fact in facts for title in fact.named})
        mixer.shuffle(others)
        yield from alternate(exchanged, drafts.exchange_objects(facts, others, corpus.are_related))


def _draft_about_everything(
    facts: Sequence[Fact], sentences: Sequence[Sentence], themes: Sequence[str]
) -> Iterator[Draft]:
    """Draft questions about themes, pairs of names and single names, in turn."""
    uses = Counter(one.title for sentence in sentences for one in sentence.mentions)
    broad = {name for name, number in uses.items() if number > MAX_MENTIONS}
    return alternate(
        ask_about_themes(sentences, themes),
        ask_about_pairs(sentences),
        drafts.ask_about_everything(facts, broad),
    )


def alternate(*sources: Iterator[T]) -> Iterator[T]:
    """Yield one item of each source in turn, until all are at their end."""
    remaining = list(sources)
    while remaining:
        for source in list(remaining):
            if (item := next(source, None)) is not None:
                yield item
            else:
                remaining.remove(source)


def _drop_ambiguous(found: Iterable[Draft], most: int) -> list[Draft]:
    """Keep one draft of each question, at most `most`; drop those with different answers."""
    by_text: dict[str, list[Draft]] = defaultdict(list)
    for draft in found:
        by_text[fold(draft.text)].append(draft)
        if len(by_text) >= most:
            break
    kept = []
    for same in by_text.values():
        # The last answer to a question for a time is the year.
        at = -1 if same[0].kind == "temporal" else 0
        if len({draft.answers[at] if draft.answers else "" for draft in same}) == 1:
            kept.append(same[0])
    return kept


def _choose(found: dict[str, dict[str, list[Draft]]], n: int) -> list[tuple[str, Draft]]:
    """Choose drafts by the shares of their kinds, half of each split; no fact is used up first."""
    total = sum(KINDS[kind] for kind in found)
    wanted = {kind: max(1, round(n * KINDS[kind] / total)) for kind in found}
    chosen: dict[str, list[tuple[str, Draft]]] = {}
    spare: list[tuple[str, Draft]] = []
    if "unanswerable" in found and len(found) > 1:
        # They are easy to make: more than their share of the others would be too many.
        n_others = sum(
            len(drafts)
            for kind, of in found.items()
            for drafts in of.values()
            if kind != "unanswerable"
        )
        share = KINDS["unanswerable"]
        most = max(1, round(n_others * share / (total - share)))
        wanted["unanswerable"] = min(wanted["unanswerable"], most)
    for kind, of_kind in found.items():
        queues = {split: spread(of_split) for split, of_split in of_kind.items()}
        mixed: list[tuple[str, Draft]] = []
        for place in range(max(map(len, queues.values()), default=0)):
            mixed += [(s, queue[place]) for s, queue in queues.items() if place < len(queue)]
        chosen[kind], rest = mixed[: wanted[kind]], mixed[wanted[kind] :]
        spare += rest if kind != "unanswerable" or len(found) == 1 else []
    n_chosen = sum(map(len, chosen.values()))
    for split, draft in spare[: max(0, n - n_chosen)]:
        chosen[draft.kind].append((split, draft))
    return [one for of_kind in chosen.values() for one in of_kind][:n]


def spread(found: Sequence[Draft]) -> list[Draft]:
    """Order drafts so that each sentence is used once before a sentence is used again."""
    uses: Counter[str] = Counter()
    ranked = []
    for place, draft in enumerate(found):
        keys = [span.text for span in draft.spans]
        ranked.append((max(uses[key] for key in keys), place, draft))
        uses.update(keys)
    return [draft for *_, draft in sorted(ranked, key=lambda one: one[:2])]
