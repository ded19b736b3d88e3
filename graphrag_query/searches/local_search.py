"""Local search: answer from the neighbourhood of the entities that a question is about."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from graphrag_index.schema.settings.searches import LocalSearch
from graphrag_query.answer import Answer, Outcome
from graphrag_query.answering.context import Context, Section, pack, source_rows
from graphrag_query.answering.extractive import (
    NOTHING_ANSWERS,
    choose_sentences,
    write_sentences,
)
from graphrag_query.answering.written_answer import write_answer
from graphrag_query.question.mentions import not_mentioned
from graphrag_query.question.question import Question
from graphrag_query.retrieval.index_store import IndexStore
from graphrag_query.retrieval.text_unit_ranking import RankedTextUnit
from graphrag_query.retrieval.text_unit_search import start_search

ENTITY_BONUS = 0.15
RELATIONSHIP_BONUS = 0.05
# Relationships of one entity that are read, the heaviest first.
MAX_RELATIONSHIPS = 10_000
# With the scope `graph`: text units that tell about an entity, and that only name it.
MAX_TOUCHED = 1_000
# Columns of each section of a context; the first is the number to be cited.
ENTITY_COLUMNS = ("human_readable_id", "title", "type", "description")
LINK_COLUMNS = ("human_readable_id", "source", "target", "description")
REPORT_COLUMNS = ("community", "title", "summary")


@dataclass(frozen=True)
class Evidence:
    """The rows that local search reads for one question.

    `entities` are those near the question, the named ones first, `relationships` their
    strongest. `text_units` are by number, the best first; `ranked` tells why they were chosen.
    `bonuses` are for the sentences that describe these entities and relationships.
    """

    entities: pl.DataFrame
    named: list[str]
    relationships: pl.DataFrame
    claims: pl.DataFrame
    reports: pl.DataFrame
    text_units: dict[int, Mapping[str, Any]]
    ranked: list[RankedTextUnit]
    bonuses: dict[tuple[str, int], float]

    def texts(self) -> list[str]:
        """Return the texts that were read, and the names of the entities."""
        texts = [unit["text"] for unit in self.text_units.values()]
        return [*self.named, *self.entities["title"], *texts]

    def sources(self) -> pl.DataFrame:
        """Return the text units as rows of a context."""
        return source_rows(self.text_units)

    def priors(self) -> dict[int, float]:
        """Return the own scores of the text units, by number."""
        return {unit.number: unit.own_score for unit in self.ranked}

    def counts(self) -> dict[str, int]:
        """Count the rows that were read."""
        return {
            "entities": self.entities.height,
            "relationships": self.relationships.height,
            "claims": self.claims.height,
            "community_reports": self.reports.height,
            "text_units": len(self.text_units),
        }


def local_search(question: Question, settings: LocalSearch) -> Answer:
    """Answer a question about an entity from its neighbourhood.

    Entities near the question are found by name and by vector; their text units and
    relationships join those that match the question themselves. A model writes the answer
    from what fits its context; without one, the answer consists of the sentences that answer
    best. The outcome is `no_evidence` if nothing is similar enough to the question, or if it
    names something that the documents do not mention.
    """
    found = find_evidence(question, settings)
    answer = partial(
        question.answer,
        method="local",
        parameters=settings.model_dump(),
        looked_at=found.counts(),
    )
    unmentioned = question.mentions.unmentioned(found.texts())
    if unmentioned:
        return answer(not_mentioned(unmentioned), outcome=Outcome.NO_EVIDENCE)
    context = local_context(question, found, settings)
    if question.llm is not None:
        return write_answer(
            question,
            "local_search",
            context,
            method="local",
            parameters=settings.model_dump(),
            looked_at=found.counts(),
        )
    chosen = choose_sentences(
        question,
        found.text_units,
        found.priors(),
        max_sentences=settings.max_sentences,
        min_similarity=settings.min_similarity,
        named=found.named,
        bonuses=found.bonuses,
    )
    if not chosen:
        return answer(NOTHING_ANSWERS, outcome=Outcome.NO_EVIDENCE, context=context)
    text, citations = write_sentences(chosen, found.text_units)
    return answer(text, citations=citations, context=context)


def local_context(question: Question, found: Evidence, settings: LocalSearch) -> Context:
    """Pack the evidence into a context, text units first.

    Their table tells in the column `why`, which is not shown to a model, why each was chosen.
    """
    rest = max(0.0, 1 - settings.text_unit_share - settings.report_share)
    context = pack(
        [
            Section("Sources", found.sources(), settings.text_unit_share),
            Section("Entities", _as_shown(found.entities, ENTITY_COLUMNS), rest / 2),
            Section("Relationships", _as_shown(found.relationships, LINK_COLUMNS), rest / 2),
            Section("Claims", found.claims, rest / 4 if found.claims.height else 0),
            Section("Reports", _as_shown(found.reports, REPORT_COLUMNS), settings.report_share),
        ],
        question.max_context_tokens(settings.max_context_tokens),
    )
    sources = context.tables.get("Sources")
    if sources is None:
        return context
    reasons = _reasons(question.index, found.ranked)
    why = pl.Series("why", [reasons[number] for number in sources["id"]])
    return replace(context, tables={**context.tables, "Sources": sources.with_columns(why)})


def _reasons(index: IndexStore, ranked: Sequence[RankedTextUnit]) -> dict[int, str]:
    """Say why each text unit was chosen, by its number."""
    entities = [unit.entity for unit in ranked if unit.entity is not None]
    names = index.entities(entities)["title"]
    titles: dict[int | None, str] = dict(zip(entities, names, strict=True))
    reasons = {}
    for unit in ranked:
        title = titles.get(unit.entity, "")
        if unit.reason == "link":
            why = f"Sources ({unit.origin}) leads to it over {title}"
        elif unit.reason == "name":
            named = f"it is about {title}, which" if title else "its document has a title that"
            why = f"{named} the question names"
        else:
            why = "it matches the question"
        reasons[unit.number] = why
    return reasons


def _as_shown(rows: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    return rows.select(columns).rename({columns[0]: "id"})


def find_evidence(question: Question, settings: LocalSearch) -> Evidence:
    """Gather the rows near a question."""
    index = question.index
    # Text units are searched for in other threads meanwhile.
    rank = start_search(question) if settings.scope != "graph" else None
    entities, named = _near_entities(question, settings.top_k_entities)
    relationships = _relationships(index, entities)
    rank = rank or start_search(question, _touched(index, entities, relationships))
    ranked = rank()[: settings.top_k_text_units]
    units = index.text_units(unit.number for unit in ranked)
    return Evidence(
        entities=entities,
        named=_spellings(entities, named),
        relationships=relationships,
        claims=_claims(index, entities),
        reports=_reports(index, entities),
        text_units={unit.number: units[unit.number] for unit in ranked},
        ranked=ranked,
        bonuses=_bonuses(index, entities, named, relationships),
    )


def _touched(index: IndexStore, entities: pl.DataFrame, relationships: pl.DataFrame) -> set[int]:
    """Return the text units that name some entities, or support some relationships.

    Of each entity, those that tell about it and those that only name it are limited apart.
    """
    touched = {number for row in relationships["text_units"] for number in row}
    for entity in entities["human_readable_id"]:
        numbers, is_subject = index.links.text_units_of(entity)
        touched.update(numbers[is_subject][:MAX_TOUCHED].tolist())
        touched.update(numbers[~is_subject][:MAX_TOUCHED].tolist())
    return touched


def _near_entities(question: Question, top_k: int) -> tuple[pl.DataFrame, list[int]]:
    """Find entities by name and by vector; also return the numbers of the named ones."""
    index = question.index
    table = index.map("entity_rows")
    nearest = index.vectors("entity_description").nearest
    near = index.threads.submit(nearest, question.vector, top_k, ["human_readable_id"])
    weights = {mention.entity: mention.weight for mention in question.mentions.entities}
    degrees = table.rows(weights, "degree")["degree"].to_list()
    by_degree = dict(zip(weights, degrees, strict=True))
    named = sorted(weights, key=lambda n: (-weights[n], -by_degree[n], n))
    numbers = list(dict.fromkeys([*named, *near.result()["human_readable_id"]]))
    return index.entities(numbers[: max(top_k, len(named))]), named


def _bonuses(
    index: IndexStore, entities: pl.DataFrame, named: list[int], relationships: pl.DataFrame
) -> dict[tuple[str, int], float]:
    """Favour the sentences that describe the named entities and their relationships."""
    described = entities.filter(pl.col("human_readable_id").is_in(named))
    places: dict[tuple[int, int], float] = {}
    for rows, bonus in (
        (relationships.filter("inside"), RELATIONSHIP_BONUS),
        (described, ENTITY_BONUS),
    ):
        for evidence in rows["evidence"]:
            for place in evidence:
                places[place["document"], place["start_char"]] = bonus
    numbers = sorted({document for document, _ in places})
    ids = dict(zip(numbers, index.documents(numbers)["id"], strict=True))
    return {(ids[document], start): bonus for (document, start), bonus in places.items()}


def _spellings(entities: pl.DataFrame, named: list[int]) -> list[str]:
    rows = entities.filter(pl.col("human_readable_id").is_in(named)).select("title", "aliases")
    return [name for title, aliases in rows.iter_rows() for name in [title, *aliases]]


def _relationships(index: IndexStore, entities: pl.DataFrame, top_k: int = 40) -> pl.DataFrame:
    """Return the strongest relationships of the entities, those among themselves first."""
    numbers = entities["human_readable_id"].to_numpy()
    found: dict[int, tuple[bool, float]] = {}
    for number in numbers:
        near = index.links.relationships_of(int(number), MAX_RELATIONSHIPS)
        inside = np.isin(near.entities, numbers)
        for row in {*np.flatnonzero(inside).tolist(), *range(min(top_k, len(inside)))}:
            found[int(near.relationships[row])] = (bool(inside[row]), float(near.weights[row]))
    best = sorted(found, key=lambda n: (not found[n][0], -found[n][1], n))[:top_k]
    are_inside = [found[number][0] for number in best]
    return index.relationships(best).with_columns(pl.Series("inside", are_inside, dtype=pl.Boolean))


def _claims(index: IndexStore, entities: pl.DataFrame, top_k: int = 40) -> pl.DataFrame:
    """Return claims about the entities, those about the nearest first; none without claims."""
    numbers: dict[int, None] = {}
    for entity in entities["human_readable_id"]:
        numbers |= dict.fromkeys(index.links.claims_of(entity).tolist())
    return index.claims(list(numbers)[:top_k]).select(
        pl.col("human_readable_id").alias("id"),
        *("subject", "object", "type", "status", "start_date", "end_date", "description"),
    )


def _reports(index: IndexStore, entities: pl.DataFrame, top_k: int = 5) -> pl.DataFrame:
    """Return the reports on the smallest communities that hold most of the entities."""
    shared: Counter[tuple[int, int]] = Counter()
    for entity in entities["human_readable_id"]:
        levels, communities = index.links.communities_of(entity)
        shared.update(zip(levels.tolist(), communities.tolist(), strict=True))
    best = sorted(shared, key=lambda place: (-shared[place], -place[0], place[1]))[:top_k]
    return index.reports(community for _, community in best).select(
        "community", "level", "title", "summary", "rank"
    )
