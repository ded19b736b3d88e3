"""Score of the reply to an extraction request: valid, grounded, complete and short."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from graphrag_evaluation.tuning.corpus_sample import SampledPassage
from graphrag_evaluation.tuning.known_records import KnownRecords, locate_records
from graphrag_index.extraction.alignment import Span
from graphrag_index.extraction.graph_reply import FoundEntity, FoundRecords, FoundRelationship
from graphrag_index.llm.request import ENCODING, Outcome
from graphrag_index.llm.tokens import count_tokens, load_encoding

# What a thousand tokens of prompt and reply cost in the score.
PENALTY_OF_1000_TOKENS = 0.02
# Two mentions are the same if they share this part of the longer one.
MIN_SHARED_PART = 0.5


@dataclass(frozen=True)
class ExtractionScore:
    """Parts of the score of one reply, from 0 to 1, and what the reply lacks.

    `recall` is None if nothing is known of the passage. An unreadable reply has the parts 0.
    """

    passage: SampledPassage
    validity: float  # share of the records that are valid
    grounded: float  # share of the records whose names stand in the passage
    recall: float | None  # share of the known entities and relationships that are found
    n_tokens: int  # of the system message and the reply
    missed: tuple[str, ...] = ()  # known entities and relationships that are not found
    ungrounded: tuple[str, ...] = ()  # names that the passage does not contain
    failure: str = ""  # why the reply cannot be read

    @property
    def total(self) -> float:
        """The mean of the parts, less the penalty for the length."""
        parts = [part for part in (self.validity, self.grounded, self.recall) if part is not None]
        penalty = PENALTY_OF_1000_TOKENS * self.n_tokens / 1_000
        return sum(parts) / len(parts) - penalty


def score_reply(
    passage: SampledPassage,
    outcome: Outcome,
    found: FoundRecords,
    known: KnownRecords | None,
    n_prompt_tokens: int,
) -> ExtractionScore:
    """Score the records that a model found in a passage.

    A reply without any record is valid; it is grounded only if nothing is known of the passage.
    """
    recall = None if known is None or not known.entities else 0.0
    if outcome.failure:
        missed = [entity.name for entity in known.entities] if known else []
        return ExtractionScore(
            passage, 0, 0, recall, n_prompt_tokens, tuple(missed), (), outcome.failure
        )
    located, absent = locate_records(passage, found)
    n_records = len(found.entities) + len(found.relationships)
    gone = set(absent)
    n_ungrounded = len(absent) + sum(
        bool({link.source, link.target} & gone) for link in found.relationships
    )
    missed = []
    if known is not None and known.entities:
        recall, missed = _compare(located, known)
    empty = float(recall is None)
    records = [*map(FoundEntity._asdict, found.entities)]
    records += map(FoundRelationship._asdict, found.relationships)
    reply = json.dumps(records, ensure_ascii=False)
    return ExtractionScore(
        passage,
        validity=1.0 if not outcome.dropped else n_records / (n_records + outcome.dropped),
        grounded=1 - n_ungrounded / n_records if n_records else empty,
        recall=recall,
        n_tokens=n_prompt_tokens + count_tokens(reply, load_encoding(ENCODING)),
        missed=tuple(missed),
        ungrounded=tuple(absent),
    )


def count_missed_entities(located: KnownRecords, known: KnownRecords) -> int:
    """Return the number of known entities that are not among those of a reply."""
    found = {_find_same(entity.spans, known) for entity in located.entities}
    return len(known.entities) - len(found - {None})


def _compare(located: KnownRecords, known: KnownRecords) -> tuple[float, list[str]]:
    """Return the share of the known records that are found, and the others as texts.

    Entities count one half, relationships the other half. A relationship is found if a record
    joins the same two entities, in either direction.
    """
    same = {
        at: number
        for at, entity in enumerate(located.entities)
        if (number := _find_same(entity.spans, known)) is not None
    }
    found_pairs = {
        (min(ends), max(ends))
        for pair in located.pairs
        if len(ends := {same.get(end, -1) for end in pair} - {-1}) == 2
    }
    numbers = set(same.values())
    missed = [e.name for at, e in enumerate(known.entities) if at not in numbers]
    shares = [len(numbers) / len(known.entities)]
    if known.pairs:
        shares.append(len(found_pairs & known.pairs.keys()) / len(known.pairs))
        missed += [
            f"{known.entities[one].name} – {known.entities[other].name}"
            for one, other in known.pairs
            if (one, other) not in found_pairs
        ]
    return sum(shares) / len(shares), missed


def _find_same(spans: Sequence[Span], known: KnownRecords) -> int | None:
    """Return the known entity with the most similar mention, if one is similar enough."""
    parts = (
        (_shared_part(one, other), -number)
        for number, entity in enumerate(known.entities)
        for one in spans
        for other in entity.spans
    )
    part, number = max(parts, default=(0.0, 0))
    return -number if part >= MIN_SHARED_PART else None


def _shared_part(one: Span, other: Span) -> float:
    shared = min(one[1], other[1]) - max(one[0], other[0])
    return shared / max(one[1] - one[0], other[1] - other[0])


def mean_parts(scores: Iterable[ExtractionScore]) -> dict[str, float]:
    """Return the means of the parts of several scores, for a table; {} without scores."""
    scores = list(scores)
    if not scores:
        return {}
    recalls = [score.recall for score in scores if score.recall is not None]
    n = len(scores)
    return {
        "score": sum(score.total for score in scores) / n,
        "validity": sum(score.validity for score in scores) / n,
        "grounded": sum(score.grounded for score in scores) / n,
        **({"recall": sum(recalls) / len(recalls)} if recalls else {}),
        "tokens": sum(score.n_tokens for score in scores) / n,
        "unreadable": float(sum(bool(score.failure) for score in scores)),
    }
