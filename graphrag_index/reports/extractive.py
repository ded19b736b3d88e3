"""Extractive reports: the choice of their sentences; no model is needed."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date

from graphrag_index.reports.centrality import find_lead
from graphrag_index.reports.chosen_statements import SUMMARY, Choice, Evidence
from graphrag_index.reports.document_groups import are_mixed
from graphrag_index.reports.document_share import MIN_DOCUMENTS, limit_document
from graphrag_index.reports.report_titles import Headings, Names
from graphrag_index.reports.statements import StatementWords, choose_spans
from graphrag_index.reports.theme_terms import Term
from graphrag_nlp.text.sentences import distinctive_words

# Maximum number of sentences in a summary; the next constants are for each finding.
MAX_SUMMARY_SENTENCES = 2
MAX_FINDING_SENTENCES = 3
# Gain of a member that no earlier sentence mentions, as a share of its weight.
NEW_NAME_FACTOR = 0.5
# Maximum number of members in a sentence that count in full: more are probably a list.
MAX_NEW_NAMES = 4
# Numbers of sentences of a chronology, and maximum number of days from its first to its last date.
MIN_DATES, MAX_DATES, MAX_DAYS = 3, 5, 30 * 365
# Maximum share of the distinctive words of the shorter of two sentences that both have.
MAX_COMMON_WORD_SHARE = 0.6
# Two sentences are on one thing if they are within so many characters of a document, or have words
# in common besides the subject: one in a document; in two, so many, and this share of the shorter.
MAX_DISTANCE, MIN_COMMON_WORDS, MIN_COMMON_WORD_SHARE = 600, 2, 0.2
# Minimum number of members that a sentence mentions in a document on another subject.
MIN_MEMBERS_ELSEWHERE = 2
# Minimum wording of the best sentence of a finding; and if a smaller share of sentences is clear.
MIN_FINDING_WORDING, MIN_UNCLEAR_WORDING, MIN_CLEAR_SHARE = 0.5, 0.35, 0.5
# Maximum number of findings of a report on few members, per member that its sentences mention.
FINDINGS_PER_MEMBER = 0.5


def choose_statements(
    evidence: Sequence[Evidence],
    names: Names,
    terms: Sequence[Term],
    max_findings: int,
    max_sentences: int,
    max_document_share: float = 1.0,
    language: str = "en",
    groups: Sequence[Collection[int]] = (),
    centrality: Sequence[float] = (),
    choose: "Choose | None" = None,
) -> tuple[list[str], list[Choice]]:
    """Choose the headings of the findings, and the sentences of the summary and of each finding.

    If the candidates are from at least `MIN_DOCUMENTS` documents, one document has at most the
    share `max_document_share` of the sentences.

    The sentences of the summary are central, and together mention the members with the largest
    weights. The subject of a finding is one member, and its sentences mention this member and are
    on one thing (see `SentencePool.are_on_one_thing`). Findings are sorted by descending weight of
    the subject; second ones of the subjects may follow. The last one is a chronology, if the
    sentences about a member have several dates. No sentence is used twice, and no sentence that
    has most words in common with a used one. A heading has a term of its sentences, the subject and
    members that its sentences mention. It omits what is in the title or in an earlier heading, so
    that headings are unique.

    `evidence` are candidate sentences, best first, with their `centrality` as a factor, if it is
    known; `terms` are the terms of the report. `groups` are the groups of documents of one subject:
    the summary is on the first. If none is large enough, there is no summary, and each finding is
    on one group. `choose` chooses the sentences in another way.
    """
    sizes = Counter({s.text: s.document for s in evidence}.values())
    limit = limit_document(sizes.values(), max_sentences, max_document_share)
    words: dict[str, frozenset[str]] = {}
    while True:
        pool = SentencePool(evidence, names, limit, words, centrality)
        headings = Headings(names, terms, language)
        if choose:
            summary, findings = choose(pool, headings, max_findings, max_sentences)
        else:
            summary, findings = _choose_sentences(
                pool, headings, max_findings, max_sentences, groups
            )
        # Near repeats are left out, so that fewer sentences are used than the limit assumes.
        used = pool.n_used
        allowed = int(max_document_share * used.total())
        if len(sizes) < MIN_DOCUMENTS or limit == 1 or max(used.values(), default=0) <= allowed:
            break
        limit = max(1, min(limit - 1, allowed))
    parts = [(SUMMARY, summary), *((at, chosen) for at, (_, chosen) in enumerate(findings))]
    sources = _StatementSources(evidence, names.titles, words)
    choices = [Choice(at, *sources.find(one)) for at, chosen in parts for one in chosen]
    return [heading for heading, _ in findings], choices


def _group_by_member(evidence: Sequence[Evidence]) -> dict[int, list[Evidence]]:
    """Map each member to the sentences that mention it."""
    mentioned: dict[int, list[Evidence]] = {}
    for sentence in evidence:
        for entity in sentence.entities:
            mentioned.setdefault(entity, []).append(sentence)
    return mentioned


class _StatementSources:
    """The sentences of several documents that may state what a sentence of a report states.

    `words` keeps the distinctive words of texts.
    """

    def __init__(
        self,
        evidence: Sequence[Evidence],
        titles: Mapping[int, str],
        words: dict[str, frozenset[str]],
    ) -> None:
        self._positions = {sentence: at for at, sentence in enumerate(evidence)}
        # Without another document, nothing is searched.
        is_searched = len({sentence.document for sentence in evidence}) > 1
        self._mentioned = _group_by_member(evidence) if is_searched else {}
        self._titles, self._words = titles, words

    def find(self, sentence: Evidence) -> tuple[int, list[int]]:
        """Return the number of documents that state a sentence, and the positions of sentences.

        The first position is that of the sentence. The others mention the same members, and state
        the same in other documents.
        """
        members = set(sentence.entities)
        known = (self._mentioned.get(entity, ()) for entity in members)
        candidates: Sequence[Evidence] = min(known, key=len, default=())
        others = [
            other
            for other in candidates
            if other.document != sentence.document and members.issubset(other.entities)
        ]
        if not others:
            return 1, [self._positions[sentence]]
        names = frozenset().union(*(self._find_words(self._titles[entity]) for entity in members))
        words = StatementWords.split(self._find_words(sentence.text), names)
        found = {sentence.span: (math.inf, self._positions[sentence])}
        for other in others:
            if score := words.score(self._find_words(other.text)):
                found[other.span] = score, self._positions[other]
        n_documents, spans = choose_spans((score, span) for span, (score, _) in found.items())
        return n_documents, [found[span][1] for span in spans]

    def _find_words(self, text: str) -> frozenset[str]:
        return _find_words_once(text, self._words)


def _find_words_once(text: str, known: dict[str, frozenset[str]]) -> frozenset[str]:
    """Return the distinctive words of a text, and add them to the `known` ones."""
    words = known.get(text)
    if words is None:
        words = known[text] = distinctive_words(text)
    return words


def _choose_sentences(
    pool: "SentencePool",
    headings: Headings,
    max_findings: int,
    max_sentences: int,
    groups: Sequence[Collection[int]],
) -> tuple[list[Evidence], list[tuple[str, list[Evidence]]]]:
    """Choose the sentences of the summary, and the heading and sentences of each finding."""
    if are_mixed(groups):
        return [], _choose_by_group(pool, headings, max_findings, max_sentences, groups)
    main = pool.find_sentences(groups[0]) if groups else None
    pool.keep_on_subject(groups[0] if groups else ())
    n_summary = min(MAX_SUMMARY_SENTENCES, max_sentences)
    first = find_lead(main or ()) if max_sentences > MAX_SUMMARY_SENTENCES else None
    lead = [first] if first and pool.take_if_new(first) else []
    n_summary += bool(lead and not lead[0].entities)
    summary = [*lead, *pool.take_summary(n_summary - len(lead), main)]
    if not all(sentence.entities for sentence in summary):
        # The start of a document leads to its other sentences.
        summary.sort(key=lambda sentence: (sentence.document, sentence.place))
    left = max_sentences - len(summary)
    if len(groups) == 1:
        # Nothing but this subject is left to tell.
        max_findings = min(max_findings, max(1, int(FINDINGS_PER_MEMBER * len(pool.subjects))))
    chronology = pool.take_chronology(min(MAX_DATES, left // 2)) if max_findings > 1 else []
    left -= len(chronology)
    findings: list[tuple[str, list[Evidence]]] = []
    min_wording = MIN_FINDING_WORDING if pool.is_clear() else MIN_UNCLEAR_WORDING
    for subject in (*pool.subjects, *pool.subjects):
        if len(findings) + bool(chronology) == max_findings or left <= 0:
            break
        n = min(MAX_FINDING_SENTENCES, left)
        sentences = pool.take_on_one_thing(n, pool.mentioned[subject], {subject})
        # What needs the text around it is no finding beside clear sentences.
        is_clear = any(one.wording >= min_wording for one in sentences)
        heading = headings.compose(subject, sentences) if is_clear else ""
        # A second finding of a subject may have nothing that an earlier heading has not.
        if not heading or heading in (other for other, _ in findings):
            continue
        left -= len(sentences)
        sentences.sort(key=lambda sentence: sentence.source)
        findings.append((heading, sentences))
    if chronology:
        findings.append((headings.compose_dated(chronology), chronology))
    return summary, findings


def _choose_by_group(
    pool: "SentencePool",
    headings: Headings,
    max_findings: int,
    max_sentences: int,
    groups: Sequence[Collection[int]],
) -> list[tuple[str, list[Evidence]]]:
    """Choose a finding on each group of documents: its heading and its sentences."""
    findings: list[tuple[str, list[Evidence]]] = []
    for group in groups:
        if len(findings) == max_findings or max_sentences <= 0:
            break
        n = min(MAX_FINDING_SENTENCES, max_sentences)
        own = pool.find_sentences(group)
        sentences = pool.take_on_one_thing(n, own, set(), is_summary=True)
        heading = headings.compose_grouped(sentences) if sentences else ""
        if heading:
            max_sentences -= len(sentences)
            findings.append((heading, sentences))
    return findings


# Chooses the sentences of the summary, and the heading and sentences of each finding.
Choose = Callable[
    ["SentencePool", Headings, int, int],
    tuple[list[Evidence], list[tuple[str, list[Evidence]]]],
]


class SentencePool:
    """A pool of sentences, which never returns a sentence twice, or one that says the same."""

    def __init__(
        self,
        evidence: Sequence[Evidence],
        names: Names,
        document_limit: int,
        words: dict[str, frozenset[str]],
        centrality: Sequence[float] = (),
    ) -> None:
        """Start with all sentences; `words` keeps the distinctive words of texts for later."""
        weight, self._titles = names.weight, names.titles
        self._weight, self._document_limit, self._words_of = weight, document_limit, words
        self._centrality = dict(zip(evidence, centrality, strict=False))
        best_of_text = {sentence.text: sentence for sentence in reversed(evidence)}
        self.sentences = list(reversed(best_of_text.values()))
        self.mentioned = _group_by_member(self.sentences)
        self.subjects = sorted(self.mentioned, key=lambda entity: (-weight[entity], entity))
        self._taken: set[Evidence] = set()
        # The distinctive words of the sentences that are used, and their number by document.
        self._words: dict[Evidence, frozenset[str]] = {}
        self.n_used: Counter[int] = Counter()

    def keep_on_subject(self, documents: Collection[int]) -> None:
        """Leave out what other documents say of single members, if any documents are given.

        They name a member, but are on another subject.
        """
        if documents:
            for member, said in self.mentioned.items():
                self.mentioned[member] = [
                    one
                    for one in said
                    if one.document in documents or len(set(one.entities)) >= MIN_MEMBERS_ELSEWHERE
                ]

    def find_sentences(self, documents: Collection[int]) -> list[Evidence]:
        """Return the sentences of some documents, best first."""
        return [sentence for sentence in self.sentences if sentence.document in documents]

    def is_clear(self) -> bool:
        """Return whether enough sentences on members are clear alone; those of manuals are not."""
        clear = [one.wording >= MIN_FINDING_WORDING for one in self.sentences if one.entities]
        return sum(clear) >= MIN_CLEAR_SHARE * len(clear)

    def take_summary(self, n: int, candidates: Sequence[Evidence] | None) -> list[Evidence]:
        """Take up to n central sentences, on one thing if possible."""
        own, covered = self.sentences if candidates is None else candidates, set[int]()
        chosen = self.take_on_one_thing(n, own, covered, is_summary=True)
        left = n - len(chosen)
        return [*chosen, *self.take_sentences(left, covered, own, is_summary=True)]

    def take_on_one_thing(
        self,
        n: int,
        candidates: Sequence[Evidence],
        covered: set[int],
        *,
        is_summary: bool = False,
    ) -> list[Evidence]:
        """Take up to n sentences: the best one, and others on the same thing.

        Their common members are in `covered`; see `take_sentences` for the rest.
        """
        common = frozenset().union(*(self.find_words(self._titles[one]) for one in covered))
        chosen = self.take_sentences(1, covered, candidates, is_summary=is_summary)
        if chosen and n > 1:
            [first] = chosen
            words = self.find_words(first.text) - common
            related = [
                s
                for s in candidates
                if s not in self._taken and self.are_on_one_thing(first, words, s)
            ]
            chosen += self.take_sentences(n - 1, covered, related, is_summary=is_summary)
        return chosen

    def are_on_one_thing(self, a: Evidence, words: frozenset[str], b: Evidence) -> bool:
        """Return whether two sentences stand together, or have words of the first in common."""
        is_near = a.document == b.document
        if is_near and abs(a.place[0] - b.place[0]) <= MAX_DISTANCE:
            return True
        others = self.find_words(b.text)
        n_common, n_words = len(words & others), min(len(words), len(others))
        return n_common >= (
            1 if is_near else max(MIN_COMMON_WORDS, MIN_COMMON_WORD_SHARE * n_words)
        )

    def take_sentences(
        self,
        n: int,
        covered: set[int],
        candidates: Sequence[Evidence] | None = None,
        *,
        is_summary: bool = False,
    ) -> list[Evidence]:
        """Take up to n sentences; each time, take the sentence with the highest gain.

        The gain is the score of the sentence plus the weights of its entities that are not in
        `covered`, times its wording; in a summary, it grows with the centrality of the sentence.
        The entities of the chosen sentences are added to `covered`.
        """
        weight, taken = self._weight, self._taken
        chosen: list[Evidence] = []
        while len(chosen) < n:
            best, best_gain = None, -1.0
            for sentence in self.sentences if candidates is None else candidates:
                if sentence in taken:
                    continue
                gain = sentence.score
                share = NEW_NAME_FACTOR * min(1.0, MAX_NEW_NAMES / (len(sentence.entities) or 1))
                for entity in sentence.entities:
                    if entity not in covered:
                        gain += share * weight[entity]
                gain *= sentence.wording * (
                    self._centrality.get(sentence, 1.0) if is_summary else 1.0
                )
                if gain > best_gain:
                    best, best_gain = sentence, gain
            if best is None:
                break
            if self.take_if_new(best):
                covered.update(best.entities)
                chosen.append(best)
        return chosen

    def take_chronology(self, n: int) -> list[Evidence]:
        """Take up to n sentences about one member with different dates, in order of the dates.

        The member is the main one with enough dates; without any, the result is empty.
        """
        for subject in self.subjects if n >= MIN_DATES else ():
            dated: dict[date, Evidence] = {}
            for sentence in self.mentioned[subject]:
                if sentence.days and sentence not in self._taken:
                    dated.setdefault(sentence.days[0], sentence)
            if len(dated) >= MIN_DATES:
                chosen = [s for s in dated.values() if self.take_if_new(s)][:n]
                days = [s.days[0] for s in chosen if s.days]
                if len(days) >= MIN_DATES and (max(days) - min(days)).days <= MAX_DAYS:
                    return sorted(chosen, key=lambda s: (s.days or (), s.source))
                for sentence in chosen:
                    self._taken.discard(sentence)
                    del self._words[sentence]
                    self.n_used[sentence.document] -= 1
        return []

    def take_if_new(self, sentence: Evidence) -> bool:
        """Take a sentence from the pool, and return whether the sentence may be used.

        Its document may have no more sentences than the limit, and a used one must not be alike.
        """
        self._taken.add(sentence)
        if self.n_used[sentence.document] >= self._document_limit:
            return False
        words = self.find_words(sentence.text)
        for used in self._words.values():
            if len(words & used) > MAX_COMMON_WORD_SHARE * min(len(words), len(used)):
                return False
        self._words[sentence] = words
        self.n_used[sentence.document] += 1
        return True

    def find_words(self, text: str) -> frozenset[str]:
        """Return the distinctive words of a text."""
        return _find_words_once(text, self._words_of)
