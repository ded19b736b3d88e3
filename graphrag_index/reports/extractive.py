"""Extractive reports: sentences from text units with citations; no model is needed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphrag_index.reports.report import Finding, format_citation, join_titles
from graphrag_index.text.sentences import are_near_duplicates, distinctive_words

# Maximum number of sentences in a summary; the next constant is for each finding.
MAX_SUMMARY_SENTENCES = 2
MAX_FINDING_SENTENCES = 3
# Maximum number of entities in a heading, besides the subject of the finding.
MAX_ADDED_TITLES = 2


@dataclass(frozen=True, eq=False)
class Evidence:
    """A sentence that mentions entities of the community.

    `entities` are the numbers of these entities, `relationships` of those between them. `source`
    is the number of the text unit.
    """

    text: str
    entities: Sequence[int]
    relationships: Sequence[int]
    source: int
    score: float


def write_findings(
    evidence: Sequence[Evidence],
    weight: Mapping[int, float],
    titles: Mapping[int, str],
    main: Sequence[int],
    max_findings: int,
    max_sentences: int,
) -> tuple[str, tuple[Finding, ...]]:
    """Choose the sentences of the summary and of each finding.

    The sentences of the summary together mention the members with the largest weights. The
    subject of a finding is one member, and its sentences mention this member. Findings are sorted
    by descending weight of the subject. No sentence is used twice, and no near duplicate of a
    used sentence is used. A heading contains the subject and members that its sentences mention.
    It omits members in the title or in an earlier heading, so that headings are unique.

    `evidence` are candidate sentences, best first; `weight` maps a member to its centrality,
    `titles` to its title; `main` are the members in the report's title.
    """
    pool = _SentencePool(evidence, weight)
    summary = pool.take_sentences(min(MAX_SUMMARY_SENTENCES, max_sentences), set())
    findings: list[Finding] = []
    named = set(main)
    left = max_sentences - len(summary)
    for subject in sorted(pool.mentioned, key=lambda entity: (-weight[entity], entity)):
        if len(findings) == max_findings or left <= 0:
            break
        sentences = pool.take_sentences(
            min(MAX_FINDING_SENTENCES, left), {subject}, pool.mentioned[subject]
        )
        if not sentences:
            continue
        left -= len(sentences)
        named.add(subject)
        # Add the members that the finding mentions most often to the heading.
        n_mentions = Counter(entity for sentence in sentences for entity in sentence.entities)
        companions = sorted(
            n_mentions.keys() - named, key=lambda e: (-n_mentions[e], -weight[e], e)
        )[:MAX_ADDED_TITLES]
        named.update(companions)
        heading = join_titles([titles[entity] for entity in (subject, *companions)])
        if list(main) == [subject] and not companions:
            # Avoid a heading that is equal to the title of the report.
            heading = f"More on {heading}"
        sentences.sort(key=lambda sentence: sentence.source)
        findings.append(Finding(heading, _cite_sentences(sentences)))
    return _cite_sentences(summary), tuple(findings)


class _SentencePool:
    """A pool of sentences, which never returns a sentence twice, or a near duplicate of one."""

    def __init__(self, evidence: Sequence[Evidence], weight: Mapping[int, float]) -> None:
        self._weight = weight
        best_of_text = {sentence.text: sentence for sentence in reversed(evidence)}
        self._sentences = list(reversed(best_of_text.values()))
        self.mentioned: dict[int, list[Evidence]] = {}
        for sentence in self._sentences:
            for entity in sentence.entities:
                self.mentioned.setdefault(entity, []).append(sentence)
        self._taken: set[Evidence] = set()
        self._words: list[frozenset[str]] = []

    def take_sentences(
        self, n: int, covered: set[int], candidates: Sequence[Evidence] | None = None
    ) -> list[Evidence]:
        """Take up to n sentences; each time, take the sentence with the highest gain.

        The gain is the score of the sentence plus the weights of its entities that are not in
        `covered`. The entities of the chosen sentences are added to `covered`.
        """
        weight, taken = self._weight, self._taken
        chosen: list[Evidence] = []
        while len(chosen) < n:
            best, best_gain = None, -1.0
            for sentence in self._sentences if candidates is None else candidates:
                if sentence in taken:
                    continue
                gain = sentence.score
                for entity in sentence.entities:
                    if entity not in covered:
                        gain += weight[entity]
                if gain > best_gain:
                    best, best_gain = sentence, gain
            if best is None:
                break
            taken.add(best)
            words = distinctive_words(best.text)
            if not any(are_near_duplicates(words, used) for used in self._words):
                self._words.append(words)
                covered.update(best.entities)
                chosen.append(best)
        return chosen


def _cite_sentences(sentences: Sequence[Evidence]) -> str:
    """Join sentences; after each, cite its entities, their relationships and its text unit."""
    cited = []
    for sentence in sentences:
        rows = {
            "Entities": sentence.entities,
            "Relationships": sentence.relationships,
            "Sources": (sentence.source,),
        }
        cited.append(f"{sentence.text} {format_citation(rows)}")
    return " ".join(cited)
