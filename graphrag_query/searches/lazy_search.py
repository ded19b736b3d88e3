"""Lazy search: find relevant passages by relevance tests at query time, without reports."""

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import polars as pl

from graphrag_index.errors import ModelError
from graphrag_index.llm.prompts import quote_text
from graphrag_index.llm.request import ParsedReply, Request
from graphrag_index.schema.settings.searches import LazySearch
from graphrag_nlp.text.citations import check_citations, find_cited_rows
from graphrag_query.answer import Answer, Context, Outcome
from graphrag_query.answering.written_answer import (
    DeferredContext,
    Section,
    describe_place,
    pack_sections,
    source_context,
    source_rows,
    write_answer,
)
from graphrag_query.llm import (
    LLM,
    RATING_FORMAT,
    REPLY_FIELDS,
    clean_text,
    find_records,
    first_field,
    read_importance,
    read_questions,
    reply_format,
)
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import QUESTION_WORDS, content_words
from graphrag_query.retrieval.community_descent import (
    IndexHierarchy,
    QueryScores,
    RatedTextUnits,
    RatingFunction,
    RelevanceTests,
    order_by_score,
)

NO_RELEVANT_PASSAGE_TEXT = "No passage that was tested is relevant to this question."
NO_CLAIM_TEXT = "The relevant passages say nothing that answers this question."
# Where a question is split into parts: at a punctuation mark, and at an "and" or "or" that a
# question word follows.
_CONJUNCTIONS = "and or und oder sowie et ou y e oraz i lub a и или"
_PART_BOUNDARY = re.compile(
    rf"[,;:?!，、；：？！。؟]|\b(?:{'|'.join(_CONJUNCTIONS.split())})\s+(?=(?:{'|'.join(sorted(QUESTION_WORDS))})\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Claim:
    """A statement from text units that helps to answer the question, scored from 0 to 100."""

    text: str
    score: float
    sources: tuple[int, ...]  # numbers of the text units that support the claim


def lazy_search(question: Question, settings: LazySearch) -> Answer:
    """Answer a question without reports, with a limited number of relevance tests.

    Text units are ranked by the question and its sub-queries, and tested community by
    community. A model rates the text units, extracts claims from the relevant text units, and
    writes the answer from the best claims. Without a model, cosine similarity and shared words
    decide about relevance, and the answer consists of the sentences that answer best. The
    outcome is `no_evidence` if no tested text unit is relevant, or if the question names
    something that the documents do not mention.
    """
    if refusal := question.refuse():
        return replace(refusal, looked_at={"relevance_tests": 0})
    question.counts["relevance_tests"] = 0
    llm = question.llm
    queries, notes = _collect_queries(question, settings)
    ranking = QueryScores.compute(question, queries, settings)
    failures: list[str] = []
    test: RatingFunction = partial(ranking.rate_text_units, settings.min_similarity)
    min_rating: float = settings.min_similarity
    if llm is not None:
        test, min_rating = partial(_rate_text_units, question, llm, failures), settings.min_rating
    hierarchy = IndexHierarchy(question.index)
    descent = RelevanceTests(ranking.scores, hierarchy, ranking.score, test, settings, min_rating)
    descent.accept(question.cell_coverage.order)
    tested = descent.tested
    try:
        descent.run()
    finally:
        # Set the counts also if the model fails after some tests. The answer shows the counts in
        # this order.
        question.counts.clear()
        question.counts.update(
            sub_queries=len(queries) - 1,
            text_units=len(ranking.scores),
            communities=len(tested.communities),
            relevance_tests=tested.n_tests,
            relevance_tests_failed=tested.n_failed,
            relevant_text_units=len(tested.relevant),
        )
    if tested.n_failed:
        if tested.n_failed == tested.n_tests:
            raise ModelError(f"The model tested no passage: {failures[0]}.")
        notes += (f"{tested.n_failed} of {tested.n_tests} relevance tests failed.",)
    if not tested.relevant:
        text = question.no_answer_text() if llm is None else NO_RELEVANT_PASSAGE_TEXT
        answer = question.answer(text, Outcome.NO_EVIDENCE, notes=notes)
    elif llm is not None:
        answer = _answer_from_claims(question, llm, tested, settings, notes)
    else:
        units = _relevant_units(question, tested)
        pack = partial(source_context, question, units)
        context = DeferredContext(pack, settings.max_context_tokens)
        from graphrag_query.answering.quoted_answer import quote_answer

        answer = quote_answer(
            question, units, tested.relevant, settings, context, groups=tested.community_of
        )
    return replace(answer, parameters={"queries": queries})


def _collect_queries(question: Question, settings: LazySearch) -> tuple[list[str], tuple[str, ...]]:
    """Return the question and its sub-queries, and a note if the model wrote no sub-queries."""
    parts = _split_question(question.text)[: settings.sub_queries]
    if question.llm is None or not settings.sub_queries:
        return [question.text, *parts], ()
    request = sub_query_request(question.llm, question.text, settings.sub_queries)
    [outcome] = question.llm.replies([request], rating=True)
    if outcome.failure:
        return [question.text, *parts], (f"No sub-queries by the model: {outcome.failure}.",)
    return [question.text, *outcome.values[0]], ()


def _split_question(question: str) -> list[str]:
    """Split a question into parts of at least two content words."""
    parts = [" ".join(part.split()) for part in _PART_BOUNDARY.split(question)]
    parts = [part for part in dict.fromkeys(parts) if len(content_words(part)) >= 2]
    return [part for part in parts if part != question.strip(" ?!.")]


def _rate_text_units(
    question: Question, llm: LLM, failures: list[str], numbers: list[int]
) -> list[float | None]:
    """Let the model rate each text unit in a call; append error messages to `failures`."""
    units = question.index.text_units(numbers)
    requests = [relevance_request(llm, question.text, units[number]) for number in numbers]
    outcomes = llm.replies(requests, rating=True)
    failures += [outcome.failure for outcome in outcomes if outcome.failure]
    return [None if outcome.failure else outcome.values[0] for outcome in outcomes]


def _answer_from_claims(
    question: Question,
    llm: LLM,
    tested: RatedTextUnits,
    settings: LazySearch,
    notes: tuple[str, ...],
) -> Answer:
    """Let the model extract claims per community and write the answer from the best claims."""
    limit = question.max_context_tokens(settings.max_context_tokens)
    batches = _pack_batches(question, tested, limit)
    outcomes = llm.replies([claims_request(llm, question.text, batch) for batch in batches])
    failures = [outcome.failure for outcome in outcomes if outcome.failure]
    if len(failures) == len(outcomes):
        question.counts["claim_calls_failed"] = len(failures)
        raise ModelError(f"The model read none of the relevant passages: {failures[0]}.")
    if failures:
        lost = [b for b, outcome in zip(batches, outcomes, strict=True) if outcome.failure]
        n_lost = sum(batch.n_rows("Sources") for batch in lost)
        calls = f"{len(failures)} of {len(outcomes)} calls for claims failed"
        notes += (f"{calls}: {n_lost} relevant passages were not read ({failures[0]}).",)
    claims = [claim for o in outcomes if not o.failure for claim in o.values[0]]
    question.counts.update(claims=len(claims), claim_calls_failed=len(failures))
    if not claims:
        return question.answer(NO_CLAIM_TEXT, Outcome.NO_EVIDENCE, notes=notes)
    context = _pack_claims(question, claims, tested, limit)
    question.counts["claims_left_out"] = context.n_left_out["Claims"]
    return write_answer(question, "lazy_search", context, notes)


def _pack_batches(question: Question, tested: RatedTextUnits, max_tokens: int) -> list[Context]:
    """Pack the relevant text units into contexts by community.

    Small communities share a context.
    """
    units = _relevant_units(question, tested)
    group = pl.Series("group", [tested.community_of[number] for number in units])
    rows = source_rows(units).insert_column(1, group)
    batches = []
    while rows.height:
        batch = pack_sections([Section("Sources", rows, 1.0)], max_tokens)
        if batch.is_empty:
            break
        batches.append(batch)
        rows = rows.slice(batch.n_rows("Sources"))
    return batches


def _relevant_units(question: Question, tested: RatedTextUnits) -> dict[int, Mapping[str, Any]]:
    """Fetch the relevant text units, grouped by community.

    The best community comes first, and the best text unit comes first in each community.
    """
    groups: dict[int, list[int]] = {}
    for number in order_by_score(tested.relevant, tested.relevant):
        groups.setdefault(tested.community_of[number], []).append(number)
    units = question.index.text_units(tested.relevant)
    return {number: units[number] for group in groups.values() for number in group}


def _pack_claims(
    question: Question, claims: Sequence[Claim], tested: RatedTextUnits, max_tokens: int
) -> Context:
    """Pack the best claims into a context, grouped by the community of their first source.

    The answer may cite the sources of the claims.
    """
    best: dict[int, float] = {}
    placed = [(tested.community_of[claim.sources[0]], claim) for claim in claims]
    for community, claim in placed:
        best[community] = max(best.get(community, 0.0), claim.score)
    # The sort is stable: claims of equal score keep their order.
    placed.sort(key=lambda item: (-best[item[0]], item[0], -item[1].score))
    rows = pl.DataFrame(
        {
            "id": range(1, len(claims) + 1),
            "group": [community for community, _ in placed],
            "claim": [claim.text for _, claim in placed],
            "sources": [" ".join(map(str, claim.sources)) for _, claim in placed],
            "score": [round(claim.score) for _, claim in placed],
        }
    )
    packed = pack_sections([Section("Claims", rows, 1.0)], max_tokens)
    shown = placed[: packed.n_rows("Claims")]
    numbers = dict.fromkeys(number for _, claim in shown for number in claim.sources)
    units = question.index.text_units(numbers)
    sources = source_rows({number: units[number] for number in numbers})
    return replace(packed, tables={"Sources": sources} if shown else {})


def sub_query_request(llm: LLM, question: str, most: int) -> Request:
    """Build the request for the sub-queries of a question, at most `most`."""
    messages = llm.messages("lazy_sub_queries", f"Question: {question}", most=str(most))
    read = partial(_read_queries, question, most)
    return Request("sub-queries", messages, reply_format("questions", read))


def relevance_request(llm: LLM, question: str, text_unit: Mapping[str, Any]) -> Request:
    """Build the request to rate how relevant a text unit is, from 0 to 5."""
    about = (text_unit["subject"], text_unit["period"], describe_place(text_unit))
    place = " > ".join(filter(None, about))
    place = " ".join(place.split())
    asked = f"Passage of {place}:\n{quote_text(text_unit['text'])}\n\nQuestion: {question}"
    unit = f"relevance of text unit {text_unit['human_readable_id']}"
    return Request(unit, llm.messages("lazy_relevance", asked), RATING_FORMAT)


def claims_request(llm: LLM, question: str, context: Context) -> Request:
    """Build the request for claims from the text units in a context that concern the question."""
    numbers = context.shown["Sources"]
    messages = llm.messages("lazy_claims", f"{context.text}\nQuestion: {question}")
    unit = f"claims of {len(numbers)} text units, {min(numbers)} first"
    return Request(unit, messages, reply_format("claims", partial(_read_claims, numbers)))


def _read_queries(question: str, most: int, data: Any) -> ParsedReply:
    """Parse the sub-queries. Duplicates and the question itself are dropped."""
    records = find_records(data, "questions", REPLY_FIELDS["question"])
    queries: dict[str, str] = {}
    for text in read_questions(records):
        queries.setdefault(text.casefold(), text)
    queries.pop(question.strip().casefold(), None)
    found = list(queries.values())[:most]
    return ParsedReply(found, len(records) - len(found))


def _read_claims(shown: AbstractSet[int], data: Any) -> ParsedReply:
    """Parse claims. A claim without a text, or without a source in the context, is dropped."""
    records = find_records(data, "claims", REPLY_FIELDS["claim"])
    claims = []
    for record in records:
        if not isinstance(record, Mapping):
            record = {"claim": record}
        written = clean_text(first_field(record, REPLY_FIELDS["claim"]))
        text, _ = check_citations(written, {})
        listed = first_field(record, REPLY_FIELDS["sources"])
        numbers = [number for number in _parse_numbers(listed) if number in shown]
        # Add the citations that some models write into the text.
        numbers += sorted(find_cited_rows(written).get("Sources", set()) & shown)
        if text and not numbers and len(shown) == 1:
            numbers = list(shown)
        if text and numbers:
            score = read_importance(first_field(record, REPLY_FIELDS["score"]))
            claims.append(Claim(text, score, tuple(dict.fromkeys(numbers))))
    return ParsedReply(claims, len(records) - len(claims))


def _parse_numbers(value: Any) -> list[int]:
    """Parse numbers of text units from an integer, a text or a nested list."""
    if isinstance(value, list | tuple):
        return [number for part in value for number in _parse_numbers(part)]
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    if not (is_number or isinstance(value, str)):
        return []
    return [int(digits[:18]) for digits in re.findall(r"\d+", str(value)[:1_000])]
