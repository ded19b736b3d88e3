"""Lazy search: test passages for relevance at query time, without reports."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from graphrag_index.errors import ModelError
from graphrag_index.schema.settings.searches import LazySearch
from graphrag_query.answer import Answer, Outcome
from graphrag_query.answering.context import Context, Section, pack, source_rows
from graphrag_query.answering.extractive import (
    ALL_WORDS,
    NOTHING_ANSWERS,
    choose_sentences,
    rarity_of,
    write_sentences,
)
from graphrag_query.answering.llm import LLM
from graphrag_query.answering.written_answer import write_answer
from graphrag_query.question.content_words import (
    QUESTION_WORDS,
    content_words,
    is_unreadable,
    share_words,
)
from graphrag_query.question.mentions import not_mentioned
from graphrag_query.question.question import Question
from graphrag_query.retrieval.community_descent import (
    Descent,
    Findings,
    IndexHierarchy,
    Rate,
    best_first,
)
from graphrag_query.retrieval.text_unit_search import words_held
from graphrag_query.searches.lazy_requests import (
    Claim,
    claims_request,
    relevance_request,
    sub_query_request,
)

if TYPE_CHECKING:
    import numpy.typing as npt

# Weights beside the cosine: of the best full-text score, and of all words of a question in a test.
FULL_TEXT_WEIGHT = 0.25
COVERAGE_WEIGHT = 0.35
# Without a model: a text unit with a smaller share of the question's words must be similar to it.
MIN_COVERAGE = 0.34
NOTHING_RELEVANT = "No passage that was tested is relevant to this question."
NOTHING_CLAIMED = "The relevant passages say nothing that answers this question."
# Borders between the parts of a question: at a mark, and where a second question word follows.
_CONJUNCTIONS = "and or und oder sowie et ou y e oraz i lub a и или"
_PARTS = re.compile(
    rf"[,;:?!，、；：？！。؟]|\b(?:{'|'.join(_CONJUNCTIONS.split())})\s+(?=(?:{'|'.join(sorted(QUESTION_WORDS))})\b)",
    re.IGNORECASE,
)


def lazy_search(question: Question, settings: LazySearch) -> Answer:
    """Answer a question without reports, by tests of relevance within a budget.

    Text units are ranked by the question and its sub-queries, and tested community by
    community. A model rates them, extracts claims from the relevant ones, and writes the answer
    from the best claims. Without one, cosines and words decide, and the answer consists of
    the sentences that answer best. The outcome is `no_evidence` if nothing tested is relevant,
    or if the question names something that the documents do not mention.
    """
    index, llm = question.index, question.llm
    unmentioned = question.mentions.unmentioned()
    if unmentioned:
        text, none = not_mentioned(unmentioned), {"relevance_tests": 0}
        return question.answer(text, "lazy", settings.model_dump(), none, Outcome.NO_EVIDENCE)
    question.counts["relevance_tests"] = 0
    queries, notes = _queries(question, settings)
    ranking = Ranking.of(question, queries, settings)
    hierarchy = IndexHierarchy(index)
    failures: list[str] = []
    test: Rate = partial(_judge, ranking, settings)
    min_rating: float = settings.min_similarity
    if llm is not None:
        test, min_rating = partial(_rate, question, llm, failures), settings.min_rating
    descent = Descent(ranking.scores, hierarchy, ranking.score, test, settings, min_rating)
    try:
        tested = descent.run()
    finally:
        # Includes the tests before a model failed.
        question.counts.update(_counts(queries, ranking, descent.tested))
    if tested.n_failed:
        if tested.n_failed == tested.n_tests:
            raise ModelError(f"The model tested no passage: {failures[0]}.")
        notes += (f"{tested.n_failed} of {tested.n_tests} relevance tests failed.",)
    looked_at = _counts(queries, ranking, tested)
    parameters = settings.model_dump() | {"queries": queries}
    if not tested.relevant:
        return question.answer(
            NOTHING_RELEVANT, "lazy", parameters, looked_at, Outcome.NO_EVIDENCE, notes=notes
        )
    if llm is not None:
        return _answer_from_claims(question, llm, tested, settings, parameters, looked_at, notes)
    return _answer_from_sentences(question, tested, settings, parameters, looked_at)


def _counts(queries: Sequence[str], ranking: "Ranking", tested: Findings) -> dict[str, int]:
    return {
        "sub_queries": len(queries) - 1,
        "text_units": len(ranking.scores),
        "communities": len(tested.communities),
        "relevance_tests": tested.n_tests,
        "relevance_tests_failed": tested.n_failed,
        "relevant_text_units": len(tested.relevant),
    }


def _queries(question: Question, settings: LazySearch) -> tuple[list[str], tuple[str, ...]]:
    """Return the question and its sub-queries, and a note if the model wrote none."""
    parts = _parts(question.text)[: settings.sub_queries]
    if question.llm is None or not settings.sub_queries:
        return [question.text, *parts], ()
    request = sub_query_request(question.llm, question.text, settings.sub_queries)
    [outcome] = question.llm.replies([request], rating=True)
    if outcome.failure:
        return [question.text, *parts], (f"No sub-queries by the model: {outcome.failure}.",)
    return [question.text, *outcome.values[0]], ()


def _parts(question: str) -> list[str]:
    """Split a question into parts of at least two content words."""
    parts = [" ".join(part.split()) for part in _PARTS.split(question)]
    parts = [part for part in dict.fromkeys(parts) if len(content_words(part)) >= 2]
    return [part for part in parts if part != question.strip(" ?!.")]


@dataclass
class Ranking:
    """The similarity of text units to the best of some queries."""

    question: Question
    vectors: "npt.NDArray[np.float32]"  # one row a query
    scores: dict[int, float]
    words: list[str]  # stems of the question

    @classmethod
    def of(cls, question: Question, queries: Sequence[str], settings: LazySearch) -> "Ranking":
        """Rank text units by cosine and by full text for each query; the best one counts."""
        embedded = question.index.embed(list(queries[1:])) if len(queries) > 1 else None
        vectors = np.vstack([question.vector, *([] if embedded is None else embedded)])
        table = question.index.vectors("text_unit_text")
        numbers: set[int] = set()
        shares: dict[int, float] = {}
        top_k = settings.top_k_text_units
        for query, vector in zip(queries, vectors, strict=True):
            near = table.nearest(vector, top_k, ["human_readable_id"])
            numbers.update(near["human_readable_id"])
            words = " ".join(content_words(query)) or query
            matching = dict(table.matching(words, top_k, ["human_readable_id"]).iter_rows())
            highest = max(matching.values(), default=0.0) or 1.0
            for number, score in matching.items():
                shares[number] = max(shares.get(number, 0.0), score / highest)
        ranking = cls(question, vectors, {}, question.content_words)
        cosines = ranking.score(sorted({*numbers, *shares}))
        ranking.scores = {
            number: cosine + FULL_TEXT_WEIGHT * shares.get(number, 0.0)
            for number, cosine in cosines.items()
        }
        return ranking

    def score(self, numbers: list[int]) -> dict[int, float]:
        """Return the cosine of each text unit with the most similar query."""
        numbers = sorted(numbers)
        rows = self.question.index.vectors("text_unit_text").at(numbers, ["vector"])
        if not numbers:
            return {}
        best = (rows["vector"].to_numpy() @ self.vectors.T).max(axis=1)
        return dict(zip(numbers, best.tolist(), strict=True))


def _judge(ranking: Ranking, settings: LazySearch, numbers: list[int]) -> list[float]:
    """Rate text units without a model: by cosine, and by the question's words that they hold.

    An irrelevant one is rated below every threshold.
    """
    ordered = sorted(numbers)
    table = ranking.question.index.vectors("text_unit_text")
    rows = table.at(ordered, ["text", "vector"])
    held = words_held(rows["text"], ranking.words)
    n_holding = held.sum(axis=0).tolist()
    rarity = [rarity_of(n, len(ordered)) for n in n_holding]
    total = sum(rarity) or 1.0
    cosines = (rows["vector"].to_numpy() @ ranking.vectors.T).max(axis=1)
    asked = ranking.question.text
    unreadable = is_unreadable(ranking.question.index, asked)
    has_number = any(letter.isdigit() for letter in asked)
    ratings = {}
    for number, text, cosine, words in zip(
        ordered, rows["text"], cosines.tolist(), held.tolist(), strict=True
    ):
        coverage = sum(worth for worth, is_held in zip(rarity, words, strict=True) if is_held)
        coverage /= total
        enough = coverage >= MIN_COVERAGE or cosine >= 2 * settings.min_similarity
        is_relevant = enough and cosine >= settings.min_similarity
        if unreadable:
            is_relevant = share_words(asked, text)
        elif has_number:
            is_relevant |= coverage > ALL_WORDS
        ratings[number] = cosine + COVERAGE_WEIGHT * coverage if is_relevant else -1.0
    return [ratings[number] for number in numbers]


def _rate(
    question: Question, llm: LLM, failures: list[str], numbers: list[int]
) -> list[float | None]:
    """Let the model rate text units, one call each; `failures` takes the errors."""
    units = question.index.text_units(numbers)
    requests = [relevance_request(llm, question.text, units[number]) for number in numbers]
    outcomes = llm.replies(requests, rating=True)
    failures += [outcome.failure for outcome in outcomes if outcome.failure]
    return [None if outcome.failure else outcome.values[0] for outcome in outcomes]


def _answer_from_claims(
    question: Question,
    llm: LLM,
    tested: Findings,
    settings: LazySearch,
    parameters: Mapping[str, Any],
    looked_at: dict[str, int],
    notes: tuple[str, ...],
) -> Answer:
    """Let the model extract claims, community by community, and write from the best."""
    limit = question.max_context_tokens(settings.max_context_tokens)
    batches = _batches(question, tested, limit)
    requests = [claims_request(llm, question.text, batch) for batch in batches]
    outcomes = llm.replies(requests)
    failures = [outcome.failure for outcome in outcomes if outcome.failure]
    if len(failures) == len(outcomes):
        question.counts["claim_calls_failed"] = len(failures)
        raise ModelError(f"The model read none of the relevant passages: {failures[0]}.")
    if failures:
        n_lost = sum(
            batch.tables["Sources"].height
            for batch, outcome in zip(batches, outcomes, strict=True)
            if outcome.failure
        )
        what = f"{len(failures)} of {len(outcomes)} calls for claims failed"
        notes += (f"{what}: {n_lost} relevant passages were not read ({failures[0]}).",)
    claims = [claim for o in outcomes if not o.failure for claim in o.values[0]]
    looked_at |= {"claims": len(claims), "claim_calls_failed": len(failures)}
    if not claims:
        return question.answer(
            NOTHING_CLAIMED, "lazy", parameters, looked_at, Outcome.NO_EVIDENCE, notes=notes
        )
    context = _context_of(question, claims, tested, limit)
    looked_at["claims_left_out"] = context.n_left_out["Claims"]
    return write_answer(
        question,
        "lazy_search",
        context,
        method="lazy",
        parameters=parameters,
        looked_at=looked_at,
        notes=notes,
    )


def _batches(question: Question, tested: Findings, max_tokens: int) -> list[Context]:
    """Pack the relevant text units into contexts, grouped by community.

    Communities are ordered by their best text unit; small ones share a context.
    """
    numbers = [number for group in _groups(tested) for number in group]
    units = question.index.text_units(numbers)
    rows = source_rows({number: units[number] for number in numbers})
    group = pl.Series("group", [tested.community_of[number] for number in numbers])
    rows = rows.insert_column(1, group)
    batches = []
    while rows.height:
        batch = pack([Section("Sources", rows, 1.0)], max_tokens)
        if batch.is_empty:
            break
        batches.append(batch)
        rows = rows.slice(batch.tables["Sources"].height)
    return batches


def _groups(tested: Findings) -> list[list[int]]:
    """Group the relevant text units by community, the best communities and text units first."""
    ranked = best_first(tested.relevant, tested.relevant)
    groups: dict[int, list[int]] = {}
    for number in ranked:
        groups.setdefault(tested.community_of[number], []).append(number)
    return list(groups.values())


def _context_of(
    question: Question, claims: Sequence[Claim], tested: Findings, max_tokens: int
) -> Context:
    """Pack the best claims into a context; their sources may be cited.

    Claims are grouped by the community of their first source, the best communities first.
    """
    communities = [tested.community_of[claim.sources[0]] for claim in claims]
    best: dict[int, float] = {}
    for community, claim in zip(communities, claims, strict=True):
        best[community] = max(best.get(community, 0.0), claim.score)
    order = sorted(
        range(len(claims)),
        key=lambda n: (-best[communities[n]], communities[n], -claims[n].score, n),
    )
    listed = [
        (
            place,
            communities[n],
            claims[n].text,
            " ".join(map(str, claims[n].sources)),
            round(claims[n].score),
        )
        for place, n in enumerate(order, 1)
    ]
    rows = pl.DataFrame(
        listed,
        {
            "id": pl.Int64,
            "group": pl.Int64,
            "claim": pl.String,
            "sources": pl.String,
            "score": pl.Int64,
        },
        orient="row",
    )
    packed = pack([Section("Claims", rows, 1.0)], max_tokens)
    n_shown = packed.tables["Claims"].height if "Claims" in packed.tables else 0
    cited = dict.fromkeys(number for n in order[:n_shown] for number in claims[n].sources)
    units = question.index.text_units(cited)
    sources = source_rows({number: units[number] for number in cited})
    return replace(packed, tables={"Sources": sources} if n_shown else {})


def _answer_from_sentences(
    question: Question,
    tested: Findings,
    settings: LazySearch,
    parameters: Mapping[str, Any],
    looked_at: Mapping[str, int],
) -> Answer:
    """Quote the sentences that answer best, grouped by community."""
    numbers = [number for group in _groups(tested) for number in group]
    units = question.index.text_units(numbers)
    units = {number: units[number] for number in numbers}
    context = pack(
        [Section("Sources", source_rows(units), 1.0)],
        question.max_context_tokens(settings.max_context_tokens),
    )
    chosen = choose_sentences(
        question,
        units,
        tested.relevant,
        max_sentences=settings.max_sentences,
        min_similarity=settings.min_similarity,
    )
    answer = partial(question.answer, method="lazy", parameters=parameters, looked_at=looked_at)
    if not chosen:
        return answer(NOTHING_ANSWERS, outcome=Outcome.NO_EVIDENCE, context=context)
    places: dict[int, int] = {}
    for sentence in chosen:
        community = tested.community_of[sentence.candidate.text_unit]
        places.setdefault(community, len(places))
    # The sort is stable: the best sentence of each community stays its first.
    chosen.sort(key=lambda s: places[tested.community_of[s.candidate.text_unit]])
    text, citations = write_sentences(chosen, units)
    return answer(text, citations=citations, context=context)
