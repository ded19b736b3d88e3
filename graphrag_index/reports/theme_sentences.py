"""The choice of the sentences of a report on a theme.

The beginning of a text says best what it is about. So a report on a theme begins with the first
sentences of its most central documents, those with most words and names of the theme, and each
finding is one further document with what others say on the same thing.
"""

import math
from collections.abc import Collection, Mapping, Sequence

from graphrag_index.reports.centrality import is_lead
from graphrag_index.reports.chosen_statements import Evidence
from graphrag_index.reports.extractive import MAX_DISTANCE, SentencePool
from graphrag_index.reports.report_titles import Headings, contains
from graphrag_index.reports.theme_titles import ThemeName

# Maximum number of sentences in a summary, each of another document, and of a finding.
MAX_THEME_SENTENCES, MAX_EVENT_SENTENCES = 3, 2
# What a sentence without a term of the theme counts, what a term counts that another sentence of
# the report has, and what one in other first sentences of the document counts.
BASE, COVERED_FACTOR, DOCUMENT_FACTOR = 0.2, 0.4, 0.5
# Factor of a sentence that is not at the start of its document.
LATER_FACTOR = 0.5
# Factor of a sentence without a term of the theme.
OTHER_FACTOR = 0.4
# A longer or shorter sentence counts less, by the square root of the ratio of the lengths.
MIN_CHARACTERS, MAX_CHARACTERS = 80, 220
# Minimum share of the distinctive words of the shorter of two sentences on the same event that both
# have.
MIN_SAME_SHARE = 0.3
# Minimum rating of the first sentence of a finding, as a share of the best, and of one of the
# summary by all its terms.
MIN_RATING_SHARE, MIN_SUMMARY_SHARE = 0.15, 0.4
# Factor of a sentence without a name.
NAMELESS_FACTOR = 0.7
# Minimum wording of a further sentence of a finding.
MIN_RELATED_WORDING = 0.7


class ThemeSentences:
    """The candidate sentences of a report on a theme, with the terms of the theme in them."""

    def __init__(
        self, theme: ThemeName, evidence: Sequence[Evidence], headlines: Mapping[int, str]
    ) -> None:
        self._has_title = bool(theme.title)
        self._terms = {
            one: frozenset(
                at
                for at, term in enumerate(theme.terms)
                if term in one.words or contains(one.text, term)
            )
            for one in evidence
        }
        self._of_document: dict[int, frozenset[int]] = {
            document: frozenset(at for at, term in enumerate(theme.terms) if contains(line, term))
            for document, line in headlines.items()
        }
        for one in filter(is_lead, evidence):
            known = self._of_document.get(one.document, frozenset())
            self._of_document[one.document] = known | self._terms[one]

    def choose(
        self, pool: SentencePool, headings: Headings, max_findings: int, max_sentences: int
    ) -> tuple[list[Evidence], list[tuple[str, list[Evidence]]]]:
        """Choose the sentences of the summary, and the heading and sentences of each finding.

        A theme without a title has no summary: its documents are on different subjects.
        """
        covered, used = set[int](), set[int]()
        summary: list[Evidence] = []
        n_summary = min(MAX_THEME_SENTENCES, max_sentences // 2) if self._has_title else 0
        best = max((self._rate(one, ()) for one in self._terms), default=0.0)
        least = MIN_RATING_SHARE * best if self._has_title else 0.0
        while len(summary) < n_summary:
            first = self._take_best(pool, covered, used, summary, least, MIN_SUMMARY_SHARE * best)
            if first is None:
                break
            summary.append(first)
        findings: list[tuple[str, list[Evidence]]] = []
        left, seeds = max_sentences - len(summary), [*summary]
        while len(findings) < max_findings and left > 0:
            first = self._take_best(pool, covered, used, seeds, least)
            if first is None:
                break
            seeds.append(first)
            said = [first, *self._take_related(pool, first, left - 1)]
            if heading := headings.compose_grouped(said):
                findings.append((heading, said))
                left -= len(said)
        return summary, findings

    def _rate(self, sentence: Evidence, covered: Collection[int]) -> float:
        """Rate a sentence by the terms of the theme in it and at the start of its document."""
        own = self._terms[sentence]
        around = self._of_document.get(sentence.document, frozenset()) - own
        rated = BASE
        for terms, factor in ((own, 1.0), (around, DOCUMENT_FACTOR)):
            for at in terms:
                rated += factor * (COVERED_FACTOR if at in covered else 1.0) / math.sqrt(1 + at)
        rated *= sentence.wording * (1.0 if is_lead(sentence) else LATER_FACTOR)
        rated *= 1.0 if own else OTHER_FACTOR
        is_named = sentence.entities or any(word[0].isupper() for word in sentence.text.split()[1:])
        rated *= 1.0 if is_named else NAMELESS_FACTOR
        n = max(len(sentence.text), 1)
        return rated * math.sqrt(min(1.0, MAX_CHARACTERS / n, n / MIN_CHARACTERS))

    def _take_best(
        self,
        pool: SentencePool,
        covered: set[int],
        used: set[int],
        others: Sequence[Evidence],
        least: float,
        least_of_all: float = 0.0,
    ) -> Evidence | None:
        """Take the best sentence of an unused document on another event than `others`.

        Its rating is at least `least`, and `least_of_all` with the terms in `covered`.
        """
        said = [pool.find_words(one.text) for one in others]
        rated = [
            (-self._rate(one, covered), at, one)
            for at, one in enumerate(pool.sentences)
            if one.document not in used and self._rate(one, ()) >= least_of_all
        ]
        for rating, _, one in sorted(rated, key=lambda row: row[:2]):
            if -rating < least:
                break
            words = pool.find_words(one.text)
            is_new = all(
                len(words & other) < MIN_SAME_SHARE * min(len(words), len(other)) for other in said
            )
            if is_new and pool.take_if_new(one):
                covered |= self._terms[one]
                used.add(one.document)
                return one
        return None

    def _take_related(self, pool: SentencePool, first: Evidence, n: int) -> list[Evidence]:
        """Take further sentences on the same thing, up to the maximum of a finding."""
        words = pool.find_words(first.text)
        related = [
            one
            for one in pool.sentences
            if one.wording >= MIN_RELATED_WORDING and self._is_related(pool, first, words, one)
        ]
        return pool.take_sentences(min(n, MAX_EVENT_SENTENCES - 1), set(), related)

    def _is_related(
        self, pool: SentencePool, first: Evidence, words: frozenset[str], other: Evidence
    ) -> bool:
        """Return whether a sentence follows the first one, or tells of the same event elsewhere."""
        if other.document == first.document:
            return 0 < other.place[0] - first.place[0] <= MAX_DISTANCE
        others = pool.find_words(other.text)
        return len(words & others) >= MIN_SAME_SHARE * min(len(words), len(others))
