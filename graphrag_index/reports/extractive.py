"""Extractive reports: whole sentences of the evidence, with citations, without a model.

Sentences are chosen for the entities that they cover.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from graphrag_index.reports.report import Finding, join_titles
from graphrag_index.text.sentences import are_near_duplicates, telling_words

Related = Callable[[tuple[int, ...]], tuple[int, ...]]

SUMMARY_SENTENCES = 2
SENTENCES_PER_FINDING = 3
# Members in a heading besides the subject of the finding.
COMPANIONS = 2
# Ids in one citation; more are shown as "+more".
MAX_CITED = 5


@dataclass(frozen=True, eq=False)
class Evidence:
    """A sentence that mentions members of the community.

    `entities` are the numbers of these members, `source` is that of the text unit.
    """

    text: str
    entities: tuple[int, ...]
    source: int
    score: float


def write_findings(
    evidence: Sequence[Evidence],
    weight: Mapping[int, float],
    titles: Mapping[int, str],
    main: Sequence[int],
    related: Related,
    max_findings: int,
    max_sentences: int,
) -> tuple[str, tuple[Finding, ...]]:
    """Choose the sentences of the summary and of each finding.

    The sentences of the summary together cover the members with the largest weights. Each
    finding has one member as its subject, the largest weight first, and sentences that mention
    it. No sentence is used twice, nor one that is nearly the same. A heading names the subject
    and members mentioned with it that neither the report's title nor an earlier heading names,
    so that headings are unique.

    Parameters
    ----------
    evidence
        Candidates, best first.
    weight
        Centrality of each member.
    titles
        Titles of the members.
    main
        Members in the report's title.
    related
        Function that returns the numbers of the relationships among a few members.
    """
    pool = _Pool(evidence, weight)
    covered: set[int] = set()
    summary: list[Evidence] = []
    while len(summary) < min(SUMMARY_SENTENCES, max_sentences):
        best = pool.take(covered)
        if best is None:
            break
        covered.update(best.entities)
        summary.append(best)
    findings: list[Finding] = []
    named = set(main)
    left = max_sentences - len(summary)
    for focus in sorted(pool.mentioned, key=lambda entity: (-weight[entity], entity)):
        if len(findings) == max_findings or left <= 0:
            break
        seen = {focus}
        sentences: list[Evidence] = []
        while len(sentences) < min(SENTENCES_PER_FINDING, left):
            best = pool.take(seen, about=focus)
            if best is None:
                break
            seen.update(best.entities)
            sentences.append(best)
        if sentences:
            left -= len(sentences)
            named.add(focus)
            companions = _companions(sentences, weight, named)
            named.update(companions)
            heading = join_titles([titles[entity] for entity in (focus, *companions)])
            if list(main) == [focus] and not companions:
                # The title of the report already names this only member.
                heading = f"More on {heading}"
            sentences.sort(key=lambda sentence: sentence.source)
            findings.append(Finding(heading, _cited(sentences, related)))
    return _cited(summary, related), tuple(findings)


class _Pool:
    """The unused sentences, without near duplicates of the used ones."""

    def __init__(self, evidence: Sequence[Evidence], weight: Mapping[int, float]) -> None:
        self.weight = weight
        best_of_text = {sentence.text: sentence for sentence in reversed(evidence)}
        self.sentences = list(reversed(best_of_text.values()))
        self.mentioned: dict[int, list[Evidence]] = {}
        for sentence in self.sentences:
            for entity in sentence.entities:
                self.mentioned.setdefault(entity, []).append(sentence)
        self.taken: set[Evidence] = set()
        self.words: list[frozenset[str]] = []

    def take(self, covered: Collection[int], about: int | None = None) -> Evidence | None:
        """Take the sentence with the highest gain: its score and the weights of new members."""
        weight, taken = self.weight, self.taken
        candidates = self.sentences if about is None else self.mentioned[about]
        while True:
            best, best_gain = None, -1.0
            for sentence in candidates:
                if sentence in taken:
                    continue
                gain = sentence.score
                for entity in sentence.entities:
                    if entity not in covered:
                        gain += weight[entity]
                if gain > best_gain:
                    best, best_gain = sentence, gain
            if best is None:
                return None
            taken.add(best)
            words = telling_words(best.text)
            if not any(are_near_duplicates(words, used) for used in self.words):
                self.words.append(words)
                return best


def _companions(
    sentences: Sequence[Evidence], weight: Mapping[int, float], named: Collection[int]
) -> list[int]:
    """Return the members that a finding mentions most, without those in earlier headings."""
    spoken = Counter(entity for sentence in sentences for entity in sentence.entities)
    new = [entity for entity in spoken if entity not in named]
    return sorted(new, key=lambda e: (-spoken[e], -weight[e], e))[:COMPANIONS]


def _cited(sentences: Sequence[Evidence], related: Related) -> str:
    return " ".join(
        f"{sentence.text} {citation(sentence, related(sentence.entities))}"
        for sentence in sentences
    )


def citation(sentence: Evidence, relationships: Sequence[int]) -> str:
    """Cite the evidence of a sentence, in Microsoft's syntax."""
    parts = [f"Entities ({_numbers(sentence.entities)})"]
    if relationships:
        parts.append(f"Relationships ({_numbers(relationships)})")
    parts.append(f"Sources ({sentence.source})")
    return f"[Data: {'; '.join(parts)}]"


def _numbers(numbers: Sequence[int]) -> str:
    shown = ", ".join(str(number) for number in numbers[:MAX_CITED])
    return shown + ", +more" if len(numbers) > MAX_CITED else shown
