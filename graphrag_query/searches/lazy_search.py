"""Lazy search: test at the time of the question what reports would have summed up beforehand."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl

from graphrag_index.errors import ModelError
from graphrag_index.schema.settings.searches import LazySearch
from graphrag_query.answer import Answer, Outcome
from graphrag_query.answering.chat import Chat
from graphrag_query.answering.context import Context, Section, pack, source_rows
from graphrag_query.answering.extractive_answer import (
    ALL_WORDS,
    NOTHING_ANSWERS,
    choose_sentences,
    write_sentences,
)
from graphrag_query.answering.sentence_ranking import ASKING, content_words, rarity_of
from graphrag_query.answering.written_answer import write_answer
from graphrag_query.question.question import Question
from graphrag_query.question.question_names import not_mentioned, unknown_names
from graphrag_query.question.unsupported_scripts import is_unread, share_words
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
    import numpy as np
    import numpy.typing as npt

# What the best full-text score is worth beside the cosine, and all words of a question in a test.
FULL_TEXT_WEIGHT = 0.25
COVERAGE_WEIGHT = 0.35
# Without a model: a text unit with less of the question's words, by rarity, must be similar.
MIN_COVERAGE = 0.34
NOTHING_RELEVANT = "No passage that was tested is relevant to this question."
NOTHING_CLAIMED = "The relevant passages say nothing that answers this question."
# Where one part of a question ends and the next begins, without a model to tell: at a mark, and
# where a second thing is asked.
_JOINING = "and or und oder sowie et ou y e oraz i lub a и или"
_PARTS = re.compile(
    rf"[,;:?!，、；：？！。؟]|\b(?:{'|'.join(_JOINING.split())})\s+(?=(?:{'|'.join(sorted(ASKING))})\b)",
    re.IGNORECASE,
)


def lazy_search(question: Question, settings: LazySearch) -> Answer:
    """Answer a question without reports, by tests of relevance within a budget.

    Text units are ranked by the question and by the sub-queries made of it, and tested
    community by community. A model rates them, says what the relevant ones claim, and writes
    the answer from the best claims. Without one, cosines and words decide, and the answer
    is made of the sentences that answer best. The outcome is `no_evidence` if nothing tested
    is relevant, or if the question names what the documents do not.
    """
    model, chat = question.model, question.chat
    unknown = unknown_names(model, question.text, ())
    if unknown:
        text, none = not_mentioned(unknown), {"relevance_tests": 0}
        return question.answer(text, "lazy", settings.model_dump(), none, Outcome.NO_EVIDENCE)
    question.counts["relevance_tests"] = 0
    queries, notes = _queries(question, settings)
    ranking = Ranking.of(question, queries, settings)
    hierarchy = IndexHierarchy(model)
    failures: list[str] = []
    test: Rate = partial(_judge, ranking, settings)
    least = settings.min_similarity
    if chat is not None:
        test, least = partial(_rate, question, chat, failures), settings.min_rating
    descent = Descent(ranking.scores, hierarchy, ranking.score, test, settings, least)
    try:
        tested = descent.run()
    finally:
        # Also what was tested before a model failed.
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
    if chat is not None:
        return _answer_from_claims(question, chat, tested, settings, parameters, looked_at, notes)
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
    """Return the question and its sub-queries, and what went wrong in making them."""
    parts = _parts(question.text)[: settings.sub_queries]
    if question.chat is None or not settings.sub_queries:
        return [question.text, *parts], ()
    request = sub_query_request(question.chat, question.text, settings.sub_queries)
    [outcome] = question.chat.replies([request], rating=True)
    if outcome.failure:
        return [question.text, *parts], (f"No sub-queries by the model: {outcome.failure}.",)
    return [question.text, *outcome.values[0]], ()


def _parts(question: str) -> list[str]:
    """Cut a question into the parts that ask for something; each has two telling words."""
    parts = [" ".join(part.split()) for part in _PARTS.split(question)]
    parts = [part for part in dict.fromkeys(parts) if len(content_words(part)) >= 2]
    return [part for part in parts if part != question.strip(" ?!.")]


@dataclass
class Ranking:
    """How well text units fit the best of some queries, and how to find it out for others."""

    question: Question
    vectors: "npt.NDArray[np.float32]"  # one row a query
    scores: dict[int, float]
    words: list[str]  # of the question

    @classmethod
    def of(cls, question: Question, queries: Sequence[str], settings: LazySearch) -> "Ranking":
        """Rank text units by cosine and by full text for each query; the best one counts."""
        import numpy as np

        embedded = question.model.embed(list(queries[1:])) if len(queries) > 1 else None
        vectors = np.vstack([question.vector, *([] if embedded is None else embedded)])
        table = question.model.vectors("text_unit_text")
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
        ranking = cls(question, vectors, {}, content_words(question.text))
        cosines = ranking.score(sorted({*numbers, *shares}))
        ranking.scores = {
            number: cosine + FULL_TEXT_WEIGHT * shares.get(number, 0.0)
            for number, cosine in cosines.items()
        }
        return ranking

    def score(self, numbers: list[int]) -> dict[int, float]:
        """Return the cosines of text units with the query that each fits best."""
        numbers = sorted(numbers)
        rows = self.question.model.vectors("text_unit_text").at(numbers, ["vector"])
        if not numbers:
            return {}
        best = (rows["vector"].to_numpy() @ self.vectors.T).max(axis=1)
        return dict(zip(numbers, best.tolist(), strict=True))


def _judge(ranking: Ranking, settings: LazySearch, numbers: list[int]) -> list[float]:
    """Rate text units without a model: by cosine, and by the question's words that they hold.

    One that is not relevant is rated below the least similarity.
    """
    ordered = sorted(numbers)
    table = ranking.question.model.vectors("text_unit_text")
    rows = table.at(ordered, ["text", "vector"])
    held = words_held(rows["text"], ranking.words)
    n_holding = held.sum(axis=0).tolist()
    rarity = [rarity_of(n, len(ordered)) for n in n_holding]
    total = sum(rarity) or 1.0
    cosines = (rows["vector"].to_numpy() @ ranking.vectors.T).max(axis=1)
    asked = ranking.question.text
    unread = is_unread(ranking.question.model, asked)
    has_number = any(letter.isdigit() for letter in asked)
    ratings = {}
    for number, text, cosine, words in zip(
        ordered, rows["text"], cosines.tolist(), held.tolist(), strict=True
    ):
        coverage = sum(worth for worth, is_held in zip(rarity, words, strict=True) if is_held)
        coverage /= total
        enough = coverage >= MIN_COVERAGE or cosine >= 2 * settings.min_similarity
        is_relevant = enough and cosine >= settings.min_similarity
        if unread:
            is_relevant = share_words(asked, text)
        elif has_number:
            is_relevant |= coverage > ALL_WORDS
        ratings[number] = cosine + COVERAGE_WEIGHT * coverage if is_relevant else -1.0
    return [ratings[number] for number in numbers]


def _rate(
    question: Question, chat: Chat, failures: list[str], numbers: list[int]
) -> list[float | None]:
    """Let the model rate text units, each in a call of its own; note why calls failed."""
    units = question.model.text_units(numbers)
    requests = [relevance_request(chat, question.text, units[number]) for number in numbers]
    outcomes = chat.replies(requests, rating=True)
    failures += [outcome.failure for outcome in outcomes if outcome.failure]
    return [None if outcome.failure else outcome.values[0] for outcome in outcomes]


def _answer_from_claims(
    question: Question,
    chat: Chat,
    tested: Findings,
    settings: LazySearch,
    parameters: Mapping[str, Any],
    looked_at: dict[str, int],
    notes: tuple[str, ...],
) -> Answer:
    """Let the model claim, community by community, and write from the best claims."""
    limit = question.max_context_tokens(settings.max_context_tokens)
    batches = _batches(question, tested, limit)
    requests = [claims_request(chat, question.text, batch) for batch in batches]
    outcomes = chat.replies(requests)
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
    """Put the relevant text units into contexts, those of one community together.

    Communities come by their best text unit; several small ones share a context.
    """
    numbers = [number for group in _groups(tested) for number in group]
    units = question.model.text_units(numbers)
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
    """Return the relevant text units by community, the best of both first."""
    ranked = best_first(tested.relevant, tested.relevant)
    groups: dict[int, list[int]] = {}
    for number in ranked:
        groups.setdefault(tested.community_of[number], []).append(number)
    return list(groups.values())


def _context_of(
    question: Question, claims: Sequence[Claim], tested: Findings, max_tokens: int
) -> Context:
    """Put the best claims into a context, from which their Sources may be cited.

    A claim stands with its community, that of its first source; communities come by their
    best claim.
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
    units = question.model.text_units(cited)
    sources = source_rows({number: units[number] for number in cited})
    return replace(packed, tables={"Sources": sources} if n_shown else {})


def _answer_from_sentences(
    question: Question,
    tested: Findings,
    settings: LazySearch,
    parameters: Mapping[str, Any],
    looked_at: Mapping[str, int],
) -> Answer:
    """Quote the sentences that answer best, those of one community together."""
    numbers = [number for group in _groups(tested) for number in group]
    units = question.model.text_units(numbers)
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
    # Python sorts stably: the best sentence of each community stays its first.
    chosen.sort(key=lambda s: places[tested.community_of[s.candidate.text_unit]])
    text, citations = write_sentences(chosen, units)
    return answer(text, citations=citations, context=context)
