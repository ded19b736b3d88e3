"""The main entities of a kind: asked for those, global search lists them."""

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from graphrag_index.schema.settings.searches import GlobalSearch
from graphrag_query.answer import Answer, Citation, Outcome
from graphrag_query.answering.sentence_ranking import Candidate, as_prose, cite, stem
from graphrag_query.question.question import Question
from graphrag_query.retrieval.index_store import KnowledgeModel

# The types of entities, by words for all of them.
_KINDS = {
    stem(word): kind
    for kind, words in {
        "person": "people persons person individuals figures characters personen ludzie osoby",
        "geo": "places place locations location sites orte miejsca",
        "event": "events event ereignisse wydarzenia",
        "organization": "organizations organisations institutions organisationen organizacje",
    }.items()
    for word in words.split()
}
_PLURALS = {"person": "people", "geo": "places", "event": "events", "organization": "organizations"}

Place = tuple[str, int]  # document id and start of a sentence


def kind_of(subject: Iterable[str]) -> str | None:
    """Return the type of entity of which a question asks for the main ones, and nothing else.

    `subject` are the content words of the question; None if it is about something else.
    """
    kinds = {_KINDS.get(word) for word in subject}
    return kinds.pop() if len(kinds) == 1 else None


def list_main_entities(question: Question, kind: str, settings: GlobalSearch) -> Answer:
    """List the best connected entities of a type, each with the first sentence of its evidence.

    The outcome is `no_evidence` if there is no entity of that type.
    """
    model = question.model
    entities = (
        model.scan("entities")
        .filter(pl.col("type").str.to_lowercase() == kind)
        .sort("degree", "human_readable_id", descending=[True, False])
        .select("human_readable_id", "title", "evidence")
        .head(settings.max_points)
        .collect()
    )
    units = _units_at(model, entities.select("evidence").explode("evidence").unnest("evidence"))
    citations: list[Citation] = []
    lines = [f"The {_PLURALS[kind]} with the most connections in the documents:\n"]
    for number, entity in enumerate(entities.iter_rows(named=True), 1):
        lines.append(
            f"{number}. **{entity['title']}** [Data: Entities ({entity['human_readable_id']})]"
        )
        whole = (p for p in entity["evidence"] if (p["document_id"], p["start_char"]) in units)
        place = next(whole, None)
        if place:
            start, end = place["start_char"], place["end_char"]
            unit = units[place["document_id"], start]
            text = unit["text"][start - unit["start_char"] : end - unit["start_char"]]
            candidate = Candidate(text, unit["human_readable_id"], start, end, 0.0)
            citations.append(cite(len(citations) + 1, candidate, unit))
            lines.append(f"   {as_prose(text)} [{len(citations)}]")
        lines.append("")
    if not entities.height:
        lines = [f"The index knows no {_PLURALS[kind]} of these documents."]
    return question.answer(
        "\n".join(lines).rstrip(),
        "global",
        settings.model_dump(),
        {"entities": model.rows("entities"), "entities_listed": entities.height},
        Outcome.ANSWERED if entities.height else Outcome.NO_EVIDENCE,
        citations=tuple(citations),
    )


def _units_at(model: KnowledgeModel, sentences: pl.DataFrame) -> dict[Place, Mapping[str, Any]]:
    """Fetch the text units in which sentences stand.

    A sentence longer than a text unit may be is cut in two, and left out here.
    """
    spans = model.scan("text_units").select(
        "document_id", number="human_readable_id", first="start_char", last="end_char"
    )
    found = (
        spans.join(sentences.lazy(), on="document_id")
        .filter(pl.col("first") <= pl.col("start_char"), pl.col("end_char") <= pl.col("last"))
        .select("document_id", "start_char", "number")
        .sort("number", descending=True)
        .collect()
    )
    units = model.text_units(found["number"])
    return {(document, start): units[number] for document, start, number in found.iter_rows()}
