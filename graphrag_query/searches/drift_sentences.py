"""Drift search without a model: it follows up the entities named in the best sentences."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from graphrag_index.schema.settings.searches import DriftSearch
from graphrag_index.text.citations import check_citations
from graphrag_index.text.sentences import split_sentences
from graphrag_query.answer import Answer, Outcome
from graphrag_query.answering.context import Section, pack, source_rows
from graphrag_query.answering.extractive import (
    NOTHING_ANSWERS,
    Candidate,
    candidates_of,
    choose_sentences,
    rank_sentences,
    write_sentences,
)
from graphrag_query.question.mentions import Mentions, not_mentioned
from graphrag_query.question.question import Question
from graphrag_query.retrieval.report_selection import by_fit
from graphrag_query.searches.local_search import find_evidence


def drift_sentences(question: Question, settings: DriftSearch) -> Answer:
    """Answer a broad question with sentences of the documents, found in rounds.

    The reports most similar to the question are split into sentences. The entities named in the
    best of them are followed up: each is looked up together with the question, as local search
    does. The sentences found name the entities of the next round. The answer consists of
    the best sentences of all rounds.
    """
    index, local = question.index, question.local
    reports = by_fit(question).sort("score", "community", descending=[True, False])
    reports = index.with_texts(reports.head(settings.top_k_reports), "summary", "findings")
    first = find_evidence(question, local)
    text_units, priors = dict(first.text_units), first.priors()
    covered = {mention.entity for mention in question.mentions.entities}
    sentences = _of_reports(reports.iter_rows(named=True))
    followed: list[str] = []
    for _ in range(settings.rounds):
        entities = _named_in_best(question, sentences, covered, settings.follow_ups)
        for title in index.entities(entities)["title"]:
            found = find_evidence(replace(question, text=f"{title}: {question.text}"), local)
            for number, prior in found.priors().items():
                if number not in text_units and number in found.text_units:
                    text_units[number], priors[number] = found.text_units[number], prior
            followed.append(title)
        covered.update(entities)
        sentences = candidates_of(text_units.values(), priors, {})

    answer = partial(
        question.answer,
        method="drift",
        parameters=settings.model_dump(),
        looked_at={
            "community_reports": reports.height,
            "entities_followed": len(followed),
            "text_units": len(text_units),
        },
    )
    texts = [unit["text"] for unit in text_units.values()]
    unmentioned = question.mentions.unmentioned([*first.named, *texts])
    if unmentioned:
        return answer(not_mentioned(unmentioned), outcome=Outcome.NO_EVIDENCE)
    context = pack([Section("Sources", source_rows(text_units), 1.0)], settings.max_context_tokens)
    chosen = choose_sentences(
        question,
        text_units,
        priors,
        max_sentences=settings.max_sentences,
        min_similarity=settings.min_similarity,
        named=first.named,
        bonuses=first.bonuses,
    )
    if not chosen:
        return answer(NOTHING_ANSWERS, outcome=Outcome.NO_EVIDENCE, context=context)
    text, citations = write_sentences(chosen, text_units)
    notes = (f"Followed up: {', '.join(followed)}.",) if followed else ()
    return answer(text, citations=citations, context=context, notes=notes)


def _of_reports(reports: Iterable[Mapping[str, Any]]) -> list[Candidate]:
    """Split reports into sentences."""
    candidates = []
    for report in reports:
        parts = [report["summary"], *(finding["explanation"] for finding in report["findings"])]
        for part in parts:
            text = check_citations(part, {})[0]
            for sentence in split_sentences(text):
                said = text[sentence.start : sentence.end]
                candidates.append(Candidate(said, 0, 0, 0, report["score"]))
    return candidates


def _named_in_best(
    question: Question, sentences: list[Candidate], covered: set[int], most: int
) -> list[int]:
    """Return the entities that the best sentences name, without those covered before."""
    ranked = rank_sentences(question, sentences)
    found: dict[int, None] = {}
    for sentence in ranked:
        if len(found) >= most:
            break
        for entity in Mentions(question.index, sentence.candidate.text).exact:
            if entity not in covered:
                found[entity] = None
    return list(found)[:most]
