"""The choice of the sentences of a report: those of the summary, and those of each finding.

A finding is about one member (entity of the community) or, in a theme, about one document. No
sentence is used twice, and none that has most words in common with a used one.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from graphrag_nlp.text.report_statements import SourceSpan, StatementWords, choose_spans
from graphrag_nlp.text.sentences import distinctive_words

# Maximum number of sentences in a summary, in the summary of a theme, and in a finding.
MAX_SUMMARY_SENTENCES, MAX_THEME_SENTENCES, MAX_FINDING_SENTENCES = 2, 3, 3
# Maximum share of the distinctive words of a chosen sentence that a longer chosen one has, too.
MAX_COMMON_WORD_SHARE = 0.6
# Two sentences belong together if their starts are at most this many characters apart, or if they
# share this many distinctive words (more than a name has) and this share of the shorter one's.
MAX_DISTANCE, MIN_COMMON_WORDS, MIN_COMMON_WORD_SHARE = 600, 3, 0.2
# Minimum score of the first sentence of a finding, as a share of the best of the report, and of its
# further sentences, as a share of the first.
MIN_SCORE_SHARE, MIN_RELATED_SHARE = 0.2, 0.5
# Minimum number of documents at which the share of each document is limited.
MIN_DOCUMENTS = 3
# Maximum number of sentences that are compared with a chosen one.
MAX_COMPARED = 20


class Sentence:
    """A candidate sentence of a report.

    `row` is its row among those of the shard, `entities` are the members that it mentions, and
    `terms` its words that set the report apart, best first.
    """

    __slots__ = (
        *("_words", "document", "entities", "place", "row", "score", "source", "terms", "text"),
    )

    def __init__(
        self,
        row: int,
        text: str,
        entities: Sequence[int],
        terms: str,
        source: int,
        document: int,
        start_char: int,
        end_char: int,
        score: float,
    ) -> None:
        self.row, self.text, self.entities, self.terms = row, text, entities, terms.split()
        self.source, self.document, self.place = source, document, (start_char, end_char)
        self.score = score
        self._words: frozenset[str] | None = None

    @property
    def words(self) -> frozenset[str]:
        """The distinctive words of the text."""
        if self._words is None:
            self._words = distinctive_words(self.text)
        return self._words

    @property
    def span(self) -> SourceSpan:
        return SourceSpan(self.source, self.document, *self.place)

    def belongs_with(self, other: "Sentence") -> bool:
        """Return whether two sentences are near each other in a document, or share enough words."""
        is_same = self.document == other.document
        if is_same and abs(self.place[0] - other.place[0]) <= MAX_DISTANCE:
            return True
        least = MIN_COMMON_WORD_SHARE * min(len(self.words), len(other.words))
        return len(self.words & other.words) >= max(MIN_COMMON_WORDS, least)


class Limits(NamedTuple):
    """The settings of the step `create_community_reports_nlp`."""

    max_findings: int
    max_sentences: int
    max_document_share: float


class Finding(NamedTuple):
    """Sentences about one member, the `subject`, or about one document of a theme (-1)."""

    subject: int
    sentences: Sequence[Sentence]


class Chosen(NamedTuple):
    """The sentences of the summary, and the findings."""

    summary: Sequence[Sentence]
    findings: Sequence[Finding]


def group_by_member(ranked: Sequence[Sentence]) -> dict[int, list[Sentence]]:
    """Map each member to the sentences that mention it."""
    mentioned: dict[int, list[Sentence]] = defaultdict(list)
    for one in ranked:
        for entity in one.entities:
            mentioned[entity].append(one)
    return mentioned


def choose_sentences(
    ranked: Sequence[Sentence],
    mentioned: Mapping[int, Sequence[Sentence]],
    weight: Mapping[int, float],
    limits: Limits,
    *,
    is_theme: bool,
) -> Chosen:
    """Choose the sentences of a report from its candidates, best first.

    `mentioned` is the result of `group_by_member`, and `weight` is that of each member. If the
    candidates are from at least `MIN_DOCUMENTS` documents, one document has at most the share
    `max_document_share` of the chosen sentences, or one.
    """
    sizes = Counter(one.document for one in ranked).values()
    is_limited = len(sizes) >= MIN_DOCUMENTS
    limit, most = limits.max_sentences, limits.max_sentences
    while is_limited and limit > 1 and limit > limits.max_document_share * most:
        limit -= 1
        most = min(limits.max_sentences, sum(min(size, limit) for size in sizes))
    while True:
        pool = _Pool(ranked, mentioned, limit)
        chosen = _choose(pool, weight, limits, is_theme)
        allowed = int(limits.max_document_share * pool.n_used.total())
        if not is_limited or limit == 1 or max(pool.n_used.values(), default=0) <= allowed:
            return chosen
        limit = max(1, min(limit - 1, allowed))


def _choose(pool: "_Pool", weight: Mapping[int, float], limits: Limits, is_theme: bool) -> Chosen:
    most = MAX_THEME_SENTENCES if is_theme else MAX_SUMMARY_SENTENCES
    n_summary = max(1, min(most, limits.max_sentences // 2))
    summary: list[Sentence] = []
    # Documents of which a theme has a sentence, or members that are the subject of a finding.
    used: set[int] = set()
    for one in pool.ranked:
        if len(summary) == n_summary:
            break
        if not (is_theme and one.document in used) and pool.take(one):
            summary.append(one)
            if is_theme:
                used.add(one.document)
    if len({one.document for one in summary}) == 1:
        summary.sort(key=lambda one: one.place)
    findings: list[Finding] = []
    left = limits.max_sentences - len(summary)
    for first in pool.ranked:
        is_good = first.score >= MIN_SCORE_SHARE * pool.ranked[0].score
        if len(findings) == limits.max_findings or left <= 0 or not is_good:
            break
        subject, heaviest = -1, 0.0
        for entity in first.entities:
            if weight[entity] > heaviest and entity not in used:
                subject, heaviest = entity, weight[entity]
        key = first.document if is_theme else subject
        if key in used or (subject < 0 and not is_theme) or not pool.take(first):
            continue
        used.add(key)
        said = [first, *pool.take_related(first, subject, min(left, MAX_FINDING_SENTENCES) - 1)]
        left -= len(said)
        said.sort(key=lambda one: (one.document != first.document, one.document, one.place))
        findings.append(Finding(subject, said))
    return Chosen(summary, findings)


class _Pool:
    """Ranked sentences to choose from: none is taken twice, or if it says nearly the same."""

    def __init__(
        self,
        ranked: Sequence[Sentence],
        mentioned: Mapping[int, Sequence[Sentence]],
        document_limit: int,
    ) -> None:
        self.ranked, self._mentioned = ranked, mentioned
        self._document_limit = document_limit
        self._seen: set[Sentence] = set()
        self._taken: list[frozenset[str]] = []
        self.n_used: Counter[int] = Counter()

    def take(self, sentence: Sentence) -> bool:
        """Take a sentence, and return whether it may be used."""
        if sentence in self._seen or self.n_used[sentence.document] >= self._document_limit:
            return False
        self._seen.add(sentence)
        own, size = sentence.words, len(sentence.words)
        for other in self._taken:
            if len(own & other) > MAX_COMMON_WORD_SHARE * min(size, len(other)):
                return False
        self._taken.append(own)
        self.n_used[sentence.document] += 1
        return True

    def take_related(self, first: Sentence, subject: int, n: int) -> list[Sentence]:
        """Take up to `n` more sentences about a member that belong together with the first one."""
        related: list[Sentence] = []
        for one in self._mentioned[subject] if n > 0 and subject >= 0 else ():
            if len(related) == n or one.score < MIN_RELATED_SHARE * first.score:
                break
            if one not in self._seen and one.belongs_with(first) and self.take(one):
                related.append(one)
        return related


class StatementSources:
    """Sentences of several documents that may state the same as a sentence of a report."""

    def __init__(
        self, mentioned: Mapping[int, Sequence[Sentence]], titles: Mapping[int, str]
    ) -> None:
        self._mentioned, self._titles = mentioned, titles
        self._names: dict[int, frozenset[str]] = {}

    def find(self, sentence: Sentence) -> tuple[int, list[int]]:
        """Return the number of documents that state a sentence, and the rows of such sentences.

        The first row is that of the sentence. The others mention the same members, and state the
        same in other documents.
        """
        members = set(sentence.entities)
        candidates: Sequence[Sentence] = min(
            (self._mentioned[one] for one in members), key=len, default=()
        )
        # A quick first test: a sentence that states the same has more than half of the words.
        half = len(sentence.words) / 2
        others = [
            one
            for one in candidates[:MAX_COMPARED]
            if one.document != sentence.document
            and members.issubset(one.entities)
            and len(sentence.words & one.words) >= half
        ]
        if not others:
            return 1, [sentence.row]
        for one in members - self._names.keys():
            self._names[one] = distinctive_words(self._titles[one])
        names = frozenset().union(*map(self._names.__getitem__, members))
        words = StatementWords.split(sentence.words, names)
        found = {sentence.span: (math.inf, sentence.row)}
        for other in others:
            if score := words.score(other.words):
                found[other.span] = score, other.row
        n_documents, spans = choose_spans((score, span) for span, (score, _) in found.items())
        return n_documents, [found[span][1] for span in spans]
