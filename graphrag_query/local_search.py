"""Local search: answer from the neighbourhood of the entities that a question is about."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from graphrag_index.core.settings import LocalSearch
from graphrag_query.answer import Answer, Outcome
from graphrag_query.knowledge_model import KnowledgeModel
from graphrag_query.question_names import missing_names, not_mentioned, unknown_names
from graphrag_query.sentence_ranking import (
    SHARE_OF_BEST,
    Ranked,
    as_prose,
    candidates_of,
    cite,
    content_words,
    rank_sentences,
    without_repetition,
)

# Worth of a text unit's full-text score, and of naming an entity of the question, beside
# its cosine with the question.
FULL_TEXT_WEIGHT = 0.25
NAMED_WEIGHT = 0.2
ENTITY_BONUS = 0.15
RELATIONSHIP_BONUS = 0.05
_WORD = re.compile(r"[^\W_]+(?:[-'’.][^\W_]+)*")
MAX_NAME_WORDS = 6


@dataclass(frozen=True)
class LocalContext:
    """What local search reads for one question.

    `entities` are those near the question, the named ones first, `relationships` their
    strongest. `text_units` are by number, best first, and `priors` their fit. `bonuses`
    are for the sentences that describe these entities and relationships.
    """

    entities: pl.DataFrame
    named: list[str]
    relationships: pl.DataFrame
    reports: pl.DataFrame
    text_units: dict[int, Mapping[str, Any]]
    priors: dict[int, float]
    bonuses: dict[tuple[str, int], float]

    def texts(self) -> list[str]:
        """Return the names and the texts that were read."""
        texts = [unit["text"] for unit in self.text_units.values()]
        return [*self.named, *self.entities["title"], *texts]


def local_search(model: KnowledgeModel, question: str, settings: LocalSearch) -> Answer:
    """Answer a question about an entity from the sentences that answer it best.

    Entities near the question are found by name and by vector; their text units and
    relationships join those that match the question themselves. The outcome is
    `no_evidence` if nothing read is similar enough to the question, or if it names what
    the documents do not.
    """
    vector = model.embed([question])[0]
    context = build_context(model, question, vector, settings)
    answer = partial(
        Answer,
        question=question,
        method="local",
        parameters=settings.model_dump(),
        looked_at={
            "entities": context.entities.height,
            "relationships": context.relationships.height,
            "community_reports": context.reports.height,
            "text_units": len(context.text_units),
        },
        version=model.version.number,
    )
    nothing = partial(answer, outcome=Outcome.NO_EVIDENCE)
    unknown = unknown_names(model, question, context.texts())
    if unknown:
        return nothing(text=not_mentioned(unknown))
    candidates = candidates_of(context.text_units.values(), context.priors, context.bonuses)
    ranked = rank_sentences(question, vector, candidates, model.embed, context.named)
    evidence = [
        sentence
        for sentence in ranked
        if sentence.similarity >= settings.min_similarity
        and (sentence.coverage > 0 or sentence.similarity >= 2 * settings.min_similarity)
    ]
    if not evidence or _is_beside_the_point(question, context, evidence, settings):
        return nothing(text="No passage that was read answers this.")
    # Far below the best sentence is padding, not an answer.
    evidence = [s for s in evidence if s.score >= SHARE_OF_BEST * evidence[0].score]
    chosen = without_repetition(evidence, settings.max_sentences)
    citations = tuple(
        cite(number, s.candidate, context.text_units[s.candidate.text_unit])
        for number, s in enumerate(chosen, 1)
    )
    text = " ".join(f"{as_prose(citation.quote)} [{citation.number}]" for citation in citations)
    return answer(text=text, outcome=Outcome.ANSWERED, citations=citations)


def _is_beside_the_point(
    question: str, context: LocalContext, evidence: list[Ranked], settings: LocalSearch
) -> bool:
    """Tell whether sentences hold so little of the question that similarity alone would answer.

    Without a name that the index knows, they must hold a third of its words and whatever
    name it has. With one, they must hold something of what is asked about it.
    """
    similarity = max(sentence.similarity for sentence in evidence)
    texts = [sentence.candidate.text for sentence in evidence]
    if not context.named:
        held = any(sentence.coverage >= 0.34 for sentence in evidence)
        return similarity < 2 * settings.min_similarity and (
            not held or bool(missing_names(question, texts))
        )
    asked = set(content_words(question)) - {w for n in context.named for w in content_words(n)}
    said = {word for text in texts for word in content_words(text)}
    return bool(asked) and not asked & said and similarity < 1.6 * settings.min_similarity


def build_context(
    model: KnowledgeModel, question: str, vector: "np.ndarray[Any, Any]", settings: LocalSearch
) -> LocalContext:
    """Gather what the index holds near a question."""
    entities, named = _near_entities(model, question, vector, settings.top_k_entities)
    relationships = _relationships(model, entities)
    priors = _text_unit_scores(model, question, vector, named, settings)
    numbers = sorted(priors, key=lambda n: (-priors[n], n))[: settings.top_k_text_units]
    units = model.text_units(numbers)
    return LocalContext(
        entities=entities,
        named=_spellings(entities, named),
        relationships=relationships,
        reports=_reports(model, entities),
        text_units={number: units[number] for number in numbers},
        priors={number: priors[number] for number in numbers},
        bonuses=_bonuses(entities, named, relationships),
    )


def _near_entities(
    model: KnowledgeModel, question: str, vector: "np.ndarray[Any, Any]", top_k: int
) -> tuple[pl.DataFrame, list[int]]:
    """Find entities by the names in the question, then by vector; and the numbers of the named."""
    table = model.scan("entities").select(
        "id", "human_readable_id", "title", "type", "aliases", "degree", "evidence"
    )
    words = _WORD.findall(question)
    phrases = {
        " ".join(words[first:last]).lower()
        for first in range(len(words))
        for last in range(first + 1, min(first + MAX_NAME_WORDS, len(words)) + 1)
    }
    subject = set(content_words(question))
    folded = pl.concat_list(
        pl.col("title").str.to_lowercase(),
        pl.col("aliases").list.eval(pl.element().str.to_lowercase()),
    )
    named = (
        table.filter(folded.list.eval(pl.element().is_in(sorted(phrases))).list.any())
        .collect()
        .sort("degree", "human_readable_id", descending=[True, False])
    )
    # A name of function words only ("It") is in every question.
    names = named.select(pl.concat_list(pl.concat_list("title"), "aliases").list.join(" "))
    kept = [bool(subject & set(content_words(name))) for (name,) in names.iter_rows()]
    named = named.filter(pl.Series(kept, dtype=pl.Boolean))
    near = model.vectors("entity_description").nearest(vector, top_k, ["id"])
    found = (
        near.select("id")
        .join(table.collect(), on="id", how="inner", maintain_order="left")
        .filter(~pl.col("id").is_in(named["id"].to_list()))
    )
    entities = pl.concat([named, found.select(named.columns)])
    return entities.head(max(top_k, named.height)), named["human_readable_id"].to_list()


def _bonuses(
    entities: pl.DataFrame, named: list[int], relationships: pl.DataFrame
) -> dict[tuple[str, int], float]:
    """Favour the sentences that describe whom the question names, and how they are related."""
    described = entities.filter(pl.col("human_readable_id").is_in(named))
    bonuses = {}
    for rows, bonus in (
        (relationships.filter("inside"), RELATIONSHIP_BONUS),
        (described, ENTITY_BONUS),
    ):
        for evidence in rows["evidence"]:
            for place in evidence:
                bonuses[place["document_id"], place["start_char"]] = bonus
    return bonuses


def _spellings(entities: pl.DataFrame, named: list[int]) -> list[str]:
    rows = entities.filter(pl.col("human_readable_id").is_in(named)).select("title", "aliases")
    return [name for title, aliases in rows.iter_rows() for name in [title, *aliases]]


def _relationships(model: KnowledgeModel, entities: pl.DataFrame, top_k: int = 40) -> pl.DataFrame:
    """Return the strongest relationships of the entities, those among themselves first."""
    ids = entities["id"].to_list()
    source, target = pl.col("source_id").is_in(ids), pl.col("target_id").is_in(ids)
    return (
        model.scan("relationships")
        .filter(source | target)
        .with_columns(inside=source & target)
        .select(
            *("human_readable_id", "source", "target", "source_id", "target_id"),
            *("description", "weight", "text_unit_ids", "evidence", "inside"),
        )
        .sort("inside", "weight", "human_readable_id", descending=[True, True, False])
        .head(top_k)
        .collect()
    )


def _reports(model: KnowledgeModel, entities: pl.DataFrame, top_k: int = 5) -> pl.DataFrame:
    """Return the reports on the smallest communities that hold most of the entities."""
    ids = entities["id"].to_list()
    communities = (
        model.scan("communities")
        .with_columns(shared=pl.col("entity_ids").list.set_intersection(ids).list.len())
        .filter(pl.col("shared") > 0)
        .sort("shared", "level", "community", descending=[True, True, False])
        .select("community", "shared")
        .head(top_k)
        .collect()
    )
    return (
        model.scan("community_reports")
        .filter(pl.col("community").is_in(communities["community"].to_list()))
        .select("community", "level", "title", "summary", "rank")
        .collect()
    )


def _text_unit_scores(
    model: KnowledgeModel,
    question: str,
    vector: "np.ndarray[Any, Any]",
    named: list[int],
    settings: LocalSearch,
) -> dict[int, float]:
    """Score text units by cosine, full text, and the question's entities that they name."""
    table = model.vectors("text_unit_text")
    reach = 4 * settings.top_k_text_units
    near = table.nearest(vector, reach, ["human_readable_id"])
    words = " ".join(content_words(question)) or question
    matching = table.matching(words, reach, ["human_readable_id"])
    similarity = dict(near.iter_rows())
    text_score = dict(matching.iter_rows())
    highest = max(text_score.values(), default=1.0) or 1.0
    about = _naming(model, named)
    numbers = {*similarity, *text_score, *about}
    missing = [n for n in numbers if n not in similarity]
    similarity |= _similarities(model, missing, vector)
    return {
        number: similarity.get(number, 0.0)
        + FULL_TEXT_WEIGHT * text_score.get(number, 0.0) / highest
        + NAMED_WEIGHT * about.get(number, 0.0)
        for number in numbers
    }


def _naming(model: KnowledgeModel, named: list[int], top_k: int = 60) -> dict[int, float]:
    """Return the text units that name most of the question's entities, with the share of them."""
    if not named:
        return {}
    counts = (
        model.scan("mentions")
        .filter(pl.col("entity").is_in(named))
        .group_by("text_unit")
        .agg(share=pl.col("entity").n_unique() / len(named), n=pl.len())
        .sort("share", "n", "text_unit", descending=[True, True, False])
        .head(top_k)
        .collect()
    )
    return dict(counts.select("text_unit", "share").iter_rows())


def _similarities(
    model: KnowledgeModel, numbers: list[int], vector: "np.ndarray[Any, Any]"
) -> dict[int, float]:
    if not numbers:
        return {}
    ids = (
        model.scan("text_units")
        .filter(pl.col("human_readable_id").is_in(numbers))
        .select("id")
        .collect()["id"]
    )
    rows = model.vectors("text_unit_text").rows(ids, ["human_readable_id", "vector"])
    cosines = rows["vector"].to_numpy() @ vector
    return dict(zip(rows["human_readable_id"].to_list(), cosines.tolist(), strict=True))
