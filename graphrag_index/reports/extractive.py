"""Write the report on one community from sentences of its evidence, without a model.

Nothing is said that no document says: the summary and the findings are whole
sentences, chosen for the entities that they cover, each with its citations.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from graphrag_index.reports.report import Finding, join_titles
from graphrag_index.text.near_duplicates import alike, telling_words

Related = Callable[[tuple[int, ...]], tuple[int, ...]]

SUMMARY_SENTENCES = 2
SENTENCES_PER_FINDING = 3
# Members that a heading names beside the one that its finding is about.
COMPANIONS = 2
# Ids in one citation; more are shown as "+more".
MAX_CITED = 5


@dataclass(frozen=True, eq=False)
class Evidence:
    """A sentence that mentions members of the community.

    `entities` are the numbers of the members in it, `source` is that of its text unit.
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

    The summary takes the sentences that together cover the weightiest members. Each
    finding is about one member, the weightiest first, and takes what is said of it
    with others. No sentence is used twice, and no two that are alike. A heading names
    the member and those spoken of with it that neither the report's title nor an earlier
    heading names, so that no two are the same.

    Parameters
    ----------
    evidence
        Candidates, best first.
    weight
        How central each member is.
    titles
        Titles of the members.
    main
        The members that the report's title names.
    related
        Gives the numbers of the relationships among a few members.
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
                # The report is on this one member, and its title says so already.
                heading = f"More on {heading}"
            sentences.sort(key=lambda sentence: sentence.source)
            findings.append(Finding(heading, _cited(sentences, related)))
    return _cited(summary, related), tuple(findings)


class _Pool:
    """The sentences that are left; each is taken once, and none that repeats one taken."""

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
        """Take the sentence that adds most: its own score and the members that are new in it."""
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
            if not any(alike(words, used) for used in self.words):
                self.words.append(words)
                return best


def _companions(
    sentences: Sequence[Evidence], weight: Mapping[int, float], named: Collection[int]
) -> list[int]:
    """Return the members that a finding speaks of most, without those named before."""
    spoken = Counter(entity for sentence in sentences for entity in sentence.entities)
    new = [entity for entity in spoken if entity not in named]
    return sorted(new, key=lambda e: (-spoken[e], -weight[e], e))[:COMPANIONS]


def _cited(sentences: Sequence[Evidence], related: Related) -> str:
    return " ".join(
        f"{sentence.text} {citation(sentence, related(sentence.entities))}"
        for sentence in sentences
    )


def citation(sentence: Evidence, relationships: Sequence[int]) -> str:
    """Cite what proves a sentence, in Microsoft's syntax."""
    parts = [f"Entities ({_numbers(sentence.entities)})"]
    if relationships:
        parts.append(f"Relationships ({_numbers(relationships)})")
    parts.append(f"Sources ({sentence.source})")
    return f"[Data: {'; '.join(parts)}]"


def _numbers(numbers: Sequence[int]) -> str:
    shown = ", ".join(str(number) for number in numbers[:MAX_CITED])
    return shown + ", +more" if len(numbers) > MAX_CITED else shown
