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
from graphrag_query.answering.extractive_answer import (
    NOTHING_ANSWERS,
    choose_sentences,
    write_sentences,
)
from graphrag_query.answering.written_answer import write_answer
from graphrag_query.question.entity_linking import names_in_question
from graphrag_query.question.question import Question
from graphrag_query.question.question_names import not_mentioned, unknown_names
from graphrag_query.retrieval.index_store import KnowledgeModel
from graphrag_query.retrieval.text_unit_ranking import RankedTextUnit
from graphrag_query.retrieval.text_unit_search import start_text_units

ENTITY_BONUS = 0.15
RELATIONSHIP_BONUS = 0.05
# Of an entity that is related with many, so many relationships are looked through.
MOST_RELATIONSHIPS = 10_000
# With the scope `graph`: of those that name an entity, and of those that tell about it.
MOST_TOUCHED = 1_000


# What a model is shown of each table; the first column is the number that it cites.
ENTITY_COLUMNS = ("human_readable_id", "title", "type", "description")
LINK_COLUMNS = ("human_readable_id", "source", "target", "description")
REPORT_COLUMNS = ("community", "title", "summary")


@dataclass(frozen=True)
class Evidence:
    """What local search reads for one question.

    `entities` are those near the question, the named ones first, `relationships` their
    strongest. `text_units` are by number, best first; `ranked` tells why they are. `bonuses`
    are for the sentences that describe these entities and relationships.
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
        """Return the names and the texts that were read."""
        texts = [unit["text"] for unit in self.text_units.values()]
        return [*self.named, *self.entities["title"], *texts]

    def sources(self) -> pl.DataFrame:
        """Return the text units as a model is shown them."""
        return source_rows(self.text_units)

    def priors(self) -> dict[int, float]:
        """Return how well the text units match the question by themselves, by number."""
        return {unit.number: unit.own_score for unit in self.ranked}

    def counts(self) -> dict[str, int]:
        """Count what was read."""
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
    from what fits its context; without one, it is made of the sentences that answer best.
    The outcome is `no_evidence` if nothing read is similar enough to the question, or if it
    names what the documents do not.
    """
    found = find_evidence(question, settings)
    answer = partial(
        question.answer,
        method="local",
        parameters=settings.model_dump(),
        looked_at=found.counts(),
    )
    unknown = unknown_names(question.model, question.text, found.texts())
    if unknown:
        return answer(not_mentioned(unknown), outcome=Outcome.NO_EVIDENCE)
    context = local_context(question, found, settings)
    if question.chat is not None:
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


def local_context(question: Question, found: "Evidence", settings: LocalSearch) -> Context:
    """Pack what was found into the budget, text units first.

    The table of these tells in `why`, which a model is not shown, for what each was taken.
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
    whys = _whys(question.model, found.ranked)
    why = pl.Series("why", [whys[number] for number in sources["id"]])
    return replace(context, tables={**context.tables, "Sources": sources.with_columns(why)})


def _whys(model: KnowledgeModel, ranked: Sequence[RankedTextUnit]) -> dict[int, str]:
    """Say of each text unit for what it was taken, by its number."""
    entities = [unit.entity for unit in ranked if unit.entity is not None]
    names = model.entities(entities)["title"]
    titles: dict[int | None, str] = dict(zip(entities, names, strict=True))
    whys = {}
    for unit in ranked:
        title = titles.get(unit.entity, "")
        if unit.reason == "link":
            why = f"Sources ({unit.origin}) leads to it over {title}"
        elif unit.reason == "name":
            named = f"it is about {title}, which" if title else "its document has a title that"
            why = f"{named} the question names"
        else:
            why = "it matches the question"
        whys[unit.number] = why
    return whys


def _as_shown(rows: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    return rows.select(columns).rename({columns[0]: "id"})


def find_evidence(question: Question, settings: LocalSearch) -> Evidence:
    """Gather what the index holds near a question."""
    model, vector = question.model, question.vector
    start = partial(start_text_units, model, question.text, vector)
    # The searches of vectors and words go side by side, and beside what follows.
    rank = start() if settings.scope != "graph" else None
    entities, named = _near_entities(model, question.text, vector, settings.top_k_entities)
    relationships = _relationships(model, entities)
    rank = rank or start(within=_touched(model, entities, relationships))
    ranked = rank()[: settings.top_k_text_units]
    units = model.text_units(unit.number for unit in ranked)
    return Evidence(
        entities=entities,
        named=_spellings(entities, named),
        relationships=relationships,
        claims=_claims(model, entities),
        reports=_reports(model, entities),
        text_units={unit.number: units[unit.number] for unit in ranked},
        ranked=ranked,
        bonuses=_bonuses(model, entities, named, relationships),
    )


def _touched(
    model: KnowledgeModel, entities: pl.DataFrame, relationships: pl.DataFrame
) -> set[int]:
    """Return the text units that name some entities, or tell of some relationships.

    Of an entity that very many name, those that tell about it come first.
    """
    touched = {number for row in relationships["text_units"] for number in row}
    for entity in entities["human_readable_id"]:
        numbers, is_about = model.links.text_units_of(entity)
        touched.update(numbers[is_about][:MOST_TOUCHED].tolist())
        touched.update(numbers[~is_about][:MOST_TOUCHED].tolist())
    return touched


def _near_entities(
    model: KnowledgeModel, question: str, vector: "np.ndarray[Any, Any]", top_k: int
) -> tuple[pl.DataFrame, list[int]]:
    """Find entities by the names in the question, then by vector; and the numbers of the named."""
    table = model.map("entity_rows")
    nearest = model.vectors("entity_description").nearest
    near = model.threads.submit(nearest, vector, top_k, ["human_readable_id"])
    weights = {named.entity: named.weight for named in names_in_question(model, question)}
    degrees = table.rows(weights, "degree")["degree"].to_list()
    by_degree = dict(zip(weights, degrees, strict=True))
    named = sorted(weights, key=lambda n: (-weights[n], -by_degree[n], n))
    numbers = list(dict.fromkeys([*named, *near.result()["human_readable_id"]]))
    return model.entities(numbers[: max(top_k, len(named))]), named


def _bonuses(
    model: KnowledgeModel, entities: pl.DataFrame, named: list[int], relationships: pl.DataFrame
) -> dict[tuple[str, int], float]:
    """Favour the sentences that describe whom the question names, and how they are related."""
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
    ids = dict(zip(numbers, model.documents(numbers)["id"], strict=True))
    return {(ids[document], start): bonus for (document, start), bonus in places.items()}


def _spellings(entities: pl.DataFrame, named: list[int]) -> list[str]:
    rows = entities.filter(pl.col("human_readable_id").is_in(named)).select("title", "aliases")
    return [name for title, aliases in rows.iter_rows() for name in [title, *aliases]]


def _relationships(model: KnowledgeModel, entities: pl.DataFrame, top_k: int = 40) -> pl.DataFrame:
    """Return the strongest relationships of the entities, those among themselves first."""
    numbers = entities["human_readable_id"].to_numpy()
    found: dict[int, tuple[bool, float]] = {}
    for number in numbers:
        near = model.links.relationships_of(int(number), MOST_RELATIONSHIPS)
        inside = np.isin(near.entities, numbers)
        for row in {*np.flatnonzero(inside).tolist(), *range(min(top_k, len(inside)))}:
            found[int(near.relationships[row])] = (bool(inside[row]), float(near.weights[row]))
    best = sorted(found, key=lambda n: (not found[n][0], -found[n][1], n))[:top_k]
    are_inside = [found[number][0] for number in best]
    return model.relationships(best).with_columns(pl.Series("inside", are_inside, dtype=pl.Boolean))


def _claims(model: KnowledgeModel, entities: pl.DataFrame, top_k: int = 40) -> pl.DataFrame:
    """Return claims about the entities, those about the nearest first; none without claims."""
    numbers: dict[int, None] = {}
    for entity in entities["human_readable_id"]:
        numbers |= dict.fromkeys(model.links.claims_of(entity).tolist())
    return model.claims(list(numbers)[:top_k]).select(
        pl.col("human_readable_id").alias("id"),
        *("subject", "object", "type", "status", "start_date", "end_date", "description"),
    )


def _reports(model: KnowledgeModel, entities: pl.DataFrame, top_k: int = 5) -> pl.DataFrame:
    """Return the reports on the smallest communities that hold most of the entities."""
    shared: Counter[tuple[int, int]] = Counter()
    for entity in entities["human_readable_id"]:
        levels, communities = model.links.communities_of(entity)
        shared.update(zip(levels.tolist(), communities.tolist(), strict=True))
    best = sorted(shared, key=lambda place: (-shared[place], -place[0], place[1]))[:top_k]
    return model.reports(community for _, community in best).select(
        "community", "level", "title", "summary", "rank"
    )
