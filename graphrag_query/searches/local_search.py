"""Local search: answer from the neighbourhood of the entities that a question is about."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from graphrag_index.schema.settings.searches import LocalSearch
from graphrag_query.answer import Answer, Context
from graphrag_query.answering.written_answer import (
    DeferredContext,
    Section,
    pack_for_question,
    source_rows,
    write_answer,
)
from graphrag_query.question.question import Question
from graphrag_query.retrieval.foreign_text_units import add_foreign_text_units
from graphrag_query.retrieval.text_unit_ranking import start_search
from graphrag_query.store.index_store import IndexStore, RankedTextUnit

# Maximum number of relationships that are read per entity, the heaviest first.
MAX_RELATIONSHIPS_READ = 10_000
# With the scope `graph`: maximum number of text units that describe an entity, and maximum number
# of text units that only name the entity.
MAX_TEXT_UNITS_OF_ENTITY = 1_000
# Maximum number of rows of each table that are read for one question.
TOP_K_RELATIONSHIPS = 40
TOP_K_CLAIMS = 40
TOP_K_REPORTS = 5


@dataclass(frozen=True)
class Evidence:
    """The rows that local search finds for one question.

    `entities` are the entities near the question, with the named entities first.
    `relationships` are the strongest relationships of the entities. Relationships, claims and
    reports are numbers, because only the context needs their texts. `text_units` maps the
    number of a text unit to its row, the best first. `ranked` has the reason why each text unit
    was chosen.
    """

    entities: pl.DataFrame
    named: list[str]
    relationships: list[int]
    claims: list[int]
    reports: list[int]
    text_units: dict[int, Mapping[str, Any]]
    ranked: list[RankedTextUnit]

    def own_scores(self) -> dict[int, float]:
        """Map the number of each text unit to its score without links."""
        return {unit.number: unit.own_score for unit in self.ranked}


def local_search(question: Question, settings: LocalSearch) -> Answer:
    """Answer a question about an entity from its neighbourhood.

    Entities near the question are found by name and by vector. The evidence consists of their
    text units and relationships and of the text units that match the question. A model writes
    the answer from the evidence that fits its context. Without a model, the answer consists of
    the sentences that answer best. The outcome is `no_evidence` if nothing is similar enough to
    the question, or if the question names something that the documents do not mention.
    """
    found = find_evidence(question, settings)
    question.counts.update(
        entities=found.entities.height,
        relationships=len(found.relationships),
        claims=len(found.claims),
        community_reports=len(found.reports),
        text_units=len(found.text_units),
    )
    texts = [unit["text"] for unit in found.text_units.values()]
    if refusal := question.refuse([*found.named, *found.entities["title"], *texts]):
        return refusal
    pack, limit = partial(local_context, question, found, settings), settings.max_context_tokens
    if question.llm is not None:
        return write_answer(question, "local_search", pack(limit))
    from graphrag_query.answering.quoted_answer import quote_answer

    context = DeferredContext(pack, limit)
    units, scores = found.text_units, found.own_scores()
    links = {unit.number: unit.score - unit.own_score for unit in found.ranked}
    return quote_answer(question, units, scores, settings, context, named=found.named, links=links)


def local_context(
    question: Question, found: Evidence, settings: LocalSearch, max_tokens: int
) -> Context:
    """Pack the evidence into a context, text units first.

    The column `why` of the table of text units gives the reason why each was chosen. The model
    does not see this column.
    """
    index, rest = question.index, max(0.0, 1 - settings.text_unit_share - settings.report_share)
    number = pl.col("human_readable_id").alias("id")
    entities = found.entities.select(number, "title", "type", "description")
    links = index.relationships(found.relationships)
    links = links.select(number, "source", "target", "description")
    columns = ("subject", "object", "type", "status", "start_date", "end_date", "description")
    claims = index.claims(found.claims).select(number, *columns)
    reports = index.reports(found.reports, "community", "title", "summary")
    reports = reports.select(pl.col("community").alias("id"), "title", "summary")
    context = pack_for_question(
        question,
        [
            Section("Sources", source_rows(found.text_units), settings.text_unit_share),
            Section("Entities", entities, rest / 2),
            Section("Relationships", links, rest / 2),
            Section("Claims", claims, rest / 4),
            Section("Reports", reports, settings.report_share),
        ],
        max_tokens,
    )
    if "Sources" not in context.tables:
        return context
    sources, reasons = context.tables["Sources"], _explain_choices(index, found.ranked)
    why = pl.Series("why", [reasons[number] for number in sources["id"]])
    return replace(context, tables={**context.tables, "Sources": sources.with_columns(why)})


def _explain_choices(index: IndexStore, ranked: Sequence[RankedTextUnit]) -> dict[int, str]:
    """Map the number of each text unit to the reason why it was chosen."""
    entities = [unit.entity for unit in ranked if unit.entity is not None]
    titles = dict(zip(entities, index.entities(entities, "title")["title"], strict=True))
    reasons = {}
    for unit in ranked:
        title = "" if unit.entity is None else titles[unit.entity]
        if unit.reason == "link" and title:
            why = f"Sources ({unit.origin}) leads to it over {title}"
        elif unit.reason == "link":
            why = f"it is next to Sources ({unit.origin}) in the document"
        elif unit.reason == "name":
            named = (
                f"it is about {title}, which"
                if title
                else "its document has a title or a date that"
            )
            why = f"{named} the question names"
        else:
            why = "it matches the question"
        reasons[unit.number] = why
    return reasons


def find_evidence(question: Question, settings: LocalSearch) -> Evidence:
    """Find the entities, relationships, claims, reports and text units near a question."""
    index = question.index
    # The search for text units runs in other threads while the entities are read.
    rank = start_search(question) if settings.scope != "graph" else None
    entities, n_named = _find_near_entities(question, settings.top_k_entities)
    named = entities.head(n_named)
    names = named.select("title", "aliases").rows()
    relationships = _find_relationships(index, entities)
    rank = rank or start_search(question, _linked_text_units(index, entities, relationships))
    found = rank() if settings.scope == "graph" else add_foreign_text_units(question, rank())
    ranked = question.cell_coverage.rank_first(found, settings.top_k_text_units)
    units = index.text_units(unit.number for unit in ranked)
    return Evidence(
        entities=entities,
        named=[
            *(name for title, aliases in names for name in (title, *aliases)),
            *(title.name for title in question.mentions.document_titles),
        ],
        relationships=relationships,
        claims=_find_claims(index, entities),
        reports=_find_reports(index, entities),
        text_units={unit.number: units[unit.number] for unit in ranked},
        ranked=ranked,
    )


def start_text_unit_search(
    question: Question, settings: LocalSearch
) -> Callable[[], list[RankedTextUnit]]:
    """Start the search for the text units of `find_evidence`, and return a function.

    The function waits for the search and returns the text units. The other rows are not read.
    """
    if settings.scope == "graph":
        return lambda: find_evidence(question, settings).ranked
    rank = start_search(question)
    most, cover = settings.top_k_text_units, question.cell_coverage.rank_first
    return lambda: cover(add_foreign_text_units(question, rank()), most)


def _linked_text_units(
    index: IndexStore, entities: pl.DataFrame, relationships: Sequence[int]
) -> set[int]:
    """Return the numbers of the text units that name the entities or support the relationships.

    For each entity there are two limits: for text units that describe it, and for text units
    that only name it.
    """
    rows = index.open_mapped("relationship_rows")
    touched = set(rows.lists("text_units", np.array(relationships, np.int64))[0].tolist())
    for entity in entities["human_readable_id"]:
        numbers, is_subject = index.links.text_units_of(entity)
        touched.update(numbers[is_subject][:MAX_TEXT_UNITS_OF_ENTITY].tolist())
        touched.update(numbers[~is_subject][:MAX_TEXT_UNITS_OF_ENTITY].tolist())
    return touched


def _find_near_entities(question: Question, top_k: int) -> tuple[pl.DataFrame, int]:
    """Find entities by name and by vector.

    Returns the entities, with the named entities first, and the number of named entities.
    """
    index = question.index
    nearest = index.vectors("entity_description").nearest
    near = index.threads.submit(nearest, question.vector, top_k, ["human_readable_id"])
    weights = {mention.entity: mention.weight for mention in question.mentions.entities}
    degrees = index.open_mapped("entity_rows").rows(weights, "degree")["degree"].to_list()
    by_degree = dict(zip(weights, degrees, strict=True))
    named = sorted(weights, key=lambda n: (-weights[n], -by_degree[n], n))
    numbers = list(dict.fromkeys([*named, *near.result()["human_readable_id"]]))
    columns = ("title", "type", "description", "aliases")
    return index.entities(numbers[: max(top_k, len(named))], *columns), len(named)


def _find_relationships(index: IndexStore, entities: pl.DataFrame) -> list[int]:
    """Return the strongest relationships of the entities.

    Relationships between two of the entities come first.
    """
    numbers = entities["human_readable_id"].to_numpy()
    found: dict[int, tuple[bool, float]] = {}
    for number in numbers:
        near = index.links.relationships_of(int(number), MAX_RELATIONSHIPS_READ)
        inside = np.isin(near.entities, numbers)
        strongest = range(min(TOP_K_RELATIONSHIPS, len(inside)))
        for row in {*np.flatnonzero(inside).tolist(), *strongest}:
            found[int(near.relationships[row])] = (bool(inside[row]), float(near.weights[row]))
    best = sorted(found, key=lambda n: (not found[n][0], -found[n][1], n))
    return best[:TOP_K_RELATIONSHIPS]


def _find_claims(index: IndexStore, entities: pl.DataFrame) -> list[int]:
    """Return claims about the entities; claims about the nearest entity come first."""
    numbers: dict[int, None] = {}
    for entity in entities["human_readable_id"]:
        numbers |= dict.fromkeys(index.links.claims_of(entity).tolist())
    return list(numbers)[:TOP_K_CLAIMS]


def _find_reports(index: IndexStore, entities: pl.DataFrame) -> list[int]:
    """Return the communities that have a report and the most of these entities for their size."""
    shared: Counter[int] = Counter()
    for entity in entities["human_readable_id"]:
        shared.update(index.links.communities_of(entity)[1].tolist())
    sizes = index.reports(sorted(shared), "community", "size").select("community", "size")
    # A theme has most of these entities, but its report hardly speaks of them.
    scores = {n: shared[n] / math.log(size + 2, 2) for n, size in sizes.iter_rows()}
    return sorted(scores, key=lambda n: (-scores[n], n))[:TOP_K_REPORTS]
